//! The same service on threads: workers that sleep, members of a pool that sleep, and a migrator that does
//! not wait for either.
//!
//! Timed: threads, sleep, clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat::service::*;
use rheostat_base::{Clock, LaneId, ShardId};
use rheostat_io::{Device, Pacing, SimConfig, SimNic};

use crate::migration::key_value::client::{Book, Load};
use crate::migration::key_value::service::{KeyValue, work};
use crate::migration::service::shard;

const LANES: usize = 3;
const MEMBERS: usize = 2;
const SHARDS: usize = 32;
const MIGRATIONS: u64 = 1_000;

/// Runs until enough shards have moved. `depth` is that of the pool. Returns what was dropped.
fn serve(polling: Polling, depth: usize) -> u64 {
    let pool = MempoolConfig { buffers: 1_024, ..MempoolConfig::default() };
    let pool = Mempool::new(&pool).unwrap();
    let orientations = vec![Orientation::Inside];
    let steering = Steering::new(&HashKey::MICROSOFT, SHARDS, SHARDS, orientations).unwrap();
    let steering = Arc::new(steering);
    let book = Book::default();
    let load = Load { seed: 5, clients: 100, requests: u32::MAX, gap: Duration::ZERO };
    let mut nic = SimConfig::new("nic", LANES as u16, steering.clone());
    nic.pacing = Pacing::Lossless;
    let nic = SimNic::open(nic, Box::new(book.clients(load)), |_| book.sink(), &pool).unwrap();
    let device: Box<dyn Device> = Box::new(nic);
    let config = PoolConfig::new(MEMBERS, LANES, depth);
    let (members, clients) = Pool::start(&config, |_| work).unwrap();
    let mut clients = clients.into_iter().map(|client| PacketClient::new(client, SHARDS));
    let service = |_| Box::new(KeyValue { client: clients.next().unwrap() }) as Box<dyn Service>;
    let config =
        RuntimeConfig { polling, ..RuntimeConfig::new(LANES, pool, steering, FlowHasher::fixed()) };
    let shards = (0..SHARDS).map(|id| shard(ShardId(id as u16)));
    let runtime = Runtime::start(config, vec![device], Clock::new(), service, shards).unwrap();

    let mut rng = StdRng::seed_from_u64(7);
    let last = Instant::now() + Duration::from_secs(300);
    // The end comes upon more of them, and upon tasks. Shards without tasks move also while no member of the pool runs.
    let mut begun = 0;
    while runtime.migrator().moved() < MIGRATIONS || book.observed().answered <= 100 {
        let moves: Vec<_> = {
            let migrator = runtime.migrator();
            let owners = (0..).map(ShardId).zip(migrator.owners().to_vec());
            let to =
                |(shard, from)| Move { shard, from, to: LaneId(rng.random_range(0..LANES as u16)) };
            let moves = owners.filter(|(shard, _)| !migrator.is_moving(*shard)).map(to);
            moves.filter(|one| one.from != one.to).take(8).collect()
        };
        begun += moves.len() as u64;
        runtime.migrate(&moves).unwrap();
        runtime.step_migrator();
        assert!(!runtime.is_finished(), "a worker has ended");
        assert!(Instant::now() < last, "shards do not arrive");
        std::thread::sleep(Duration::from_micros(200));
    }
    let report = runtime.join().unwrap();
    let done = members.stop().unwrap();

    assert_eq!(report.violations, []);
    let (sum, observed) = (LaneSample::sum(&report.last.lanes), book.observed());
    assert_eq!(observed.wrong, Vec::<String>::new());
    assert_eq!(observed.answered + sum.dropped_total(), sum.received);
    assert!(observed.answered > 100 && done.tasks > 0, "{observed:?} {done:?}");
    assert_eq!((sum.shards_in, done.panicked), (begun, 0));
    sum.dropped_total()
}

#[test]
fn lanes_that_poll_and_a_deep_pool() {
    assert_eq!(serve(Busy::polling(), 1_024), 0, "there is room for all");
}

#[test]
fn lanes_that_sleep_and_a_narrow_pool() {
    assert!(serve(Interrupt::polling(Duration::ZERO), 2) > 0, "nothing was refused");
}
