//! What a lookup costs: bursts of 32 packets through the tables of 128 shards, in stages, each packet
//! touching its flow's deadline, order of arrival and one state. The first row is the loop without the
//! tables; the others are to be read above it.
//!
//! `cargo bench -p rheostat-state --bench lookup [-- FLOWS...]`

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rheostat_base::{DeviceId, Time};
use rheostat_packet::FlowKey;
use rheostat_state::{
    Arena, FlowHash, FlowHasher, FlowTable, Handle, Probe, StateLayout, TableConfig,
};

const SHARDS: usize = 128;
const BURST: usize = 32;
const ROUNDS: usize = 7;
const BURSTS: usize = 100_000;

/// The state of a flow: as large as a connection tracker's.
type State = [u64; 5];

fn main() {
    let mut flows: Vec<u64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    if flows.is_empty() {
        flows = vec![64 << 10, 1 << 20, 10_000_000];
    }
    let hasher = FlowHasher::new(std::array::from_fn(|word| mix(word as u64 + 1)));
    report(
        "keys and hashes alone",
        0,
        measure(|burst| {
            black_box(keys(&hasher, burst, 1 << 20));
        }),
    );
    for flows in flows {
        let mut bench = Bench::new(hasher, flows);
        report("lookup, uniform", flows, measure(|burst| bench.lookup(burst, flows, |x| x)));
        report("lookup, skewed", flows, measure(|burst| bench.lookup(burst, flows, skew)));
        report("lookup of no flow", flows, measure(|burst| bench.miss(burst, flows)));
        report("flow created, ended", flows, measure(|burst| bench.churn(burst, flows)));
    }
}

/// The best of some rounds, in nanoseconds per packet. `run` is told which burst it is.
fn measure(mut run: impl FnMut(u64)) -> f64 {
    let mut best = Duration::MAX;
    for round in 0..ROUNDS {
        let start = Instant::now();
        for burst in 0..BURSTS {
            run((round * BURSTS + burst) as u64);
        }
        best = best.min(start.elapsed());
    }
    best.as_nanos() as f64 / (BURSTS * BURST) as f64
}

fn report(what: &str, flows: u64, ns: f64) {
    println!("{what:<24} {flows:>10} flows {ns:>7.1} ns");
}

struct Bench {
    tables: Vec<FlowTable>,
    state: Handle<State>,
    hasher: FlowHasher,
}

/// What a packet brings along.
#[derive(Clone, Copy)]
struct Arrival {
    key: FlowKey,
    hash: FlowHash,
    shard: usize,
}

impl Bench {
    fn new(hasher: FlowHasher, flows: u64) -> Bench {
        let mut layout = StateLayout::new();
        let state = layout.reserve::<State>().expect("the state fits");
        // Shards are filled by chance: some room above the mean.
        let capacity = flows as usize / SHARDS + 8 * (flows as f64 / SHARDS as f64).sqrt() as usize;
        let config = TableConfig { capacity, aliases: false };
        let arena = Arena::new(SHARDS, config, Arc::new(layout), hasher).expect("there is memory");
        let mut bench = Bench { tables: arena.into_tables(), state, hasher };
        for flow in 0..flows {
            bench.create(arrival(&hasher, flow));
        }
        bench
    }

    fn create(&mut self, Arrival { key, hash, shard }: Arrival) {
        let table = &mut self.tables[shard];
        let id = table.insert(hash, &key, Time::ZERO).expect("there is room");
        let mut flow = table.flow(id).expect("just created");
        flow.init(self.state, [0; 5]);
        flow.set_deadline(Time::from_secs(100));
    }

    /// The stages before the packets are served.
    fn stage(&self, arrivals: &[Arrival; BURST]) -> [Probe; BURST] {
        for arrival in arrivals {
            self.tables[arrival.shard].prefetch(arrival.hash);
        }
        arrivals.map(|arrival| self.tables[arrival.shard].probe(arrival.hash))
    }

    fn lookup(&mut self, burst: u64, flows: u64, place: impl Fn(u64) -> u64) {
        let arrivals = std::array::from_fn(|packet| {
            arrival(&self.hasher, flow_of(place(mix(burst * BURST as u64 + packet as u64)), flows))
        });
        let probes = self.stage(&arrivals);
        for (Arrival { key, hash, shard }, probe) in arrivals.iter().zip(probes) {
            let table = &mut self.tables[*shard];
            let id = table.find(*hash, key, probe).expect("the flow exists");
            let mut flow = table.flow(id).expect("just found");
            black_box(flow.is_expired(Time::from_nanos(burst)));
            black_box(flow.note_arrival(true, DeviceId(0), burst as u32));
            flow.state(self.state).expect("initialised")[0] += 1;
            flow.set_deadline(Time::from_secs(100) + Duration::from_nanos(burst));
        }
    }

    fn miss(&mut self, burst: u64, flows: u64) {
        let arrivals = keys(&self.hasher, burst, flows).map(|mut arrival| {
            arrival.key = arrival.key.reversed();
            arrival.hash = self.hasher.hash(&arrival.key);
            arrival
        });
        let probes = self.stage(&arrivals);
        for (Arrival { key, hash, shard }, probe) in arrivals.iter().zip(probes) {
            assert!(self.tables[*shard].find(*hash, key, probe).is_none());
        }
    }

    /// Every packet ends its flow and begins it anew.
    fn churn(&mut self, burst: u64, flows: u64) {
        let arrivals = keys(&self.hasher, burst, flows);
        let probes = self.stage(&arrivals);
        for (arrival, probe) in arrivals.into_iter().zip(probes) {
            let table = &mut self.tables[arrival.shard];
            let id = table.find(arrival.hash, &arrival.key, probe).expect("the flow exists");
            table.remove(id);
            self.create(arrival);
        }
        for table in &mut self.tables {
            table.end_burst();
        }
    }
}

/// The packets of a burst, of flows drawn uniformly.
fn keys(hasher: &FlowHasher, burst: u64, flows: u64) -> [Arrival; BURST] {
    std::array::from_fn(|packet| {
        arrival(hasher, flow_of(mix(burst * BURST as u64 + packet as u64), flows))
    })
}

/// A packet of flow `flow`.
fn arrival(hasher: &FlowHasher, flow: u64) -> Arrival {
    let bits = mix(flow ^ 0x5bd1_e995);
    let first = (Ipv4Addr::from_bits(flow as u32), bits as u16);
    let second = (Ipv4Addr::from_bits((bits >> 32) as u32), (bits >> 16) as u16);
    let key = FlowKey::v4(first, second, 6, 0);
    Arrival { key, hash: hasher.hash(&key), shard: (bits >> 25) as usize % SHARDS }
}

/// One of `flows` flows, chosen by `random`.
fn flow_of(random: u64, flows: u64) -> u64 {
    ((u128::from(random) * u128::from(flows)) >> 64) as u64
}

/// Makes low values likely: the product of three random numbers, as heavy at its head as a Zipf
/// distribution with exponent 1 of some 64 k flows.
fn skew(random: u64) -> u64 {
    let times = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64;
    times(times(random, mix(random)), mix(!random))
}

/// SplitMix64.
fn mix(value: u64) -> u64 {
    let x = value.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
