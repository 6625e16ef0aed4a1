//! Three lanes with objects of several kinds, under many schedules: money goes from account to account, and ports are leased and
//! given back. Nothing is lost or doubled, no lane sees half of a transfer, and all lanes end.

use std::sync::Arc as StdArc;
use std::time::Duration;

use rheostat_base::{LaneId, Time};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner, thread};

use super::{Abort, Objects, Outcome, Txn};
use crate::object::{Allocator, Distributed, Vector};

const LANES: usize = 3;
const SCHEDULES: usize = 400;
const TRANSFERS: usize = 3;
const MONEY: i64 = 10;
/// Aborts after which a transaction runs alone.
const TIMEOUT: usize = 3;

struct World {
    accounts: Vector<i64>,
    ports: Allocator<u64>,
    made: Distributed<u64>,
}

/// Runs a transaction until it commits, in the end alone.
fn run<R>(txn: &mut Txn, mut body: impl FnMut(&mut Txn) -> Outcome<R>) -> R {
    for attempt in 0.. {
        assert!(attempt <= TIMEOUT, "a transaction that runs alone is not aborted");
        if attempt == TIMEOUT {
            txn.make_serial();
        }
        txn.begin(Time::ZERO);
        match body(txn) {
            Ok(result) if txn.commit().is_ok() => return result,
            Ok(_) => {}
            Err(Abort) => txn.roll_back(),
        }
    }
    unreachable!("a transaction commits or is tried again")
}

fn lane(objects: &Objects, world: &World, lane: usize) {
    let mut txn = Txn::new(objects, LaneId(lane as u16));
    for transfer in 0..TRANSFERS {
        let (from, to) = ((lane + transfer) % LANES, (lane + transfer + 1) % LANES);
        let lease = run(&mut txn, |txn| {
            world.accounts.update(txn, from, |money| *money -= 1)?;
            world.accounts.update(txn, to, |money| *money += 1)?;
            world.made.update(txn, |made| *made += 1)?;
            world.ports.allocate(txn, lane as u64, 0)
        });
        let sum = run(&mut txn, |txn| {
            let mut sum = 0;
            for account in 0..LANES {
                sum += world.accounts.read(txn, account)?;
            }
            // Here already: what is read belongs together, whether or not it will commit.
            assert_eq!(sum, MONEY * LANES as i64);
            Ok(sum)
        });
        assert_eq!(sum, MONEY * LANES as i64);
        if let Some(lease) = lease {
            let whose = run(&mut txn, |txn| world.ports.get(txn, lease));
            assert_eq!(whose, Some(lane as u64), "lent to two");
            assert!(run(&mut txn, |txn| world.ports.free(txn, lease)));
        }
    }
    txn.rest();
}

fn all() {
    let objects = Objects::new(LANES);
    let world = StdArc::new(World {
        accounts: Vector::new(&objects, "accounts", [MONEY; LANES]),
        // Fewer than lanes, so that pools run dry.
        ports: Allocator::new(&objects, "ports", 2, &[Duration::from_secs(1)], Duration::ZERO),
        made: Distributed::new(&objects, "made", 0, |sum, share| *sum += share, Duration::ZERO),
    });
    let lanes: Vec<_> = (0..LANES)
        .map(|number| {
            let (objects, world) = (objects.clone(), world.clone());
            thread::spawn(move || lane(&objects, &world, number))
        })
        .collect();
    lanes.into_iter().for_each(|lane| lane.join().unwrap());
    assert_eq!(world.made.total(), (LANES * TRANSFERS) as u64);
    assert_eq!(world.ports.lent(), 0);
}

fn explore(scheduler: impl Scheduler + 'static) {
    let mut config = Config::new();
    config.stack_size = 1 << 17;
    Runner::new(scheduler, config).run(all);
}

#[test]
fn exploration_of_random_schedules() {
    explore(RandomScheduler::new(SCHEDULES));
}

#[test]
fn exploration_of_schedules_with_few_changes() {
    explore(PctScheduler::new(3, SCHEDULES));
}
