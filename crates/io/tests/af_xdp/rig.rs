//! Devices on virtual interfaces, polled by hand.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rheostat_base::{QueueId, Time};
use rheostat_io::{Device, DeviceMonitor, QueuePair, XdpConfig, XdpDevice};
use rheostat_packet::{Burst, Mbuf, Mempool, MempoolConfig, PoolCache};
use rheostat_steer::{HashKey, Orientation, Steering};

use rheostat_testkit::namespace::shell;
use rheostat_testkit::numbered::{number, numbered};
use rheostat_testkit::veth::await_links;

/// How long to wait for what happens within milliseconds on a machine that has nothing else to do.
const LIMIT: Duration = Duration::from_secs(120);
/// Packets under way to a device at most: the ring of a virtual interface holds 256, and drops, without a word to either
/// device, what comes while it is full and the kernel does not get a core.
pub(crate) const UNDER_WAY: usize = 96;

/// Waits until `condition` holds.
pub(crate) fn await_condition(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// An open device with its queues.
pub(crate) struct Rig {
    pub(crate) queues: Vec<QueuePair>,
    pub(crate) device: XdpDevice,
    pub(crate) cache: PoolCache,
    opened: Instant,
}

/// A pool that can be shared with the kernel.
pub(crate) fn pool(buffers: u32) -> Mempool {
    Mempool::new(&MempoolConfig::umem(buffers)).unwrap()
}

/// A pair of interfaces, both up, with as many queues and packets as large as wanted.
pub(crate) fn veth(left: &str, right: &str, queues: u32, mtu: u32) {
    let queues = format!("numtxqueues {queues} numrxqueues {queues}");
    shell(&format!(
        "ip link add {left} {queues} type veth peer name {right} {queues}
         for each in {left} {right}; do
           sysctl -qw net.ipv6.conf.$each.disable_ipv6=1
           ip link set $each mtu {mtu} up
         done"
    ));
    await_links(&[left, right]);
}

/// The steering of all these tests, over 128 buckets.
pub(crate) fn steering() -> Arc<Steering> {
    Arc::new(Steering::new(&HashKey::MICROSOFT, 128, 128, vec![Orientation::Inside]).unwrap())
}

/// The usual configuration of a device on `interface`.
pub(crate) fn config(interface: &str, lanes: u16) -> XdpConfig {
    XdpConfig { descriptors: 512, ..XdpConfig::new("test", interface, lanes, steering()) }
}

impl Rig {
    pub(crate) fn open(config: XdpConfig, pool: &Mempool) -> Rig {
        let mut device = XdpDevice::open(config, pool).unwrap();
        Rig {
            queues: device.queues(),
            device,
            cache: PoolCache::new(pool.clone()),
            opened: Instant::now(),
        }
    }

    /// The time.
    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(self.opened.elapsed().as_nanos() as u64)
    }

    /// Offers `flows` packets, number `sequence` of each flow, on `lane` once; drops those that are not
    /// taken, and returns how many were.
    pub(crate) fn offer(&mut self, lane: usize, flows: u32, sequence: u32) -> usize {
        let now = self.now();
        let frames = (0..flows).map(|flow| numbered(flow, sequence, 64));
        let mut burst: Burst = frames.map(|frame| self.cache.alloc_from(&frame).unwrap()).collect();
        let taken = self.queues[lane].tx.send(&mut burst, &mut self.cache, now);
        self.end_polls(lane);
        burst.into_iter().for_each(|packet| self.cache.free(packet));
        taken
    }

    /// Sends everything in `burst` on `lane`, for as long as it takes.
    pub(crate) fn send_all(&mut self, lane: usize, burst: &mut Burst) {
        let start = Instant::now();
        while !burst.is_empty() {
            let now = self.now();
            self.queues[lane].tx.send(burst, &mut self.cache, now);
            self.end_polls(lane);
            assert!(start.elapsed() < LIMIT, "{} packets cannot be sent", burst.len());
        }
    }

    /// Asks what is unsent as a lane does: at the end of the poll in which it sent, and at that of the next.
    pub(crate) fn end_polls(&mut self, lane: usize) {
        for _ in 0..2 {
            self.queues[lane].tx.unsent();
        }
    }

    /// Sends frames on `lane`.
    pub(crate) fn send_frames(&mut self, lane: usize, frames: &[Vec<u8>]) {
        let packets = frames.iter().map(|frame| self.cache.alloc_from(frame).unwrap());
        let mut burst: Burst = packets.collect();
        self.send_all(lane, &mut burst);
    }

    /// Polls `lane` once and passes on the numbered packets; frees the others.
    pub(crate) fn poll(
        &mut self,
        lane: usize,
        now: Time,
        mut each: impl FnMut(&mut PoolCache, Mbuf),
    ) {
        let mut burst = Burst::new();
        let count = self.queues[lane].rx.recv(&mut burst, &mut self.cache, now);
        assert_eq!(count, burst.len());
        for packet in burst {
            match number(&packet) {
                Some(_) => each(&mut self.cache, packet),
                None => self.cache.free(packet),
            }
        }
    }

    /// Polls every lane until `wanted` numbered packets have come, or none has for [`LIMIT`], and returns them with
    /// their lanes.
    pub(crate) fn collect(&mut self, wanted: usize) -> Vec<(usize, Mbuf)> {
        let mut packets = Vec::new();
        let mut last = Instant::now();
        while packets.len() < wanted && last.elapsed() < LIMIT {
            let come = self.collect_present();
            if come.is_empty() {
                std::thread::yield_now();
            } else {
                last = Instant::now();
            }
            packets.extend(come);
        }
        packets
    }

    /// Polls every lane until it has no more, and returns the numbered packets with their lanes.
    pub(crate) fn collect_present(&mut self) -> Vec<(usize, Mbuf)> {
        let mut packets = Vec::new();
        for lane in 0..self.queues.len() {
            loop {
                let before = packets.len();
                let now = self.now();
                self.poll(lane, now, |_, packet| packets.push((lane, packet)));
                if packets.len() == before {
                    break;
                }
            }
        }
        packets
    }

    /// Packets that have come as far as the queues, or were dropped there and counted.
    pub(crate) fn come(&self) -> usize {
        let waiting: usize = self.queues.iter().map(|queue| queue.rx.backlog()).sum();
        self.monitor().counters().arrived as usize + waiting
    }

    /// Frees what was collected.
    pub(crate) fn free(&mut self, packets: Vec<(usize, Mbuf)>) {
        packets.into_iter().for_each(|(_, packet)| self.cache.free(packet));
    }

    /// Expects a burst from `source` to arrive whole.
    pub(crate) fn expect_from(&mut self, source: &mut Rig) {
        let frames: Vec<_> = (0..32).map(|flow| numbered(flow, 0, 64)).collect();
        source.send_frames(0, &frames);
        let arrived = self.collect(32);
        assert_eq!(arrived.len(), 32, "{:?}", self.monitor().counters());
        self.free(arrived);
    }

    pub(crate) fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.device.monitor()
    }

    /// The lane of each bucket.
    pub(crate) fn entries(&self) -> Vec<QueueId> {
        self.device.table().unwrap().read()
    }

    /// Closes everything.
    pub(crate) fn close(self) {
        drop(self.queues);
        drop(self.device);
        drop(self.cache);
    }
}
