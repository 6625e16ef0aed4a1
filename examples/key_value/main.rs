//! A store of keys and values over UDP, written as a service: what takes a while is done by a pool, answers
//! leave in the order of each client's requests, and all that while shards move between lanes.
//!
//!     cargo run --release --example key_value
//!
//! does so on a simulated interface, with clients that check every answer. As root, `key_value veth0 60`
//! serves on a real one for a minute, whatever address is asked; it does not answer ARP, so clients need an
//! entry for it (`ip neighbour add`).

mod client;
mod request;
mod service;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat::service::*;
use rheostat::{ShardId, StateLayout};

use client::{Book, Load};
use service::{KeyValue, Store, work};

const LANES: usize = 2;
const MEMBERS: usize = 2;
const SHARDS: usize = 64;
const BUFFERS: u32 = 512;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut rng = StdRng::from_os_rng();
    // Both directions of a flow belong to the same shard, and its key has the client first.
    let orientations = vec![Orientation::Inside];
    let steering = Arc::new(Steering::new(&HashKey::MICROSOFT, 128, SHARDS, orientations)?);
    let pool = Mempool::new(&MempoolConfig { buffers: BUFFERS, ..MempoolConfig::default() })?;
    let book = Book::default();
    let mut arguments = std::env::args().skip(1);
    let (device, seconds): (Box<dyn Device>, _) = match arguments.next() {
        Some(interface) => {
            let config = PacketConfig::new("live", interface, LANES as u16, steering.clone());
            let seconds = arguments.next().unwrap_or_else(|| "10".into()).parse()?;
            (Box::new(PacketDevice::open(config, &pool)?), seconds)
        }
        None => {
            // An interface in this process, whose clients ask as fast as they are answered.
            let load = Load { seed: 1, clients: 200, requests: 100_000, gap: Duration::ZERO };
            let mut config = SimConfig::new("sim", LANES as u16, steering.clone());
            config.pacing = Pacing::Lossless;
            let clients = Box::new(book.clients(load));
            (Box::new(SimNic::open(config, clients, |_| book.sink(), &pool)?), u64::MAX)
        }
    };

    // Room for every packet there may be: nothing is refused.
    let depth = pool.capacity();
    let (members, clients) = Pool::start(&PoolConfig::new(MEMBERS, LANES, depth), |_| work)?;
    let mut clients = clients.into_iter().map(|client| PacketClient::new(client, SHARDS));
    let service = |_| {
        Box::new(KeyValue { client: clients.next().expect("a client per lane") })
            as Box<dyn Service>
    };
    let hasher = FlowHasher::new(rng.random());
    let config = RuntimeConfig {
        polling: Interrupt::polling(Duration::from_micros(50)),
        ..RuntimeConfig::new(LANES, pool, steering, hasher)
    };
    let shards = (0..SHARDS).map(|id| shard(ShardId(id as u16), hasher));
    let runtime = Runtime::start(config, vec![device], Clock::new(), service, shards)?;

    let started = Instant::now();
    while !runtime.is_finished() && started.elapsed().as_secs() < seconds {
        let shard = ShardId(rng.random_range(0..SHARDS as u16));
        let to = LaneId(rng.random_range(0..LANES as u16));
        let (from, is_moving) = {
            let migrator = runtime.migrator();
            (migrator.owners()[shard.index()], migrator.is_moving(shard))
        };
        if from != to && !is_moving {
            runtime.migrate(&[Move { shard, from, to }])?;
        }
        runtime.step_migrator();
        std::thread::sleep(Duration::from_micros(200));
    }
    let report = runtime.join()?;
    let done = members.stop()?;

    let (sum, observed) = (LaneSample::sum(&report.last.lanes), book.observed());
    println!("{} packets, {} answered, {} dropped", sum.received, sum.sent, sum.dropped_total());
    println!("{} digests by {MEMBERS} members of the pool", done.tasks);
    println!("{} shards moved between {LANES} lanes", sum.shards_in);
    observed.wrong.iter().for_each(|wrong| println!("wrong: {wrong}"));
    report.violations.iter().for_each(|violation| println!("account: {violation}"));
    let is_simulated = seconds == u64::MAX;
    if !report.violations.is_empty() || is_simulated && observed.answered != sum.sent {
        return Err("the store is not sound".into());
    }
    println!("account ok{}", if is_simulated { ", all answers right and in order" } else { "" });
    Ok(())
}

/// A shard without clients. The store needs no table of flows.
fn shard(id: ShardId, hasher: FlowHasher) -> Box<Shard> {
    let table = TableConfig { capacity: 1, aliases: false };
    let table = FlowTable::new(table, Arc::new(StateLayout::new()), hasher).expect("memory");
    let fragments = FragmentTracker::new(FragmentConfig::default());
    Box::new(Shard { id, table, fragments, local: Store::new() })
}
