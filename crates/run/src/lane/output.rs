//! What leaves a lane: packets that are sent, packets that are dropped, packets that served their purpose.

use std::sync::Arc;

use rheostat_base::{Clock, ClockSource, DeviceId, DropReason, LaneId, Time};
use rheostat_capture::LaneMirror;
use rheostat_capture::trace::Step;
use rheostat_io::{TxQueue, Unsent};
use rheostat_packet::{AllocError, Burst, Mbuf, PoolCache};

use super::deferred::{Deferral, Deferred};
use super::unusual::Unusual;
use super::{HandoffPacket, LinkPacket, PacketInfo};
use crate::account::LaneCounters;
use crate::offload::FlowNumber;
use crate::stages::{BurstStage, StageMeter, StageSwitch, StageTimes};

/// The context of all packets of a lane, and the only place where one leaves, is dropped or ends otherwise, and is
/// counted as such: the lane's transmit queues, each with the packets collected for it during a poll, its stock of
/// buffers, its counters and its mirror.
pub struct Output {
    lane: LaneId,
    ports: Vec<Port>,
    /// Packets that come back as if from outside.
    reinjected: Vec<Mbuf>,
    pool: PoolCache,
    counters: Arc<LaneCounters>,
    /// When the poll began.
    polled: Time,
    now: Time,
    /// Shows what passes to readers.
    mirror: LaneMirror,
    /// Where it is noted how long each stage takes.
    meter: Meter,
    unusual: Unusual,
    deferred: Deferred,
    /// Whether the lane's flows are in shards that it owns together with others.
    has_joint_flows: bool,
    /// The clock of the run, where time is that of polls.
    clock: Option<Clock>,
}

/// There in lanes that are asked to note how long each stage takes.
type Meter = Option<Box<StageMeter>>;

#[inline]
fn end_stage(meter: &mut Meter, stage: BurstStage) {
    if let Some(meter) = meter {
        meter.end(stage);
    }
}

struct Port {
    device: DeviceId,
    queue: Box<dyn TxQueue>,
    burst: Burst,
    /// What the queue has taken and not sent, as it was last counted.
    unsent: Unsent,
    /// Packets that the queue has sent or lost.
    left: u64,
}

/// What a lane had given to its devices at some moment.
#[derive(Debug)]
pub(super) struct Departures(Vec<u64>);

/// Sends packets on one device of an [`Output`].
pub struct Sender<'a> {
    port: &'a mut Port,
    pool: &'a mut PoolCache,
    counters: &'a LaneCounters,
    polled: Time,
    mirror: &'a mut LaneMirror,
    meter: &'a mut Meter,
}

impl Output {
    /// The output of lane `lane`, with one transmit queue per device, in the order of device numbers. Packets that end
    /// are freed into `pool`.
    pub fn new(lane: LaneId, queues: Vec<Box<dyn TxQueue>>, pool: PoolCache) -> Output {
        let port = |(device, queue)| {
            let (device, burst) = (DeviceId(device), Burst::new());
            Port { device, queue, burst, unsent: Unsent::default(), left: 0 }
        };
        Output {
            lane,
            ports: (0..).zip(queues).map(port).collect(),
            reinjected: Vec::new(),
            pool,
            counters: Arc::default(),
            polled: Time::ZERO,
            now: Time::ZERO,
            mirror: LaneMirror::default(),
            meter: None,
            unusual: Unusual::default(),
            deferred: Deferred::default(),
            has_joint_flows: false,
            clock: None,
        }
    }

    /// Leaves it to the lane to note how many flows are alive.
    pub(super) fn have_joint_flows(&mut self) {
        self.has_joint_flows = true;
    }

    /// Notes how many flows are alive in the lane, when that is more than ever before.
    #[inline]
    pub fn note_flows(&self) {
        if !self.has_joint_flows {
            self.counters.note_flows();
        }
    }

    pub(super) fn treat_as_unusual(&mut self, unusual: Unusual) {
        self.unusual = unusual;
    }

    /// Whether a packet is to take general code, whatever it is: it is followed through the run, or a test wants it.
    #[inline]
    pub fn is_unusual(&self, packet: &Mbuf) -> bool {
        packet.mark() != 0 || self.unusual.includes(packet.stamp())
    }

    /// Notes from now on how long each stage takes.
    pub(super) fn note_stages(&mut self, switch: StageSwitch) {
        self.meter = Some(Box::new(StageMeter::new(switch)));
    }

    pub(super) fn stage_times(&self) -> Option<&StageTimes> {
        self.meter.as_ref().map(|meter| meter.times())
    }

    /// Notes that a stage has ended, where stages are timed.
    #[inline]
    pub fn end_stage(&mut self, stage: BurstStage) {
        end_stage(&mut self.meter, stage);
    }

    /// Ends a poll that found so many packets.
    #[inline]
    pub(super) fn end_poll(&mut self, packets: usize) {
        if let Some(meter) = &mut self.meter {
            meter.end(BurstStage::Rest);
            meter.note(packets);
        }
    }

    /// The lane's number.
    #[inline]
    pub fn lane(&self) -> LaneId {
        self.lane
    }

    /// The time, as the run counts it: of the packet at hand, or of the timer that fired.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Says what time it is.
    #[inline]
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Reads the clock in the middle of a poll, about 10 ns: what time it is by now, for a service whose packets may take long.
    /// [`Output::now`] stays. The time of the packet at hand, where packets carry the time, or lanes are polled without a clock.
    #[inline]
    pub fn read_clock(&self) -> Time {
        self.clock.as_ref().map_or(self.now, |clock| clock.now().max(self.polled))
    }

    /// When the poll began, where [`Output::read_clock`] reads a clock; otherwise what that returns. No clock is read.
    #[inline]
    pub fn began(&self) -> Time {
        if self.clock.is_some() { self.polled } else { self.now }
    }

    /// Has [`Output::read_clock`] read this clock.
    pub(super) fn go_by(&mut self, clock: Clock) {
        self.clock = Some(clock);
    }

    /// The lane's stock of buffers.
    #[inline]
    pub fn pool(&mut self) -> &mut PoolCache {
        &mut self.pool
    }

    /// The lane's counters.
    #[inline]
    pub fn counters(&self) -> &LaneCounters {
        &self.counters
    }

    /// Sends a packet on a device: at the end of the poll, or at once when a full burst has gathered.
    ///
    /// # Panics
    /// When the run has no such device.
    #[inline(always)]
    pub fn send(&mut self, device: DeviceId, packet: Mbuf) {
        self.sender(device).send(packet);
    }

    /// What sends packets on a device, for several of them in a row.
    ///
    /// # Panics
    /// When the run has no such device.
    #[inline(always)]
    pub fn sender(&mut self, device: DeviceId) -> Sender<'_> {
        let Output { ports, pool, counters, polled, mirror, meter, .. } = self;
        Sender { port: &mut ports[device.index()], pool, counters, polled: *polled, mirror, meter }
    }

    /// Ends a packet and counts why.
    #[inline]
    pub fn drop(&mut self, packet: Mbuf, reason: DropReason) {
        self.counters.dropped.add(reason, 1);
        self.mirror.dropping(&packet, reason);
        self.pool.free(packet);
    }

    /// Ends a packet that has served its purpose.
    #[inline]
    pub fn consume(&mut self, packet: Mbuf) {
        self.counters.consumed.increment();
        self.mirror.consuming(&packet);
        self.pool.free(packet);
    }

    /// A packet of this machine's own, of `bytes`: counted as originated, and as dropped when there is no buffer for it.
    pub fn originate(&mut self, bytes: &[u8]) -> Option<Mbuf> {
        self.counters.originated.increment();
        let made = self.pool.alloc_from(bytes);
        self.unless_without_buffer(made)
    }

    /// A packet of this machine's own of `len` bytes, which are yet to be written: whatever its buffer held before. Counted as
    /// [`Output::originate`] does. `len` must fit into one buffer.
    pub fn originate_blank(&mut self, len: usize) -> Option<Mbuf> {
        self.counters.originated.increment();
        let made = self.pool.alloc(len);
        let mut made = self.unless_without_buffer(made)?;
        made.set_wire_len(len as u32);
        Some(made)
    }

    /// A copy of a packet, to be sent beside it: counted as copied, and as dropped when there is no buffer for it.
    pub fn copy(&mut self, packet: &Mbuf) -> Option<Mbuf> {
        self.counters.copied.increment();
        let made = self.pool.copy(packet);
        self.unless_without_buffer(made)
    }

    fn unless_without_buffer(&mut self, made: Result<Mbuf, AllocError>) -> Option<Mbuf> {
        let reason = match made {
            Ok(packet) => return Some(packet),
            Err(AllocError::Empty) => DropReason::NoBuffer,
            Err(AllocError::Oversize) => DropReason::Oversize,
        };
        self.counters.dropped.add(reason, 1);
        None
    }

    /// Shows what happens to packets to readers.
    #[inline]
    pub fn mirror(&mut self) -> &mut LaneMirror {
        &mut self.mirror
    }

    pub(super) fn mirror_to(&mut self, mirror: LaneMirror) {
        self.mirror = mirror;
    }

    /// What others read while the lane runs.
    pub(super) fn shared_counters(&self) -> Arc<LaneCounters> {
        self.counters.clone()
    }

    /// Lets a packet come back as one that has arrived on the device its head names, addressed as it is now. It stays
    /// in the lane's account until it leaves for good.
    #[cold]
    pub fn reinject(&mut self, mut packet: Mbuf) {
        self.mirror.note(&packet, Step::Hairpin);
        packet.set_reinjected();
        self.reinjected.push(packet);
    }

    /// Whether packets come back.
    pub fn has_reinjected(&self) -> bool {
        !self.reinjected.is_empty()
    }

    pub(super) fn take_reinjected(&mut self) -> Vec<Mbuf> {
        std::mem::take(&mut self.reinjected)
    }

    /// Leaves a packet whose flow is away ([`FlowTable::detached`](rheostat_state::FlowTable::detached)) to the lane.
    ///
    /// `info` has the flow's number ([`PacketInfo::set_offloaded`]).
    pub fn offload(&mut self, packet: Mbuf, info: &PacketInfo) {
        debug_assert!(info.offloaded().is_some(), "a flow that is away has a number");
        self.deferred.away.push(LinkPacket::new(packet, info));
    }

    /// Lets a packet wait until flows of its shard have come home, for which the shard was set aside ([`ShardSet::stall`]).
    ///
    /// [`ShardSet::stall`]: crate::ShardSet::stall
    #[cold]
    pub fn wait_for_shard(&mut self, packet: HandoffPacket) {
        self.deferred.packets.push((Deferral::Stalled, packet));
    }

    /// Sends a packet back to the home of its flow, which is here and cannot process it.
    #[cold]
    pub fn refuse(&mut self, packet: HandoffPacket) {
        self.deferred.packets.push((Deferral::Refused, packet));
    }

    /// Takes a flow home that is away.
    #[cold]
    pub fn recall(&mut self, number: FlowNumber) {
        self.deferred.recalls.push(number);
    }

    /// Packets that the service has left to the lane since the lane last took them: no work was done for them.
    pub fn left_to_lane(&self) -> usize {
        self.deferred.away.len() + self.deferred.packets.len()
    }

    pub(super) fn deferred(&mut self) -> &mut Deferred {
        &mut self.deferred
    }

    /// Whether the service has left something to the lane.
    #[inline]
    pub(super) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// What devices have been given until now, the last flush included.
    pub(super) fn departures(&self) -> Departures {
        Departures(self.ports.iter().map(|port| port.left + port.unsent.waiting).collect())
    }

    /// Whether all that has left the devices or was lost.
    pub(super) fn have_left(&self, Departures(marks): &Departures) -> bool {
        self.ports.iter().zip(marks).all(|(port, mark)| port.left >= *mark)
    }

    pub(super) fn start_poll(&mut self, now: Time) {
        self.polled = now;
        if let Some(meter) = &mut self.meter {
            meter.start();
        }
    }

    /// Whether packets are collected that no device has been given.
    #[inline]
    pub fn has_collected(&self) -> bool {
        self.ports.iter().any(|port| !port.burst.is_empty())
    }

    /// Sends everything collected, so that nothing lingers until the next poll.
    pub fn flush(&mut self) {
        let Output { ports, pool, counters, polled, mirror, meter, .. } = self;
        for port in ports {
            if !port.burst.is_empty() {
                port.flush(pool, counters, *polled, (mirror, meter));
            } else if port.unsent.waiting > 0 {
                port.account((0, 0), counters);
            }
        }
    }

    /// Sends everything collected, ends sending, and gives all buffers back.
    pub fn finish(&mut self) {
        self.flush();
        let Output { ports, pool, counters, .. } = self;
        for port in ports {
            port.queue.finish(pool);
            port.account((0, 0), counters);
        }
        pool.flush();
    }
}

impl Sender<'_> {
    /// As [`Output::send`] on its device.
    #[inline(always)]
    pub fn send(&mut self, packet: Mbuf) {
        let Sender { port, pool, counters, polled, mirror, meter } = self;
        port.burst.push(packet);
        if port.burst.is_full() {
            end_stage(meter, BurstStage::Run);
            port.flush(pool, counters, *polled, (mirror, meter));
        }
    }

    /// As [`Output::send`] on its device, of several packets in a row: how many there are is kept in a register meanwhile.
    #[inline]
    pub fn send_all(&mut self, mut packets: impl ExactSizeIterator<Item = Mbuf>) {
        let Sender { port, pool, counters, polled, mirror, meter } = self;
        while packets.len() > 0 {
            port.burst.extend(packets.by_ref().take(port.burst.remaining_capacity()));
            if port.burst.is_full() {
                end_stage(meter, BurstStage::Run);
                port.flush(pool, counters, *polled, (mirror, meter));
            }
        }
    }
}

impl Port {
    fn flush(
        &mut self,
        pool: &mut PoolCache,
        counters: &LaneCounters,
        now: Time,
        (mirror, meter): (&mut LaneMirror, &mut Meter),
    ) {
        if mirror.is_armed() {
            mirror.offer(self.device, &self.burst);
        }
        let offered: u64 = self.burst.iter().map(|packet| packet.len() as u64).sum();
        end_stage(meter, BurstStage::Emit);
        let taken = self.queue.send(&mut self.burst, pool, now);
        end_stage(meter, BurstStage::Transmit);
        if mirror.is_armed() {
            mirror.took(self.device, taken);
        }
        let left: u64 = self.burst.iter().map(|packet| packet.len() as u64).sum();
        self.account((taken as u64, offered - left), counters);
        for (place, packet) in self.burst.drain(..).enumerate() {
            let reason = self.queue.why_left(place, &packet);
            counters.dropped.add(reason, 1);
            if mirror.is_armed() {
                mirror.dropped(self.device, &packet, reason);
            }
            pool.free(packet);
        }
        end_stage(meter, BurstStage::Emit);
    }

    /// Counts as sent what the queue has taken, so many packets and bytes just now, less what it has not
    /// sent; and what the operating system refused as dropped. No counter goes back: a packet counts when
    /// its fate is known.
    #[inline]
    fn account(&mut self, (packets, bytes): (u64, u64), counters: &LaneCounters) {
        let before = std::mem::replace(&mut self.unsent, self.queue.unsent());
        let after = self.unsent;
        let lost = after.lost() - before.lost();
        let sent = (packets + before.waiting).saturating_sub(after.waiting + lost);
        counters.sent.add(sent);
        self.left += sent + lost;
        counters.sent_bytes.add(bytes.saturating_sub(after.refused_bytes - before.refused_bytes));
        if lost > 0 {
            counters.dropped.add(DropReason::TransmitRefused, after.refused - before.refused);
            counters.dropped.add(DropReason::TooBig, after.too_big - before.too_big);
            counters.dropped.add(DropReason::LinkDown, after.link_down - before.link_down);
        }
        if after.waiting != before.waiting {
            let elsewhere = counters.transmitting.get() - before.waiting;
            counters.transmitting.set(elsewhere + after.waiting);
        }
    }
}

impl std::fmt::Debug for Sender<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").field("device", &self.port.device).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("ports", &self.ports.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use rheostat_packet::{Mempool, MempoolConfig};

    use super::*;

    /// Takes everything; what becomes of it afterwards is the test's to say.
    struct Taker(Arc<Mutex<Unsent>>);

    impl TxQueue for Taker {
        fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, _: Time) -> usize {
            let count = burst.len();
            burst.drain(..).for_each(|packet| pool.free(packet));
            count
        }

        fn unsent(&mut self) -> Unsent {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn finish(&mut self, _: &mut PoolCache) {
            let unsent = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            unsent.refused += std::mem::take(&mut unsent.waiting);
        }
    }

    #[test]
    fn a_packet_counts_as_sent_when_it_is_and_as_dropped_when_the_kernel_refuses_it() {
        let config = MempoolConfig { buffers: 64, ..MempoolConfig::default() };
        let pool = PoolCache::new(Mempool::new(&config).unwrap());
        let unsent: [Arc<Mutex<Unsent>>; 2] = Default::default();
        let queues = unsent.iter().map(|unsent| Box::new(Taker(unsent.clone())) as _).collect();
        let mut output = Output::new(LaneId(0), queues, pool);
        let counters = output.shared_counters();
        let send = |output: &mut Output, device: u8, count: usize| {
            for _ in 0..count {
                let packet = output.pool().alloc_from(&[0; 100]).unwrap();
                output.send(DeviceId(device), packet);
            }
            output.flush();
        };
        let state = || {
            let now = counters.sample();
            let refused = now.dropped[DropReason::TransmitRefused as usize];
            (now.sent, now.transmitting, refused)
        };
        let set = |device: usize, waiting, refused| {
            let refused_bytes = refused * 100;
            *unsent[device].lock().unwrap() =
                Unsent { waiting, refused, refused_bytes, ..Unsent::default() };
        };
        send(&mut output, 0, 10);
        assert_eq!(state(), (10, 0, 0));
        // Of 10 more, 3 are refused at once and 4 wait; likewise for 2 of another device.
        set(0, 4, 3);
        send(&mut output, 0, 10);
        set(1, 2, 0);
        send(&mut output, 1, 5);
        assert_eq!(state(), (10 + 3 + 3, 6, 3));
        assert_eq!(counters.sent_bytes.get(), 100 * (10 + 7 + 5));
        // Later, one of the 4 is refused as well, 2 get out, and nothing else is sent.
        set(0, 1, 4);
        send(&mut output, 0, 0);
        assert_eq!(state(), (18, 3, 4));
        // What still waits at the end is not sent.
        output.finish();
        assert_eq!(state(), (18, 0, 7));
    }
}
