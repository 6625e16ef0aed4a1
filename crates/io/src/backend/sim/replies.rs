//! Replies that are under way to a NIC: a queue of bounded length, in the order in which they arrive.
//!
//! The transmit queues append, each reply due a fixed delay after its packet was sent. A receive queue looks through what
//! became due since it last looked, and takes the replies whose buckets lead to it then. As every bucket leads to one
//! queue at every moment, exactly one takes each reply; the others pass it over.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use rheostat_base::{DeviceId, Time};
use rheostat_packet::mbuf::MAX_SEGMENTS;
use rheostat_packet::{AllocError, HashKind, LinkType, Mbuf, Mempool, PoolCache};

use super::SimConfig;
use super::packet_hash::PacketHasher;
use crate::lock::lock;

/// Replies under way.
#[derive(Debug)]
pub(super) struct Replies {
    /// Nanoseconds from a packet to its reply.
    delay: u64,
    most: usize,
    hasher: PacketHasher,
    /// Bytes that fit into one buffer.
    room: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// In the order of their times; `None` where a queue took one. The first is one that none took.
    replies: VecDeque<Option<Reply>>,
    /// The number of the first.
    first: u64,
    /// How many of them are still to be taken.
    pending: usize,
    /// Receive queues have looked for what is due before.
    looked: u64,
    /// When the latest is due.
    last_due: u64,
    /// Replies so far, without those for which there was no room.
    made: u64,
    /// Of these, how many were due before a receive queue had looked past that time.
    late: u64,
    is_stopped: bool,
}

/// A reply. Times are in nanoseconds, on the clock of the run.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) due: u64,
    /// The entry of the indirection table.
    pub(super) bucket: usize,
    /// Its place in the order of all replies.
    stamp: u32,
    hash: (u32, HashKind),
    link: LinkType,
    bytes: Box<[u8]>,
}

impl Reply {
    /// Bytes on the wire.
    pub(super) fn wire_len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Writes the reply into a buffer, as the DMA of a NIC does.
    ///
    /// # Errors
    /// [`AllocError`] without buffers, or when it fits into no chain of them.
    pub(super) fn packet(
        &self,
        device: DeviceId,
        pool: &mut PoolCache,
    ) -> Result<Mbuf, AllocError> {
        let mut packet = pool.alloc_from(&self.bytes)?;
        packet.set_timestamp(Time::from_nanos(self.due));
        packet.set_wire_len(self.bytes.len() as u32);
        packet.set_stamp(self.stamp);
        packet.set_device(device);
        packet.set_link(self.link);
        packet.set_hash(self.hash.0, self.hash.1);
        Ok(packet)
    }
}

impl Replies {
    /// None are under way. They arrive at a NIC of `config` with buffers as in `pool`, `delay` after what they answer, and
    /// `most` are under way at most.
    pub(super) fn new(
        config: &SimConfig,
        pool: &Mempool,
        (delay, most): (Duration, usize),
    ) -> Replies {
        Replies {
            delay: u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX),
            most,
            hasher: PacketHasher::new(config),
            room: pool.longest_packet() / MAX_SEGMENTS,
            state: Mutex::default(),
        }
    }

    /// A reply to a packet that is sent, to be appended by [`Replies::append`].
    pub(super) fn reply(&self, bytes: &[u8], link: LinkType) -> Reply {
        // What a device reads of a frame in several buffers is in the first.
        let first = &bytes[..bytes.len().min(self.room)];
        let hash = self.hasher.hash(first, bytes.len(), link);
        let bucket = self.hasher.steering.bucket_of_hash(hash.0);
        Reply { due: 0, bucket, stamp: 0, hash, link, bytes: bytes.into() }
    }

    /// Appends replies to packets that were sent at `now`, as many of the first as there is room for; the others stay.
    ///
    /// A reply is due the delay later, and neither before the one appended last, as on a link, nor before what receive
    /// queues have already looked for: a lane that was interrupted as it sent gets its replies late.
    pub(super) fn append(&self, replies: &mut VecDeque<Reply>, now: Time) {
        let mut state = lock(&self.state);
        if state.is_stopped {
            replies.clear();
            return;
        }
        let due = now.as_nanos().saturating_add(self.delay);
        while state.pending < self.most
            && let Some(mut reply) = replies.pop_front()
        {
            state.late += u64::from(due < state.looked);
            reply.due = due.max(state.looked).max(state.last_due);
            reply.stamp = state.made as u32;
            state.last_due = reply.due;
            state.made += 1;
            state.pending += 1;
            state.replies.push_back(Some(reply));
        }
    }

    /// Moves the replies that are due before `before` and lead here, which `is_wanted` states by their time and bucket, to
    /// the end of `taken`. `looked` is how far the queue has looked through all replies.
    pub(super) fn take_due(
        &self,
        before: u64,
        looked: &mut u64,
        is_wanted: impl Fn(u64, usize) -> bool,
        taken: &mut VecDeque<Reply>,
    ) {
        let mut state = lock(&self.state);
        let State { replies, first, pending, .. } = &mut *state;
        let mut at = looked.saturating_sub(*first) as usize;
        while let Some(slot) = replies.get_mut(at) {
            if slot.as_ref().is_some_and(|reply| reply.due >= before) {
                break;
            }
            if let Some(reply) = slot.take_if(|reply| is_wanted(reply.due, reply.bucket)) {
                *pending -= 1;
                taken.push_back(reply);
            }
            at += 1;
        }
        *looked = *first + at as u64;
        while replies.pop_front_if(|slot| slot.is_none()).is_some() {
            *first += 1;
        }
        state.looked = state.looked.max(before);
    }

    /// When the next of those is due that a queue has not looked at, whatever queue it leads to.
    pub(super) fn next_due(&self, looked: u64) -> Option<u64> {
        let state = lock(&self.state);
        let at = looked.saturating_sub(state.first) as usize;
        state.replies.iter().skip(at).flatten().next().map(|reply| reply.due)
    }

    /// What is under way, and what is appended later, never arrives.
    pub(super) fn stop(&self) {
        let mut state = lock(&self.state);
        state.is_stopped = true;
        state.replies.clear();
        state.pending = 0;
    }

    /// Nanoseconds from a packet to its reply.
    pub(super) fn delay(&self) -> u64 {
        self.delay
    }

    /// Whether none is under way.
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.state).pending == 0
    }

    /// Replies so far, and how many of them were late.
    pub(super) fn made(&self) -> (u64, u64) {
        let state = lock(&self.state);
        (state.made, state.late)
    }
}
