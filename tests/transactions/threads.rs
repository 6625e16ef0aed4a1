//! Lanes on threads that all change the same objects: nothing is lost and nothing counted twice.
//!
//! Timed: threads, sleep, clock.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use rheostat::{
    Admission, Chain, Cx, Distributed, Ending, FlowKey, FunctionSpec, Map, Mix, MixConfig,
    NetworkFunction, Objects, Outcome, Packet, Stage, StateLayout, Vector, Verdict,
};
use rheostat_base::{Clock, DeviceId, LaneId, Time};
use rheostat_io::{Collector, Pacing, SimConfig, SimNic};
use rheostat_nf::AnyChain;
use rheostat_packet::{Mempool, MempoolConfig};
use rheostat_run::{LaneSample, Metrics, Routes, RunReport, Runtime, RuntimeConfig};
use rheostat_state::txn::Txn;
use rheostat_state::{FlowHasher, FragmentConfig, TableConfig};
use rheostat_steer::{HashKey, Orientation, Steering};
use rheostat_traffic::{Arrival, Source};

const PACKETS: u64 = 20_000;
const HOSTS: usize = 64;
const LIMIT: Duration = Duration::from_secs(300);

/// Has two lanes meet in the middle of a transaction each, once: of two that have read what both will change, one at most
/// can commit.
struct Meeting {
    lanes: usize,
    /// Threads of lanes that have read it.
    there: Mutex<HashSet<ThreadId>>,
}

impl Meeting {
    /// Of two of so many lanes. One lane has no other to meet.
    fn of(lanes: usize) -> Meeting {
        Meeting { lanes: lanes.min(2), there: Mutex::default() }
    }

    /// The lane of this thread has read; returns when two have.
    fn attend(&self) {
        let start = Instant::now();
        loop {
            let mut there = self.there.lock().unwrap();
            if there.len() < self.lanes {
                there.insert(thread::current().id());
            }
            if there.len() == self.lanes {
                return;
            }
            drop(there);
            assert!(start.elapsed() < LIMIT, "no other lane has packets");
            thread::yield_now();
        }
    }
}

/// The first [`PACKETS`] packets of a mix that are not pings: a lossless NIC delivers a ping once all before it is done with, for
/// which lanes that meet cannot wait.
struct WithoutPings {
    mix: Mix,
    left: u64,
}

impl Source for WithoutPings {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        self.left = self.left.checked_sub(1)?;
        loop {
            let arrival = self.mix.next(frame)?;
            let is_ping = match (&frame[12..14], frame[23], frame[20]) {
                ([0x08, 0x00], protocol, _) => protocol == 1,
                (_, _, next) => next == 58,
            };
            if !is_ping {
                return Some(arrival);
            }
        }
    }
}

/// Counts everything several times.
struct Counting {
    meeting: Meeting,
    /// All packets; what the flows that have ended had.
    sums: Arc<Vector<u64>>,
    /// Packets by the last bits of an address.
    hosts: Arc<Map<u64, u64>>,
    packets: Arc<Distributed<u64>>,
}

impl Counting {
    fn count(&self, cx: &mut Cx<'_, ()>, packet: &Packet<'_>) -> Outcome<()> {
        self.sums.read(cx, 0)?;
        self.meeting.attend();
        self.sums.update(cx, 0, |sum| *sum += 1)?;
        let host = packet.arrival_key().raw()[0] % HOSTS as u64;
        let known = self.hosts.get(cx, &host)?.unwrap_or(0);
        self.hosts.set(cx, host, known + 1)?.expect("room for all hosts");
        self.packets.update(cx, |packets| *packets += 1)
    }
}

impl NetworkFunction for Counting {
    type Flow = u64;
    type Shard = ();

    fn spec(&self) -> FunctionSpec {
        FunctionSpec { ends_with_run: true, ..FunctionSpec::five_tuple() }
    }

    fn first(&self, cx: &mut Cx<'_, ()>, packet: &mut Packet<'_>) -> Outcome<Admission<u64>> {
        self.count(cx, packet)?;
        Ok(Admission::Admit(1, Verdict::Forward))
    }

    fn packet(
        &self,
        cx: &mut Cx<'_, ()>,
        packet: &mut Packet<'_>,
        packets: &mut u64,
    ) -> Outcome<Verdict> {
        // Counted before it is certain.
        *packets += 1;
        self.count(cx, packet)?;
        if packets.is_multiple_of(50) {
            cx.close();
        }
        Ok(Verdict::Forward)
    }

    fn closed(
        &self,
        cx: &mut Cx<'_, ()>,
        _: &FlowKey,
        packets: &mut u64,
        _: Ending,
    ) -> Outcome<()> {
        self.sums.update(cx, 1, |sum| *sum += *packets)
    }

    fn metrics(&self, (): &(), metrics: &mut Metrics) {
        metrics.add("counted", self.packets.total());
    }
}

/// Runs a chain on as many threads as lanes.
fn run_on_threads<C: Chain>(
    lanes: usize,
    chain: C,
    layout: StateLayout,
    source: impl Source + 'static,
) -> RunReport {
    let pool = MempoolConfig { buffers: 4_096, ..MempoolConfig::default() };
    let pool = Mempool::new(&pool).unwrap();
    let steering = Steering::new(&HashKey::MICROSOFT, 128, 64, vec![Orientation::Inside]).unwrap();
    let chain = AnyChain::new(chain, layout);
    let steering = Arc::new(chain.steering_for(steering).unwrap());
    let mut nic = SimConfig::new("nic", lanes as u16, steering.clone());
    nic.pacing = Pacing::Lossless;
    let collector = Collector::new();
    let sink = |queue| collector.sink(queue);
    let nic = SimNic::open(nic, Box::new(source), sink, &pool).unwrap();
    let hasher = FlowHasher::fixed();
    let table = TableConfig { capacity: 1_024, aliases: false };
    let fragments = FragmentConfig::default();
    let shards = chain.make_shards(&steering, table, hasher, fragments, 1).unwrap();
    let config = RuntimeConfig::new(lanes, pool, steering, hasher);
    let routes = Routes(vec![DeviceId(0)]);
    let service = |lane| chain.service(lane, &routes, None);
    let runtime =
        Runtime::start(config, vec![Box::new(nic)], Clock::new(), service, shards).unwrap();
    let start = Instant::now();
    while !runtime.is_finished() {
        assert!(start.elapsed() < LIMIT, "the run does not end");
        thread::sleep(Duration::from_millis(1));
    }
    runtime.join().unwrap()
}

#[test]
fn totals_are_exact_on_any_number_of_lanes() {
    for lanes in [1, 2, 8] {
        let objects = Objects::new(lanes);
        let sums = Arc::new(Vector::new(&objects, "sums", [0, 0]));
        let hosts = Arc::new(Map::new(&objects, "hosts", HOSTS));
        let add = |sum: &mut u64, part: &u64| *sum += part;
        let packets = Distributed::new(&objects, "packets", 0, add, Duration::ZERO);
        let (sums, hosts, packets) = (sums, hosts, Arc::new(packets));
        let meeting = Meeting::of(lanes);
        let counting = Counting {
            meeting,
            sums: sums.clone(),
            hosts: hosts.clone(),
            packets: packets.clone(),
        };
        let mut layout = StateLayout::new();
        let chain = Stage::on_objects(counting, &objects, &mut layout).unwrap();
        let mix = Mix::new(MixConfig { flows: 500, ..MixConfig::default() }).unwrap();
        let source = WithoutPings { mix, left: PACKETS };
        let report = run_on_threads(lanes, chain, layout, source);

        assert_eq!(report.violations, [], "{lanes} lanes");
        let counters = LaneSample::sum(&report.last.lanes);
        assert_eq!((counters.sent, counters.flows_live()), (PACKETS, 0), "{lanes} lanes");
        let txn = &mut Txn::new(&objects, LaneId(0));
        txn.begin(Time::ZERO);
        let sum = |txn: &mut Txn, at| sums.read(txn, at).unwrap();
        assert_eq!((sum(txn, 0), sum(txn, 1)), (PACKETS, PACKETS), "{lanes} lanes");
        let by_host = |host| hosts.get(txn, &host).unwrap().unwrap_or(0);
        assert_eq!((0..HOSTS as u64).map(by_host).sum::<u64>(), PACKETS, "{lanes} lanes");
        assert_eq!(packets.read(txn).unwrap(), PACKETS);
        assert_eq!(report.metrics.get("counted"), PACKETS);
        let figure = |name| report.metrics.get(name);
        let (done, aborted) = (figure("transactions"), figure("transactions_aborted"));
        assert!(done > PACKETS / 32, "{done}");
        assert_eq!(aborted > 0, lanes > 1, "{lanes} lanes: {aborted} aborted, {done} not");
    }
}
