//! What leaves a lane: packets that are sent, packets that are dropped, packets that served their purpose.

mod gathering;
mod port;

use std::sync::Arc;

use rheostat_base::{Clock, ClockSource, DeviceId, DropReason, LaneId, Time};
use rheostat_capture::LaneMirror;
use rheostat_capture::trace::Step;
use rheostat_io::{TxQueue, Unsent};
use rheostat_packet::{AllocError, Burst, Mbuf, PoolCache};

use self::gathering::OwnOutbox;
use self::port::Port;
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
    /// There where lanes own shards together in the order of tickets.
    outbox: Option<OwnOutbox>,
}

/// There in lanes that are asked to note how long each stage takes.
type Meter = Option<Box<StageMeter>>;

#[inline]
fn end_stage(meter: &mut Meter, stage: BurstStage) {
    if let Some(meter) = meter {
        meter.end(stage);
    }
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
            Port { device, queue, burst, unsent: Unsent::default(), left: 0, outbox: None }
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
            outbox: None,
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

    /// Takes the room of those back, so that no memory is requested for the next. None came back meanwhile.
    pub(super) fn reuse_reinjected(&mut self, room: Vec<Mbuf>) {
        debug_assert!(room.is_empty() && self.reinjected.is_empty(), "they were placed");
        self.reinjected = room;
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
        self.has_gathered() || self.ports.iter().any(|port| !port.burst.is_empty())
    }

    /// Sends everything collected, so that nothing lingers until the next poll.
    pub fn flush(&mut self) {
        let has_gathered = self.has_gathered();
        let Output { ports, pool, counters, polled, mirror, meter, .. } = self;
        for port in ports {
            if has_gathered || !port.burst.is_empty() {
                port.flush(pool, counters, *polled, (mirror, meter));
            } else if port.unsent.waiting > 0 {
                port.account((0, 0), counters);
            }
        }
        // Now that no other lane sends what this one has gathered: the account is exact before the lane sleeps.
        if let Some(outbox) = &self.outbox {
            self.counters.handoff_out.add(outbox.own().take_taken());
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
mod tests;
