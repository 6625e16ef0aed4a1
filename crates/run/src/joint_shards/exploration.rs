//! Three claimants that take two shards in turns, under many schedules: each has a shard alone, and all come to an end.

use rheostat_base::{LaneId, ShardId};
use rheostat_testkit::runtime::shard;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner, thread};

use crate::shard_set::{Entry, EntryOrder, ShardSet};

const SCHEDULES: usize = 2_000;
const LANES: usize = 3;
const ROUNDS: u64 = 3;

/// Adds one to what both shards hold: takes those that are free, works on them, gives them back, and goes on with the other, as
/// lanes do with the packets of a batch.
fn visit_both(set: &mut ShardSet) {
    let mut left = vec![ShardId(0), ShardId(1)];
    while !left.is_empty() {
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|&id| set.enter(id) == Entry::Entered);
        for id in &here {
            let count = set.get_mut(*id).expect("entered").split::<u64>().1;
            let before = *count;
            // Another lane that has the shard, too, would be lost.
            thread::yield_now();
            *count = before + 1;
        }
        set.leave();
        if here.is_empty() {
            thread::yield_now();
        }
        left = elsewhere;
    }
}

fn run(scheduler: impl Scheduler + 'static) {
    let model = || {
        let shards = [0, 1].map(|id| shard(ShardId(id), 8, 0_u64));
        let lanes = [0, 1, 2].map(LaneId);
        let home = |id: ShardId| lanes[id.index()];
        let sets = ShardSet::joint(2, &lanes, shards.into(), home, EntryOrder::Any);
        let lanes: Vec<_> = sets
            .into_iter()
            .map(|mut set| {
                thread::spawn(move || {
                    (0..ROUNDS).for_each(|_| visit_both(&mut set));
                    set
                })
            })
            .collect();
        let mut sets: Vec<_> =
            lanes.into_iter().map(|lane| lane.join().expect("it ends")).collect();
        sets.iter_mut().for_each(ShardSet::inherit);
        let mut seen = 0;
        for set in &sets {
            set.for_each(|shard| {
                assert_eq!(*shard.local::<u64>(), ROUNDS * LANES as u64);
                seen += 1;
            });
        }
        assert_eq!(seen, 2, "each shard is owned once");
    };
    Runner::new(scheduler, Config::new()).run(model);
}

#[test]
fn no_visit_of_a_shard_is_lost_whatever_the_schedule() {
    run(RandomScheduler::new(SCHEDULES));
    run(PctScheduler::new(3, SCHEDULES));
}
