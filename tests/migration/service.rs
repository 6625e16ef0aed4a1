//! A service whose work a pool does, while its shards move: every request that is not counted as dropped is
//! answered once, in the order of its client, as if one lane had done all of it by itself.
//!
//! Everything is stepped: which lane is polled, which member of the pool does a task and when, what moves and
//! how late tables are follows from a seed. See `simulation.rs` for how to repeat one.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rheostat::service::*;
use rheostat_base::choice::Outstanding;
use rheostat_base::{DropReason, LaneId, ShardId, Time};
use rheostat_io::{Device, DeviceCounters, Driver, Pacing, SimConfig, SimNic, Stepper};
use rheostat_packet::PoolCache;
use rheostat_run::invariant::Remains;
use rheostat_run::runtime::{build_lanes, remains, run_dry};
use rheostat_run::{Lane, Migrator, Violation};
use rheostat_testkit::runtime;

use crate::migration::key_value::client::{Book, Load, Observed};
use crate::migration::key_value::request::Request;
use crate::migration::key_value::service::{KeyValue, Store, Work, work};
use crate::migration::late_table::{Fences, LateTable};
use crate::migration::schedule::poll_all;
use crate::migration::simulation::effort;

/// A shard without clients.
pub(crate) fn shard(id: ShardId) -> Box<Shard> {
    runtime::shard(id, 1, Store::new())
}

/// What a run came to.
#[derive(Debug, PartialEq)]
struct Served {
    sum: LaneSample,
    device: DeviceCounters,
    violations: Vec<Violation>,
    observed: Observed,
    moved: u64,
    /// Times that a shard was moving while a pool worked for some lane.
    worked_while_moving: u64,
}

/// Everything in motion.
struct Rig {
    lanes: Vec<Lane>,
    members: Stepped<Request, Work, fn(Request) -> Work>,
    migrator: Migrator,
    table: Arc<LateTable>,
    stepper: Stepper,
    device: Box<dyn Device>,
    pool: Mempool,
    cache: PoolCache,
    book: Book,
    rng: StdRng,
    now: Time,
    worked_while_moving: u64,
}

impl Rig {
    /// The run that follows from a seed, of services that a test may wrap.
    fn new<S: Service>(seed: u64, wrap: impl Fn(KeyValue) -> S) -> Rig {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut one_of = |numbers: &[usize]| *numbers.choose(&mut rng).expect("one");
        let (lanes, shards) = (one_of(&[2, 3, 5]), one_of(&[8, 32, 128]));
        let (buffers, descriptors) = (one_of(&[128, 1_024]), one_of(&[8, 128]));
        let (members, depth) = (one_of(&[1, 2, 4]), one_of(&[1, 4, 64]));
        let (handoff, clients) = (one_of(&[2, 16, 1_024]), one_of(&[3, 40, 300]));
        let gap = one_of(&[300, 1_000, 3_000]);

        let pool = MempoolConfig { buffers: buffers as u32, ..MempoolConfig::default() };
        let pool = Mempool::new(&pool).expect("memory");
        let orientations = vec![Orientation::Inside];
        let steering = Steering::new(&HashKey::MICROSOFT, 128, shards, orientations);
        let steering = Arc::new(steering.expect("sizes that fit"));
        let (book, gap) = (Book::default(), Duration::from_nanos(gap as u64));
        let load = Load { seed, clients: clients as u16, requests: u32::MAX, gap };
        let mut nic = SimConfig::new("nic", lanes as u16, steering.clone());
        nic.descriptors = descriptors as u32;
        nic.pacing = Pacing::OpenLoop { origin: Some(Time::ZERO) };
        nic.driver = Driver::Stepped;
        let nic = SimNic::open(nic, Box::new(book.clients(load)), |_| book.sink(), &pool);
        let mut nic = nic.expect("a NIC");
        let stepper = nic.stepper().expect("a stepped NIC has a stepper");
        let mut devices: Vec<Box<dyn Device>> = vec![Box::new(nic)];

        let queueing = match one_of(&[0, 1, 2, 3]) {
            0 => PoolQueueing::default(),
            1 => PoolQueueing::Central(Outstanding::TWO),
            2 => PoolQueueing::PerMember,
            _ => PoolQueueing::Stealing { burst: 4 },
        };
        let config = PoolConfig { queueing, ..PoolConfig::new(members, lanes, depth) };
        let (members, clients) =
            Stepped::new(&config, |_| work as fn(Request) -> Work).expect("a pool");
        let mut clients = clients.into_iter().map(|client| PacketClient::new(client, shards));
        let service = |_| {
            let service = wrap(KeyValue { client: clients.next().expect("one per lane") });
            Box::new(service) as Box<dyn Service>
        };
        let config = RuntimeConfig {
            workers: vec![None],
            handoff_capacity: handoff,
            ..RuntimeConfig::new(lanes, pool.clone(), steering, FlowHasher::fixed())
        };
        let made = (0..shards).map(|id| shard(ShardId(id as u16)));
        let mut lanes = build_lanes(&config, &mut devices, service, made).expect("lanes fit");
        let device = devices.pop().expect("one device");
        let table = LateTable::new(device.table().expect("the NIC has one"), Fences::Strict);
        let migrator = Migrator::new(&mut lanes, vec![table.clone()]);
        let (cache, now) = (PoolCache::new(pool.clone()), Time::ZERO);
        let worked_while_moving = 0;
        Rig {
            lanes,
            members,
            migrator,
            table,
            stepper,
            device,
            pool,
            cache,
            book,
            rng,
            now,
            worked_while_moving,
        }
    }

    /// Runs until so many shards have moved, and to the end.
    fn run(mut self, migrations: u64) -> Served {
        let mut steps = 0_u64;
        while self.migrator.moved() < migrations {
            self.step();
            steps += 1;
            assert!(steps < 1_000 * migrations, "shards do not arrive");
        }
        self.finish()
    }

    /// A little of everything.
    fn step(&mut self) {
        let rng = &mut self.rng;
        self.now += Duration::from_nanos(rng.random_range(1..3_000));
        if rng.random_ratio(2, 3) {
            self.stepper.deliver_until(self.now, &mut self.cache);
        }
        for lane in &mut self.lanes {
            if rng.random_ratio(1, 2) {
                lane.poll(self.now);
            }
        }
        for _ in 0..rng.random_range(0..4) {
            self.members.step(rng.random());
        }
        self.table.step(rng.random_range(0..4));
        if rng.random_ratio(2, 3) {
            self.migrator.step(self.now);
        }
        if rng.random_ratio(1, 4) {
            self.begin_moves();
        }
        self.worked_while_moving += u64::from(!self.migrator.is_idle() && self.at_pool() > 0);
    }

    /// Sets some shards moving that are not, to anywhere.
    fn begin_moves(&mut self) {
        let Rig { rng, migrator, lanes, .. } = self;
        let share = rng.random_range(0.0..0.5);
        let mut moves = Vec::new();
        for (shard, from) in (0..).map(ShardId).zip(migrator.owners().to_vec()) {
            let to = LaneId(rng.random_range(0..lanes.len() as u16));
            if rng.random_bool(share) && !migrator.is_moving(shard) && from != to {
                moves.push(Move { shard, from, to });
            }
        }
        migrator.start(&moves, self.now).expect("a plan with the present owners");
    }

    fn at_pool(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.counters().at_pool.get()).sum()
    }

    /// Lets shards arrive that are moving, and everything be answered.
    fn finish(mut self) -> Served {
        for _ in 0..10_000 {
            self.table.step(0);
            self.stepper.deliver_until(self.now, &mut self.cache);
            self.migrator.step(self.now);
            poll_all(&mut self.lanes, self.now);
            self.members.step(self.rng.random());
            if self.migrator.is_idle() && self.at_pool() == 0 {
                break;
            }
        }
        assert!(self.migrator.is_idle(), "shards do not arrive");
        while self.members.step(self.rng.random()) || self.at_pool() > 0 {
            poll_all(&mut self.lanes, self.now);
        }
        run_dry(&mut self.lanes, self.now);
        let Rig {
            lanes, migrator, device, stepper, pool, cache, book, worked_while_moving, ..
        } = self;
        let counters = device.monitor().counters();
        let found = remains(&lanes, std::slice::from_ref(&counters), migrator.owners().len());
        let sum = LaneSample::sum(&found.lanes);
        drop((lanes, device, stepper, cache));
        let (buffers, buffers_home) = (pool.capacity(), pool.available());
        let violations = Remains { buffers, buffers_home, ..found }.check();
        let (observed, moved) = (book.observed(), migrator.moved());
        Served { sum, device: counters, violations, observed, moved, worked_while_moving }
    }
}

#[test]
fn every_request_is_answered_once_and_in_order_while_shards_move() {
    let (seeds, migrations) = effort();
    let several = seeds.len() > 8;
    let mut met = [0; DropReason::COUNT];
    let mut worked_while_moving = 0;
    for seed in seeds {
        let replay = format!("RHEO_SEED={seed} RHEO_MIGRATIONS={migrations} repeats it");
        let served = Rig::new(seed, |service| service).run(migrations);
        assert_eq!(served.violations, [], "{replay}");
        assert_eq!(served.observed.wrong, Vec::<String>::new(), "{replay}");
        let (device, sum) = (&served.device, &served.sum);
        let lost = device.without_room() + sum.dropped_total();
        assert_eq!(served.observed.answered + lost, device.arrived, "{replay}");
        assert!(served.observed.answered > 100, "{replay}");
        assert_eq!((sum.shards_in, sum.shards_out), (served.moved, served.moved), "{replay}");
        for (met, dropped) in met.iter_mut().zip(sum.dropped) {
            *met += dropped;
        }
        met[DropReason::QueueFull as usize] += device.queue_full.iter().sum::<u64>();
        worked_while_moving += served.worked_while_moving;
    }
    if several {
        // The narrow places were met, or nothing was shown.
        for reason in [DropReason::PoolFull, DropReason::HoldFull, DropReason::QueueFull] {
            assert!(met[reason as usize] > 0, "no packet was dropped as {}", reason.name());
        }
        assert!(worked_while_moving > 1_000, "{worked_while_moving}");
    }
    assert_eq!(met[DropReason::HandlerAbort as usize], 0, "no task was lost");
}

#[test]
fn a_seed_of_the_service_repeats_itself() {
    let run = |seed| Rig::new(seed, |service| service).run(100);
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

/// The store, but for the order of the requests that come together.
struct Backwards(KeyValue);

impl Service for Backwards {
    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        let placed: Vec<_> =
            batch.drain().map(|(packet, &info)| HandoffPacket { packet, info }).collect();
        placed.into_iter().rev().for_each(|placed| batch.push(placed));
        self.0.process(batch, shards, out);
    }

    fn deferred(&mut self) -> Option<&mut dyn DeferredWork> {
        self.0.deferred()
    }
}

#[test]
fn clients_notice_requests_that_change_places() {
    let served = Rig::new(1, Backwards).run(100);
    assert!(served.observed.wrong[0].contains("expected"), "{:?}", served.observed);
    // The lanes' account knows nothing of it.
    assert_eq!(served.violations, []);
}
