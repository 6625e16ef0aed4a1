//! The side of the simulated NIC that faces the link: it takes arrivals from the source, hashes them,
//! finds their queue in the indirection table, and writes them into descriptors or drops them.

use std::sync::Arc;

use crate::{Arrival, Source};
use rheostat_base::{Counter, QueueId, Time};
use rheostat_packet::{AllocError, Headers, LinkType, Mbuf, PoolCache};
use rheostat_steer::{GenerationTable, Side, Steering};

use super::SimConfig;
use super::answering::Answering;
use super::counters::Arrivals;
use super::descriptor_ring::NicSide;
use super::engine::Replaying;
use super::pacing::{Schedule, Slot};
use super::packet_hash::PacketHasher;
use super::queue_event::QueueEvent;
use super::replies::{Replies, Reply};
use crate::replay_barrier::ReplayBarrier;

/// The NIC. Always behind a lock: whichever thread drives it owns it for a moment.
pub(super) struct Nic {
    source: Box<dyn Source>,
    schedule: Schedule,
    hasher: PacketHasher,
    table: Arc<GenerationTable>,
    queues: Vec<NicSide<Mbuf>>,
    /// Lanes that receive from each of them.
    claimants: usize,
    /// By ring.
    arrivals: Arc<[Arrivals]>,
    /// The frame on the link: pulled from the source and not delivered yet.
    frame: Option<Frame>,
    /// The bytes of that frame.
    bytes: Vec<u8>,
    /// That frame as a packet, once it has a buffer but no room in its queue.
    packet: Option<Mbuf>,
    /// Whether no more frames come.
    ended: bool,
    /// Arrivals so far, modulo 2^32.
    stamp: u32,
    /// Keeps packets in order that are misdirected, or that another device has, in a lossless run.
    replaying: Option<Replaying>,
    /// Whether the last packet delivered is misdirected.
    misdirected_under_way: bool,
    /// The side that it comes from, where the sides have to wait for each other.
    side: Option<Side>,
    /// Queues that packets were put into in this call, for their lanes to be woken.
    filled: Vec<bool>,
    /// What lanes wait for, by lane, where a thread drives the NIC.
    events: Vec<Arc<QueueEvent>>,
    /// Whether the frame on the link waits for a buffer.
    starved: bool,
    answering: Option<Answering>,
}

/// A frame that the source has given and that waits for its time, or for room.
#[derive(Clone, Copy)]
struct Frame {
    slot: Slot,
    wire_len: u32,
    link: LinkType,
}

/// What became of the frame on the link.
enum Outcome {
    /// It was enqueued, or dropped and counted.
    Gone,
    /// It must wait for room, and all behind it with it.
    Blocked,
}

impl Nic {
    /// A NIC of `config` that takes frames from `source`. `queues` has one ring per queue.
    pub(super) fn new(
        config: &SimConfig,
        source: Box<dyn Source>,
        queues: Vec<NicSide<Mbuf>>,
        table: Arc<GenerationTable>,
        arrivals: Arc<[Arrivals]>,
        events: Vec<Arc<QueueEvent>>,
        replies: Option<Arc<Replies>>,
    ) -> Nic {
        Nic {
            events,
            filled: vec![false; queues.len()],
            starved: false,
            answering: replies.map(Answering::new),
            source,
            schedule: Schedule::new(config.pacing, config.link_rate),
            hasher: PacketHasher::new(config),
            table,
            queues,
            claimants: config.claimants.into(),
            arrivals,
            frame: None,
            bytes: Vec::new(),
            packet: None,
            ended: false,
            stamp: 0,
            replaying: None,
            misdirected_under_way: false,
            side: None,
        }
    }

    /// Delivers what has arrived by `now`, at most `limit` frames, and returns how many.
    pub(super) fn deliver(&mut self, now: Time, limit: usize, pool: &mut PoolCache) -> usize {
        // From here on the table is as it was last rewritten, and whatever an earlier one placed has
        // been enqueued: an older call held the lock until it was done.
        self.table.acknowledge();
        let mut delivered = 0;
        if let Some(answering) = &mut self.answering {
            answering.fetch(now.as_nanos().saturating_add(1), |_, _| true);
        }
        while delivered < limit {
            let frame = self.next_frame(now).filter(|frame| frame.slot.due <= now);
            // Of two that are due at once, the frame of the source comes first.
            let before = frame.map_or(u64::MAX, |frame| frame.slot.due.as_nanos());
            if let Some(reply) = self.answering.as_mut().and_then(|replies| replies.pop_due(before))
            {
                self.place_reply(&reply, pool);
                delivered += 1;
                continue;
            }
            let Some(frame) = frame else { break };
            match self.place(frame, pool) {
                Outcome::Gone => {
                    self.frame = None;
                    self.stamp = self.stamp.wrapping_add(1);
                    delivered += 1;
                }
                Outcome::Blocked => break,
            }
        }
        self.announce();
        delivered
    }

    /// Whether lanes are notified of every packet that arrives from now on, and nothing but their work brings the next
    /// one: no time, no feeder of the source, no buffer that is in use elsewhere.
    pub(super) fn announces(&self) -> bool {
        let reads = matches!(
            &self.replaying,
            Some(Replaying { barrier, reader: Some(_) }) if barrier.is_announced()
        );
        reads && !self.starved && (self.ended || self.frame.is_some())
    }

    /// Wakes the lanes whose queues have got packets: of several that share a queue, one that sleeps, which wakes the next
    /// if more wait than it takes.
    fn announce(&mut self) {
        let barrier = match &self.replaying {
            Some(Replaying { barrier, reader: Some(_) }) => Some(barrier),
            _ => None,
        };
        if barrier.is_none() && self.events.is_empty() {
            return;
        }
        for (queue, filled) in self.filled.iter_mut().enumerate() {
            if std::mem::take(filled) {
                let lanes = queue * self.claimants..(queue + 1) * self.claimants;
                if let Some(barrier) = barrier {
                    lanes.clone().for_each(|lane| barrier.announce(QueueId(lane as u16)));
                }
                if let Some(events) = self.events.get(lanes) {
                    let _ = events.iter().any(|event| event.raise());
                }
            }
        }
    }

    /// When the next frame is due; `None` after the last.
    pub(super) fn next_due(&mut self, now: Time) -> Option<Time> {
        let frame = self.next_frame(now).map(|frame| frame.slot.due);
        let reply = self.answering.as_ref().and_then(Answering::next_sent);
        frame.into_iter().chain(reply.map(Time::from_nanos)).min()
    }

    /// Whether the source has ended, or was stopped.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// How much of its source has arrived, where the source knows.
    pub(super) fn progress(&self) -> Option<f64> {
        self.source.progress()
    }

    /// Nothing more arrives; a frame on the link never does.
    pub(super) fn stop(&mut self) {
        self.ended = true;
        self.frame = None;
        self.packet = None;
        self.answering = None;
        self.rest();
    }

    /// See [`super::engine::Engine::replay_by`].
    pub(super) fn replay_by(&mut self, barrier: Arc<ReplayBarrier>) {
        if self.replaying.is_none() {
            let first =
                |nic: &mut Nic| nic.next_frame(Time::ZERO).map(|frame| frame.slot.timestamp);
            let reader = self.schedule.is_lossless().then(|| barrier.join(first(self)));
            self.replaying = Some(Replaying { barrier, reader });
        }
    }

    /// Lets no other device wait for a packet of this one.
    fn rest(&self) {
        if let Some(Replaying { barrier, reader: Some(reader) }) = &self.replaying {
            barrier.rest(*reader);
        }
    }

    fn next_frame(&mut self, now: Time) -> Option<Frame> {
        if self.frame.is_none() && !self.ended {
            self.frame = self.pull(now);
            self.ended = self.frame.is_none() && !self.source.is_fed();
            if self.frame.is_none() {
                self.rest();
            }
        }
        self.frame
    }

    fn pull(&mut self, now: Time) -> Option<Frame> {
        let Arrival { time, wire_len, link, .. } = self.source.next(&mut self.bytes)?;
        Some(Frame { slot: self.schedule.place(time, wire_len, now), wire_len, link })
    }

    /// Puts the frame on the link into the queue that the table in force states.
    fn place(&mut self, frame: Frame, pool: &mut PoolCache) -> Outcome {
        let buffered = self.packet.take().map_or_else(|| self.buffer(frame, pool), Ok);
        self.starved = matches!(buffered, Err(AllocError::Empty));
        let mut packet = match buffered {
            Ok(packet) => packet,
            Err(AllocError::Empty) if self.schedule.is_lossless() => return Outcome::Blocked,
            Err(AllocError::Empty) => return self.arrive(frame, Some(&self.arrivals[0].no_buffer)),
            Err(AllocError::Oversize) => {
                return self.arrive(frame, Some(&self.arrivals[0].oversize));
            }
        };
        let (mut misdirected, mut side) = (false, self.side);
        if let Some(Replaying { barrier, reader: Some(reader) }) = &self.replaying {
            (misdirected, side) = course(&self.hasher.steering, &packet);
            let time = frame.slot.timestamp;
            let turns = misdirected
                || self.misdirected_under_way
                || side != self.side
                || barrier.is_beyond_window(time)
                || barrier.is_one_by_one();
            let waits = turns && !barrier.is_passed();
            if waits || !barrier.is_turn(*reader, time) {
                self.packet = Some(packet);
                return Outcome::Blocked;
            }
            if turns {
                barrier.begin_window(time);
            }
        }
        if self.schedule.keeps_stamps()
            && let Some(Replaying { barrier, .. }) = &self.replaying
        {
            barrier.date(&mut packet);
        }
        let queue = self.table.lookup(self.hasher.steering.bucket_of_hash(packet.hash())).index();
        let queue = queue / self.claimants;
        match self.queues[queue].put(packet) {
            Ok(()) => {
                self.misdirected_under_way = misdirected;
                self.side = side;
                self.filled[queue] = true;
                if let Some(Replaying { barrier, .. }) = &self.replaying {
                    barrier.deliver(1);
                }
                self.arrive(frame, None)
            }
            Err(packet) if self.schedule.is_lossless() => {
                self.packet = Some(packet);
                Outcome::Blocked
            }
            Err(packet) => {
                pool.free(packet);
                self.arrive(frame, Some(&self.arrivals[queue].queue_full))
            }
        }
    }

    /// Puts a reply into the queue that the table in force states.
    fn place_reply(&mut self, reply: &Reply, pool: &mut PoolCache) {
        let first = &self.arrivals[0];
        first.arrived.increment();
        first.arrived_bytes.add(reply.wire_len());
        let Ok(packet) = reply.packet(self.hasher.device, pool) else {
            first.no_buffer.increment();
            return;
        };
        let queue = self.table.lookup(reply.bucket).index();
        match self.queues[queue].put(packet) {
            Ok(()) => self.filled[queue] = true,
            Err(packet) => {
                pool.free(packet);
                self.arrivals[queue].queue_full.increment();
            }
        }
    }

    /// Copies the frame on the link into a buffer and hashes it.
    fn buffer(&self, frame: Frame, pool: &mut PoolCache) -> Result<Mbuf, AllocError> {
        let mut packet = pool.alloc_from(&self.bytes)?;
        packet.set_timestamp(frame.slot.timestamp);
        packet.set_wire_len(frame.wire_len);
        packet.set_stamp(self.stamp);
        packet.set_device(self.hasher.device);
        packet.set_link(frame.link);
        let wire_len = packet.len().max(frame.wire_len as usize);
        let (hash, kind) = self.hasher.hash(packet.data(), wire_len, frame.link);
        packet.set_hash(hash, kind);
        Ok(packet)
    }

    fn arrive(&self, frame: Frame, drop: Option<&Counter>) -> Outcome {
        self.arrivals[0].arrived.increment();
        self.arrivals[0].arrived_bytes.add(frame.wire_len.into());
        if let Some(drop) = drop {
            drop.increment();
        }
        Outcome::Gone
    }
}

/// Whether a packet reaches its flow by way of another lane than the flow's other packets, and the side it comes
/// from, where the directions of a flow take different ways.
fn course(steering: &Steering, packet: &Mbuf) -> (bool, Option<Side>) {
    let Ok(headers) = Headers::parse(packet) else { return (false, None) };
    (steering.is_misdirected(packet, &headers), steering.side_apart(packet, &headers))
}
