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
const ROUNDS: usize = 200;
const BURSTS: usize = 4_000;

/// The state of a flow: as large as a connection tracker's.
type State = [u64; 5];

fn main() {
    let mut flows: Vec<u64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    if flows.is_empty() {
        flows = vec![64 << 10, 1 << 20, 10_000_000];
    }
    let hasher = FlowHasher::new(std::array::from_fn(|word| mix(word as u64 + 1)));
    let mut arrivals = [arrival(&hasher, 0); BURST];
    let alone = measure(|burst| {
        for (packet, place) in (0..).zip(&mut arrivals) {
            *place = arrival(&hasher, flow_of(mix(burst * BURST as u64 + packet), 1 << 20));
        }
        black_box(&arrivals);
    });
    report("keys and hashes alone", 0, alone);
    for flows in flows {
        let mut bench = Bench::new(hasher, flows);
        let uniform = |random| flow_of(random, flows);
        let skewed = |random| flow_of(skew(random), flows);
        report("lookup, uniform", flows, measure(|burst| bench.lookup(burst, uniform)));
        report("lookup, skewed", flows, measure(|burst| bench.lookup(burst, skewed)));
        report("lookup of no flow", flows, measure(|burst| bench.miss(burst, flows)));
        report("flow created, ended", flows, measure(|burst| bench.churn(burst, flows)));
    }
}

/// The best of some rounds, in nanoseconds per packet. `run` gets the number of the burst.
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
    arrivals: [Arrival; BURST],
    probes: [Probe; BURST],
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
        let mut bench = Bench {
            tables: arena.into_tables(),
            state,
            hasher,
            arrivals: [arrival(&hasher, 0); BURST],
            probes: [Probe::default(); BURST],
        };
        for flow in 0..flows {
            create(&mut bench.tables, state, &arrival(&hasher, flow));
        }
        bench
    }

    /// The packets of a burst, and the stages before they are served.
    #[inline]
    fn stage(&mut self, flow: impl Fn(u64) -> u64, burst: u64) {
        for (packet, place) in (0..).zip(&mut self.arrivals) {
            *place = arrival(&self.hasher, flow(mix(burst * BURST as u64 + packet)));
            self.tables[place.shard].prefetch_hint().prefetch(place.hash);
        }
        for (arrival, probe) in self.arrivals.iter().zip(&mut self.probes) {
            *probe = self.tables[arrival.shard].probe(arrival.hash, arrival.key.family());
        }
    }

    fn lookup(&mut self, burst: u64, flow: impl Fn(u64) -> u64) {
        self.stage(flow, burst);
        let mut late = 0;
        for (Arrival { key, hash, shard }, probe) in self.arrivals.iter().zip(&self.probes) {
            let table = &mut self.tables[*shard];
            let mut flow = table.find_flow(*hash, key, *probe).expect("the flow exists");
            assert!(!flow.is_expired(Time::from_nanos(burst)));
            late += u64::from(flow.note_arrival(true, DeviceId(0), burst as u32));
            flow.state(self.state).expect("initialised")[0] += 1;
            flow.set_deadline(Time::from_nanos((100 << 30) + burst));
        }
        black_box(late);
    }

    /// Packets of flows that do not exist.
    fn miss(&mut self, burst: u64, flows: u64) {
        self.stage(|random| flow_of(random, flows) + (1 << 31), burst);
        for (Arrival { key, hash, shard }, probe) in self.arrivals.iter().zip(&self.probes) {
            assert!(self.tables[*shard].find(*hash, key, *probe).is_none());
        }
    }

    /// Every packet ends its flow and begins it anew.
    fn churn(&mut self, burst: u64, flows: u64) {
        self.stage(|random| flow_of(random, flows), burst);
        for (arrival, probe) in self.arrivals.iter().zip(&self.probes) {
            let table = &mut self.tables[arrival.shard];
            let id = table.find(arrival.hash, &arrival.key, *probe).expect("the flow exists");
            table.remove(id);
            create(&mut self.tables, self.state, arrival);
        }
        for arrival in &self.arrivals {
            self.tables[arrival.shard].end_burst();
        }
    }
}

fn create(tables: &mut [FlowTable], state: Handle<State>, arrival: &Arrival) {
    let table = &mut tables[arrival.shard];
    let id = table.insert(arrival.hash, &arrival.key, Time::ZERO).expect("there is room");
    let mut flow = table.flow(id).expect("just created");
    flow.init(state, [0; 5]);
    flow.set_deadline(Time::from_secs(100));
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
