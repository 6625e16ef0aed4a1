//! Shards that move between running lanes while packets arrive on real interfaces. Needs root, and is only
//! run with `RHEO_ROOT_TESTS=1`; prints when it is not.
//!
//! Timed: threads, sleep, clock, processes, devices, sockets.

use std::collections::HashSet;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat_base::{Clock, LaneId, ShardId};
use rheostat_io::backend::bpf::FenceMode;
use rheostat_io::{
    Device, DeviceCounters, PacketConfig, PacketDevice, TapConfig, TapDevice, XdpConfig, XdpDevice,
};
use rheostat_packet::{Mempool, MempoolConfig};
use rheostat_run::poll::Interrupt;
use rheostat_run::{
    Batch, LaneSample, Move, Output, RunReport, Runtime, RuntimeConfig, Service, ShardSet,
};
use rheostat_steer::{HashKey, Orientation, Steering};

use rheostat_testkit::namespace::{isolated, shell};
use rheostat_testkit::numbered::number;
use rheostat_testkit::runtime::{config, shards};
use rheostat_testkit::service::note_order;
use rheostat_testkit::veth::await_links;

const LANES: u16 = 3;
const SHARDS: usize = 32;
const FLOWS: u16 = 64;
/// Shards to move, and packets to arrive meanwhile, at least. Strict fences take some ten milliseconds, so a run
/// takes seconds.
const MOVES: u64 = 1_000;
const PACKETS: u64 = 10_000;
/// Packets sent at once, and the pause after them.
const BURST: usize = 16;
const PAUSE: Duration = Duration::from_millis(1);
/// Packets under way at most: the kernel's queues on the way to the device hold more, and drop, without a word to it,
/// what comes while they are full and the kernel does not get a core.
const UNDER_WAY: u64 = 192;
/// How long nothing may go on: what takes milliseconds where nothing else keeps the lanes from their cores.
const LIMIT: Duration = Duration::from_secs(120);

/// What numbered packets show, whatever their stamps are.
#[derive(Default)]
struct Witness {
    seen: AtomicU64,
    doubled: AtomicU64,
    overtaken: AtomicU64,
}

/// After how many bursts a lane is held up, and for how long: longer than a strict fence takes, so that packets
/// that were placed by old entries still wait for the lane when it is told to give a shard away.
const HELD_UP_EVERY: u32 = 64;
const HELD_UP: Duration = Duration::from_millis(60);

/// Takes packets and looks at their numbers.
struct Counting {
    witness: Arc<Witness>,
    bursts: u32,
}

/// Numbers seen of each flow, and the highest of them.
type Seen = Vec<(HashSet<u32>, Option<u32>)>;

impl Service for Counting {
    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        self.bursts += 1;
        if self.bursts.is_multiple_of(HELD_UP_EVERY) {
            thread::sleep(HELD_UP);
        }
        let witness = &self.witness;
        for (packet, info) in batch.drain() {
            let shard = shards.get_mut(info.shard).expect("a packet meets its shard");
            if let Some((flow, sequence)) = number(&packet) {
                let (seen, highest) = &mut shard.split::<Seen>().1[flow as usize];
                witness.seen.fetch_add(1, Ordering::Relaxed);
                let doubled = !seen.insert(sequence);
                witness.doubled.fetch_add(doubled.into(), Ordering::Relaxed);
                let overtaken = highest.is_some_and(|highest| sequence < highest);
                witness.overtaken.fetch_add(overtaken.into(), Ordering::Relaxed);
                *highest = (*highest).max(Some(sequence));
            }
            note_order(&packet, info, shards, out);
            out.consume(packet);
        }
    }
}

/// Sends numbered datagrams of all flows until told to stop.
struct Sender {
    thread: JoinHandle<u64>,
    over: Arc<AtomicBool>,
    /// How many it may have sent by now.
    allowed: Arc<AtomicU64>,
}

impl Sender {
    fn start() -> Sender {
        let (over, allowed) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(UNDER_WAY)));
        let (told, may) = (over.clone(), allowed.clone());
        let socket = |flow| {
            let socket = UdpSocket::bind(("10.9.0.2", 1_000 + flow)).expect("the address is ours");
            socket.connect(("10.9.0.1", 9_999)).expect("there is a route");
            socket
        };
        let body = move || {
            let sockets: Vec<_> = (0..FLOWS).map(socket).collect();
            let mut rng = StdRng::seed_from_u64(3);
            let mut sequences = vec![0_u32; sockets.len()];
            let mut sent = 0;
            while !told.load(Ordering::Relaxed) {
                let burst = (BURST as u64).min(may.load(Ordering::Relaxed).saturating_sub(sent));
                sent += burst;
                for _ in 0..burst {
                    let flow = rng.random_range(0..sockets.len());
                    let (name, sequence) =
                        ((flow as u32).to_be_bytes(), sequences[flow].to_be_bytes());
                    sockets[flow].send(&[name, sequence].concat()).expect("the link is up");
                    sequences[flow] += 1;
                }
                thread::sleep(PAUSE);
            }
            sent
        };
        Sender { thread: thread::spawn(body), over, allowed }
    }

    /// So many have arrived, or were refused by the device.
    fn note_arrived(&self, arrived: u64) {
        self.allowed.store(arrived + UNDER_WAY, Ordering::Relaxed);
    }

    /// Stops it. Returns how many packets it has sent.
    fn stop(self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("it sends")
    }
}

fn start(
    device: impl FnOnce(Arc<Steering>, &Mempool) -> Box<dyn Device>,
    witness: &Arc<Witness>,
) -> Runtime {
    let pool = Mempool::new(&MempoolConfig::umem(8_192)).unwrap();
    let steering =
        Steering::new(&HashKey::MICROSOFT, 128, SHARDS, vec![Orientation::Inside]).unwrap();
    let steering = Arc::new(steering);
    let device = device(steering.clone(), &pool);
    let config = RuntimeConfig {
        polling: Interrupt::polling(Duration::from_micros(20)),
        steering,
        handoff_capacity: 1_024,
        ..config(LANES.into(), SHARDS, pool)
    };
    let seen: Seen = vec![Default::default(); FLOWS.into()];
    let shards = shards(SHARDS, FLOWS.into(), seen);
    let service =
        |_| Box::new(Counting { witness: witness.clone(), bursts: 0 }) as Box<dyn Service>;
    Runtime::start(config, vec![device], Clock::new(), service, shards).unwrap()
}

/// Packets that the service saw, or that the device refused.
fn arrived(runtime: &Runtime, witness: &Witness) -> u64 {
    witness.seen.load(Ordering::Relaxed) + refused(&runtime.view().sample().devices)
}

fn refused(devices: &[DeviceCounters]) -> u64 {
    devices.iter().flat_map(|device| &device.queue_full).sum()
}

/// Moves shards about at random until enough have moved and enough packets have arrived, and some more until one of
/// those has waited for its shard.
fn move_about(runtime: &Runtime, witness: &Witness, sender: &Sender) {
    let mut rng = StdRng::seed_from_u64(7);
    let (mut moved, mut last) = (0, Instant::now());
    let has_waited = || runtime.migration_times().held.count() > 0;
    let is_enough = || {
        witness.seen.load(Ordering::Relaxed) >= PACKETS
            && runtime.migrator().moved() >= MOVES
            && (has_waited() || runtime.migrator().moved() >= 10 * MOVES)
    };
    while !is_enough() {
        let owners = runtime.migrator().owners().to_vec();
        let anywhere = owners.into_iter().enumerate().map(|(shard, from)| Move {
            shard: ShardId(shard as u16),
            from,
            to: LaneId(rng.random_range(0..LANES)),
        });
        let moves: Vec<_> = anywhere.filter(|one| one.from != one.to).collect();
        runtime.migrate(&moves).unwrap();
        while !runtime.step_migrator() {
            sender.note_arrived(arrived(runtime, witness));
            assert!(last.elapsed() < LIMIT, "shards do not arrive");
            thread::sleep(Duration::from_micros(100));
        }
        sender.note_arrived(arrived(runtime, witness));
        if runtime.migrator().moved() > moved {
            (moved, last) = (runtime.migrator().moved(), Instant::now());
        }
    }
}

/// What came of a run.
struct Outcome {
    report: RunReport,
    lanes: LaneSample,
    witness: Arc<Witness>,
}

/// Moves shards under traffic to the device's interface, and checks that every packet is seen once, but for those
/// that the device counts as refused.
fn moved(device: impl FnOnce(Arc<Steering>, &Mempool) -> Box<dyn Device>) -> Outcome {
    let witness = Arc::default();
    let runtime = start(device, &witness);
    shell(
        "ip addr add 10.9.0.2/24 dev rmig0
         ip neigh replace 10.9.0.1 lladdr 02:00:00:00:00:02 dev rmig0 nud permanent",
    );
    let sender = Sender::start();
    move_about(&runtime, &witness, &sender);
    let sent = sender.stop();
    // What was sent last is on its way.
    let stopped = Instant::now();
    while arrived(&runtime, &witness) < sent && stopped.elapsed() < LIMIT {
        thread::sleep(Duration::from_millis(1));
    }
    runtime.stop_sources();
    let report = runtime.join().unwrap();
    let lanes = LaneSample::sum(&report.last.lanes);
    let (seen, doubled) = (&witness.seen, &witness.doubled);
    let told = format!("{lanes:?} {:?}", report.last.devices);
    let (late, reordered) = (lanes.late_handoff, lanes.reordered);
    println!("{} moves, {sent} packets, {late} late, {reordered} overtaken", lanes.shards_in);
    assert_eq!(report.violations, [], "{told}");
    // A lane that is held up may have a full queue, and the device counts what it refuses.
    let accounted = seen.load(Ordering::Relaxed) + refused(&report.last.devices);
    assert_eq!((accounted, doubled.load(Ordering::Relaxed)), (sent, 0), "{told}");
    // What numbers show, stamps show as well.
    assert_eq!(witness.overtaken.load(Ordering::Relaxed), reordered, "{told}");
    Outcome { report, lanes, witness }
}

fn veth() {
    shell(
        "ip link add rmig0 type veth peer name rmig1
         for each in rmig0 rmig1; do
           sysctl -qw net.ipv6.conf.$each.disable_ipv6=1
           ip link set $each up
         done",
    );
    await_links(&["rmig0", "rmig1"]);
}

fn on_xdp(fence: FenceMode) -> Outcome {
    veth();
    moved(|steering, pool| {
        let config = XdpConfig { fence, ..XdpConfig::new("live", "rmig1", LANES, steering) };
        Box::new(XdpDevice::open(config, pool).unwrap())
    })
}

fn on_packet_sockets(fence: FenceMode) -> Outcome {
    veth();
    moved(|steering, pool| {
        let config = PacketConfig { fence, ..PacketConfig::new("live", "rmig1", LANES, steering) };
        Box::new(PacketDevice::open(config, pool).unwrap())
    })
}

/// Nothing comes late behind strict fences, and packets had to wait for their shards.
fn expect_strict(Outcome { report, lanes, witness }: &Outcome) {
    assert_eq!((lanes.late_handoff, lanes.reordered), (0, 0));
    assert_eq!(witness.overtaken.load(Ordering::Relaxed), 0);
    assert!(report.migration.held.count() > 0, "no packet waited for a move");
}

#[test]
fn af_xdp_loses_doubles_and_reorders_nothing() {
    let test = "af_xdp_loses_doubles_and_reorders_nothing";
    isolated(module_path!(), test, || expect_strict(&on_xdp(FenceMode::Strict)));
}

#[test]
fn af_packet_loses_doubles_and_reorders_nothing() {
    let test = "af_packet_loses_doubles_and_reorders_nothing";
    isolated(module_path!(), test, || expect_strict(&on_packet_sockets(FenceMode::Strict)));
}

#[test]
fn af_xdp_with_fast_fences_loses_nothing_and_counts_what_comes_late() {
    let test = "af_xdp_with_fast_fences_loses_nothing_and_counts_what_comes_late";
    isolated(module_path!(), test, || {
        let lanes = on_xdp(FenceMode::Fast).lanes;
        assert!(lanes.reordered <= lanes.late_handoff);
    });
}

#[test]
fn af_packet_with_fast_fences_loses_nothing_and_counts_what_comes_late() {
    let test = "af_packet_with_fast_fences_loses_nothing_and_counts_what_comes_late";
    isolated(module_path!(), test, || {
        let lanes = on_packet_sockets(FenceMode::Fast).lanes;
        assert!(lanes.reordered <= lanes.late_handoff);
    });
}

#[test]
fn tap_loses_nothing_and_counts_what_comes_late() {
    isolated(module_path!(), "tap_loses_nothing_and_counts_what_comes_late", || {
        let outcome = moved(|steering, pool| {
            let config = TapConfig::new("live", "rmig0", LANES, steering);
            let device = TapDevice::open(config, pool).unwrap();
            shell("sysctl -qw net.ipv6.conf.rmig0.disable_ipv6=1; ip link set rmig0 up");
            Box::new(device)
        });
        assert!(outcome.lanes.reordered <= outcome.lanes.late_handoff);
    });
}
