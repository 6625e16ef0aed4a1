//! Two devices whose packets come from memory, all to one lane. Which flows they are of, and how fast they come, a measurement
//! sets while it goes on. Each flow is opened by a packet from each side; then all packets come from inside.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rheostat_base::{Clock, ClockSource, Counter, DeviceId, Histogram, Time};
use rheostat_io::{Device, DeviceCounters, DeviceMonitor, QueuePair, RxQueue, TxQueue};
use rheostat_measure::memory::{LAN, WAN, device_hash};
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
use rheostat_packet::{Burst, HashKind, PoolCache};
use rheostat_steer::Steering;
use rheostat_traffic::tuple_of;

/// Packets that are between the receive queue and the transmit queues at most: fewer than a ring between lanes holds, so that
/// none is dropped.
const IN_FLIGHT: u64 = 1 << 10;

/// What a measurement sets, and what it reads.
pub(super) struct Feed {
    clock: Clock,
    stopped: AtomicBool,
    /// First and last flow, one behind, that packets are of: two numbers in one.
    flows: AtomicU64,
    /// Nanoseconds from one packet to the next; 0 for as fast as they are taken.
    gap: AtomicU64,
    /// Flows that have had packets from both sides.
    opened: AtomicU64,
    /// Of each device, packets that the lane was given.
    given: [PaddedFeed<Counter>; 2],
    /// Of each device, by lane: packets that have left.
    gone: [Vec<PaddedFeed<Counter>>; 2],
    /// Whether it is noted how long packets take.
    is_timing: AtomicBool,
    /// By lane: nanoseconds from when the lane was given a packet until it left.
    trips: Vec<Histogram>,
}

#[derive(Default)]
#[repr(align(128))]
struct PaddedFeed<T>(T);

/// Frames of one side, as many of each flow as there are flows.
struct Frames {
    bytes: Vec<u8>,
    /// Bytes of a frame.
    len: usize,
    hashes: Vec<(u32, HashKind)>,
}

impl Feed {
    /// For so many lanes. No packet comes before [`Feed::open`].
    pub(super) fn new(clock: Clock, lanes: usize) -> Arc<Feed> {
        let gone = || (0..lanes).map(|_| PaddedFeed::default()).collect();
        Arc::new(Feed {
            clock,
            stopped: AtomicBool::new(false),
            flows: AtomicU64::new(0),
            gap: AtomicU64::new(0),
            opened: AtomicU64::new(0),
            given: Default::default(),
            gone: [gone(), gone()],
            is_timing: AtomicBool::new(false),
            trips: (0..lanes).map(|_| Histogram::new()).collect(),
        })
    }

    /// The devices, inside first, on which `flows` flows are opened.
    pub(super) fn devices(
        self: &Arc<Feed>,
        flows: u32,
        steering: &Arc<Steering>,
    ) -> Vec<Box<dyn Device>> {
        let device = |(name, id): (&'static str, DeviceId)| {
            let frames = Frames::of(flows, id, steering);
            let feed = self.clone();
            Box::new(FeedDevice { name, id, frames: Some(frames), feed }) as Box<dyn Device>
        };
        [("lan", LAN), ("wan", WAN)].map(device).into()
    }

    /// How many flows are open.
    pub(super) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Packets are of these flows from now on, evenly, and come at this distance; none for as fast as they are taken.
    pub(super) fn set(&self, flows: Range<u32>, gap: Option<Duration>) {
        let gap = gap.map_or(0, |gap| gap.as_nanos() as u64);
        self.gap.store(gap, Ordering::Relaxed);
        self.flows.store(u64::from(flows.start) << 32 | u64::from(flows.end), Ordering::Relaxed);
    }

    /// Notes from now on how long packets take, or no longer.
    pub(super) fn time_trips(&self, is_timing: bool) {
        self.is_timing.store(is_timing, Ordering::Relaxed);
    }

    /// Nanoseconds that packets took which left through this lane.
    pub(super) fn trips(&self, lane: usize) -> &Histogram {
        &self.trips[lane]
    }

    /// Packets that have left.
    pub(super) fn gone(&self) -> u64 {
        self.gone.iter().flatten().map(|gone| gone.0.get()).sum()
    }

    fn in_flight(&self) -> u64 {
        let given: u64 = self.given.iter().map(|given| given.0.get()).sum();
        given.saturating_sub(self.gone())
    }
}

impl Frames {
    fn of(flows: u32, device: DeviceId, steering: &Steering) -> Frames {
        let (mut bytes, mut hashes, mut len) = (Vec::new(), Vec::new(), 0);
        for flow in 0..flows {
            let (client, server) = tuple_of(flow.into());
            let key = rheostat_packet::FlowKey::v4(client, server, 17, 0);
            hashes.push(device_hash(steering, key));
            let (from, to) = if device == LAN { (client, server) } else { (server, client) };
            let link = Ethernet {
                source: [2, 0, 0, 0, 0, 1],
                destination: [2, 0, 0, 0, 0, 2],
                vlan: None,
            };
            let udp = Transport::Udp { ports: (from.1, to.1) };
            let frame = FrameBuilder::new(from.0.into(), to.0.into(), udp, Payload::Pattern(18));
            let frame = frame.with_ethernet(link).to_vec();
            len = frame.len();
            bytes.extend(frame);
        }
        Frames { bytes, len, hashes }
    }
}

struct FeedDevice {
    name: &'static str,
    id: DeviceId,
    frames: Option<Frames>,
    feed: Arc<Feed>,
}

/// What a lane receives: the first everything, the others nothing.
struct FeedRx {
    device: DeviceId,
    frames: Option<Frames>,
    feed: Arc<Feed>,
    /// Packets so far.
    number: u64,
    /// Packets in flight at most, as they were last counted.
    in_flight: u64,
    due: Time,
}

struct FeedTx {
    device: DeviceId,
    lane: usize,
    feed: Arc<Feed>,
}

impl FeedRx {
    /// How many packets to give now.
    fn room(&mut self, most: usize) -> usize {
        let gap = self.feed.gap.load(Ordering::Relaxed);
        if gap > 0 {
            let now = self.feed.clock.now();
            // What was missed in a pause of the machine does not come all at once.
            if now.since(self.due) > Duration::from_nanos(8 * gap) {
                self.due = now;
            }
            let is_due = now >= self.due;
            if is_due {
                self.due += Duration::from_nanos(gap);
            }
            return usize::from(is_due).min(most);
        }
        if self.in_flight + most as u64 > IN_FLIGHT {
            self.in_flight = self.feed.in_flight();
        }
        if self.in_flight + most as u64 > IN_FLIGHT { 0 } else { most }
    }

    /// The flow of the next packet.
    fn next(&mut self) -> Option<u32> {
        let frames = self.frames.as_ref()?;
        let (all, opened) = (frames.hashes.len() as u64, self.feed.opened());
        if self.number < all || self.device == WAN {
            // A reply does not come before the packet was processed, which is in the same poll.
            let lan = self.feed.given[LAN.index()].0.get();
            let may_come = self.device == LAN || self.number < lan.min(all);
            return may_come.then_some(self.number as u32);
        }
        let flows = self.feed.flows.load(Ordering::Relaxed);
        let (start, end) = ((flows >> 32) as u32, flows as u32);
        if opened < all || start == end {
            return None;
        }
        let mixed = self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        Some(start + ((mixed * u64::from(end - start)) >> 32) as u32)
    }
}

impl RxQueue for FeedRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, _: Time) -> usize {
        if self.feed.stopped.load(Ordering::Relaxed) || self.frames.is_none() {
            return 0;
        }
        let mut room = self.room(burst.remaining_capacity());
        let before = burst.len();
        while room > 0
            && let Some(flow) = self.next()
            && let Some(frames) = &self.frames
            && let Ok(mut packet) = pool.alloc(frames.len)
        {
            let start = flow as usize * frames.len;
            packet.data_mut().copy_from_slice(&frames.bytes[start..start + frames.len]);
            let (hash, kind) = frames.hashes[flow as usize];
            packet.set_device(self.device);
            packet.set_hash(hash, kind);
            packet.set_stamp(self.number as u32);
            burst.push(packet);
            self.number += 1;
            room -= 1;
        }
        let count = burst.len() - before;
        if count > 0 {
            self.in_flight += count as u64;
            self.feed.given[self.device.index()].0.add(count as u64);
            if self.device == WAN {
                self.feed.opened.store(self.number, Ordering::Relaxed);
            }
            if self.feed.gap.load(Ordering::Relaxed) > 0 {
                let now = self.feed.clock.now();
                burst.iter_mut().for_each(|packet| packet.set_timestamp(now));
            }
        }
        count
    }

    fn backlog(&self) -> usize {
        0
    }
}

impl TxQueue for FeedTx {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, _: Time) -> usize {
        if self.feed.is_timing.load(Ordering::Relaxed) {
            let now = self.feed.clock.now();
            for packet in burst.iter() {
                let took = now.since(packet.timestamp());
                self.feed.trips[self.lane].record(took.as_nanos() as u64);
            }
        }
        let count = burst.len();
        burst.drain(..).for_each(|packet| pool.free(packet));
        self.feed.gone[self.device.index()][self.lane].0.add(count as u64);
        count
    }
}

impl Device for FeedDevice {
    fn name(&self) -> &str {
        self.name
    }

    fn id(&self) -> DeviceId {
        self.id
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        let mut frames = self.frames.take();
        let pair = |lane| {
            let (device, feed) = (self.id, self.feed.clone());
            let tx = FeedTx { device, lane, feed: feed.clone() };
            let frames = frames.take();
            let due = Time::ZERO;
            let rx = FeedRx { device, frames, feed, number: 0, in_flight: 0, due };
            QueuePair { rx: Box::new(rx), tx: Box::new(tx) }
        };
        (0..self.feed.trips.len()).map(pair).collect()
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        Arc::new(FeedMonitor { device: self.id, feed: self.feed.clone() })
    }
}

struct FeedMonitor {
    device: DeviceId,
    feed: Arc<Feed>,
}

impl DeviceMonitor for FeedMonitor {
    fn counters(&self) -> DeviceCounters {
        let place = self.device.index();
        DeviceCounters {
            arrived: self.feed.given[place].0.get(),
            sent: self.feed.gone[place].iter().map(|gone| gone.0.get()).sum(),
            ..DeviceCounters::default()
        }
    }

    fn is_exhausted(&self) -> bool {
        self.feed.stopped.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.feed.stopped.store(true, Ordering::Relaxed);
    }
}
