//! The start of a run: a source begins when all lanes are polled.
//!
//! Timed: threads, sleep, clock.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rheostat_base::{Clock, DeviceId, Time};
use rheostat_io::{
    Device, DeviceMonitor, NullSink, Pacing, QueuePair, Rest, RxQueue, SimConfig, SimNic,
};
use rheostat_packet::{Burst, PoolCache};
use rheostat_run::poll::metronome::MetronomeSettings;
use rheostat_run::poll::{Busy, Interrupt};
use rheostat_run::{LaneSample, Runtime, RuntimeConfig};
use rheostat_steer::IndirectionTable;
use rheostat_testkit::datagrams::Datagrams;
use rheostat_testkit::runtime::{config, pool, shards};
use rheostat_testkit::service::per_packet;
use rheostat_traffic::{Arrival, Source};

const LANES: usize = 2;
const SHARDS: usize = 16;
const FLOWS: u16 = 256;
/// How long the first poll of a lane takes.
const STALL: Duration = Duration::from_millis(2_500);
/// Nanoseconds between two packets.
const GAP: u64 = 5_000_000;
/// Descriptors of a lane's ring: for the packets of more than a second, and of less than the first poll takes.
const DESCRIPTORS: u32 = 128;
const PACKETS: u64 = 500;
const LIMIT: Duration = Duration::from_secs(120);

/// Datagrams at equal distances.
struct Paced(Datagrams, u64);

impl Source for Paced {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let time = Time::from_nanos(self.1 * GAP);
        self.1 += 1;
        Some(Arrival { time, ..self.0.next(frame)? })
    }
}

/// A device whose second queue is slow at its first poll, as a lane is whose worker has no core yet.
struct SlowToStart(SimNic);

struct SlowRx {
    queue: Box<dyn RxQueue>,
    stall: Option<Duration>,
}

impl RxQueue for SlowRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        if let Some(stall) = self.stall.take() {
            std::thread::sleep(stall);
        }
        self.queue.recv(burst, pool, now)
    }

    fn backlog(&self) -> usize {
        self.queue.backlog()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.queue.wait_fd()
    }

    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        self.queue.rest(pool, now)
    }
}

impl Device for SlowToStart {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn id(&self) -> DeviceId {
        self.0.id()
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        let stalls = [None, Some(STALL)];
        let slow = |(pair, stall): (QueuePair, _)| QueuePair {
            rx: Box::new(SlowRx { queue: pair.rx, stall }),
            tx: pair.tx,
        };
        self.0.queues().into_iter().zip(stalls).map(slow).collect()
    }

    fn table(&self) -> Option<Arc<dyn IndirectionTable>> {
        self.0.table()
    }

    fn await_begin(&mut self) {
        self.0.await_begin();
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.0.monitor()
    }
}

#[test]
fn nothing_is_lost_before_the_last_lane_is_polled() {
    let policies = [
        Busy::polling(),
        Interrupt::polling(Duration::ZERO),
        MetronomeSettings::default().polling(),
    ];
    for polling in policies {
        let pool = pool(4_096);
        let config =
            RuntimeConfig { polling: polling.clone(), ..config(LANES, SHARDS, pool.clone()) };
        let mut nic = SimConfig::new("nic", LANES as u16, config.steering.clone());
        (nic.pacing, nic.descriptors) = (Pacing::OpenLoop { origin: None }, DESCRIPTORS);
        let source = Box::new(Paced(Datagrams::new(FLOWS, PACKETS), 0));
        let nic = SimNic::open(nic, source, |_| Box::new(NullSink), &pool).unwrap();
        let service = |_| per_packet(|packet, _, _, out| out.send(DeviceId(0), packet));
        let device: Box<dyn Device> = Box::new(SlowToStart(nic));
        let shards = shards(SHARDS, usize::from(FLOWS), ());
        let runtime = Runtime::start(config, vec![device], Clock::new(), service, shards).unwrap();
        let start = Instant::now();
        while !runtime.is_finished() {
            assert!(start.elapsed() < LIMIT, "{}: packets do not arrive", polling.name());
            std::thread::sleep(Duration::from_millis(1));
        }
        let report = runtime.join().unwrap();
        assert_eq!(report.violations, []);
        let sum = LaneSample::sum(&report.last.lanes);
        let lost = report.last.devices[0].queue_full.iter().sum::<u64>();
        assert_eq!((sum.received, lost), (PACKETS, 0), "{}", polling.name());
    }
}
