//! Virtual reassembly: telling which flow the fragments of a datagram belong to.
//!
//! Only a datagram's first fragment carries the ports. The tracker learns the flow key from it, holds
//! fragments that come earlier, and gives them out once the key is known; no byte is copied, and the
//! datagram goes on in fragments. On the way it refuses what no honest sender produces: fragments
//! that overlap (RFC 5722 demands it for IPv6, RFC 1858 and RFC 3128 explain why for IPv4), that disagree
//! about the datagram's end, or that run past the longest datagram there can be. A datagram caught at
//! that is *poisoned*: whatever of it is held or still to come is dropped.
//!
//! Everything is bounded: datagrams, pieces per datagram, packets held, and time. Where there is no
//! room, the oldest datagram is dropped, so that a flood of fragments cannot lock other datagrams
//! out.

mod datagram;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use rheostat_base::{DropReason, Time};
use rheostat_packet::{Family, FlowKey, Fragment, Mbuf};

use datagram::{Datagram, Fault};

/// What the fragments of one datagram have in common: addresses, zone and identification, and for IPv4
/// the protocol (RFC 791, section 3.2; RFC 8200, section 4.5, does not count it for IPv6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DatagramId {
    id: u32,
    ends: FlowKey,
}

impl DatagramId {
    /// The datagram `id` between the addresses of `key`, whose first is the *source*: the key must not
    /// have been oriented, because both ends number their datagrams for themselves. Ports are ignored.
    pub fn new(key: &FlowKey, id: u32) -> DatagramId {
        use std::net::IpAddr::{V4, V6};
        let ends = match (key.first(), key.second()) {
            (V4(source), V4(destination)) => {
                FlowKey::v4((source, 0), (destination, 0), key.protocol(), key.zone())
            }
            (V6(source), V6(destination)) => {
                FlowKey::v6((source, 0), (destination, 0), 0, key.zone())
            }
            _ => unreachable!("both ends of a key are of its family"),
        };
        DatagramId { id, ends }
    }

    fn family(&self) -> Family {
        self.ends.family()
    }
}

/// How much a tracker keeps, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentConfig {
    /// Datagrams tracked at a time. Every fragment is compared with all of them, so a few hundred at
    /// most.
    pub datagrams: usize,
    /// Fragments of one datagram, and packets held for it. 64 of 1,024 bytes make the longest
    /// datagram.
    pub pieces: usize,
    /// Packets held at a time, for all datagrams together.
    pub held: usize,
    /// How long a datagram of IPv4 may take (RFC 791: 15 s and more).
    pub timeout_v4: Duration,
    /// How long a datagram of IPv6 may take (RFC 8200, section 4.5: 60 s).
    pub timeout_v6: Duration,
}

impl FragmentConfig {
    /// Bytes that a tracker takes, packets apart, once it has been as full as it may be.
    pub fn bytes(&self) -> usize {
        let datagram = size_of::<Datagram>() + self.pieces * size_of::<datagram::DatagramPiece>();
        // Packets wait in their datagram, and then once more on their way out.
        let packet = size_of::<Mbuf>() + size_of::<(FlowKey, Mbuf)>();
        self.datagrams * datagram + self.held * packet
    }
}

impl Default for FragmentConfig {
    fn default() -> FragmentConfig {
        FragmentConfig {
            datagrams: 64,
            pieces: 64,
            held: 64,
            timeout_v4: Duration::from_secs(30),
            timeout_v6: Duration::from_secs(60),
        }
    }
}

/// What becomes of a fragment.
#[derive(Debug)]
pub enum Tracked {
    /// It belongs to the flow with this key and goes on. If it was the datagram's first, others may
    /// follow: see [`FragmentTracker::next_released`].
    Release {
        /// The flow key that the datagram's first fragment had.
        key: FlowKey,
        /// The fragment.
        packet: Mbuf,
    },
    /// The tracker keeps it until the first fragment comes.
    Hold,
    /// It is to be dropped.
    Drop {
        /// Why.
        reason: DropReason,
        /// The fragment.
        packet: Mbuf,
    },
}

/// The datagrams of one shard that arrive in fragments.
///
/// After every call, the caller empties [`FragmentTracker::next_released`] and
/// [`FragmentTracker::next_dropped`].
#[derive(Debug)]
pub struct FragmentTracker {
    config: FragmentConfig,
    /// In the order of their first fragments' arrival.
    datagrams: Vec<Datagram>,
    /// Datagrams that are over, kept for their memory.
    spare: Vec<Datagram>,
    /// Packets held in datagrams.
    held: usize,
    /// No datagram's time is up before this.
    next_deadline: Time,
    released: VecDeque<(FlowKey, Mbuf)>,
    dropped: VecDeque<(DropReason, Mbuf)>,
}

impl FragmentTracker {
    /// A tracker of nothing yet. Limits of zero count as one.
    pub fn new(config: FragmentConfig) -> FragmentTracker {
        let FragmentConfig { datagrams, pieces, held, .. } = config;
        FragmentTracker {
            config: FragmentConfig {
                datagrams: datagrams.max(1),
                pieces: pieces.max(1),
                held: held.max(1),
                ..config
            },
            datagrams: Vec::new(),
            spare: Vec::new(),
            held: 0,
            next_deadline: Time::NEVER,
            released: VecDeque::new(),
            dropped: VecDeque::new(),
        }
    }

    /// Decides about one fragment of `datagram`. `key` is the flow's, oriented as the caller likes,
    /// when this is the first fragment and holds the transport header; a first fragment without a key
    /// poisons the datagram (RFC 1858, section 3.1: tiny fragments; RFC 7112 for IPv6).
    pub fn track(
        &mut self,
        datagram: DatagramId,
        fragment: Fragment,
        key: Option<FlowKey>,
        packet: Mbuf,
        now: Time,
    ) -> Tracked {
        self.expire(now);
        if !is_well_formed(&fragment) {
            return Tracked::Drop { reason: DropReason::FragmentInvalid, packet };
        }
        let mut at = match self.find(&datagram) {
            Some(at) => at,
            None => self.begin(datagram, now),
        };
        let fit = match self.datagrams[at].fit(&fragment, key, self.config.pieces) {
            Ok(fit) => fit,
            Err(Fault::Hostile) => {
                self.poison(at);
                return Tracked::Drop { reason: DropReason::FragmentInvalid, packet };
            }
            Err(Fault::TooMany) => {
                return Tracked::Drop { reason: DropReason::FragmentsFull, packet };
            }
        };
        let Some(key) = self.datagrams[at].key.or(key.filter(|_| fragment.offset == 0)) else {
            let Some(place) = self.room_to_hold(at) else {
                return Tracked::Drop { reason: DropReason::FragmentsFull, packet };
            };
            at = place;
            self.datagrams[at].record(&fragment, fit);
            self.datagrams[at].held.push(packet);
            self.held += 1;
            return Tracked::Hold;
        };
        let known = &mut self.datagrams[at];
        known.record(&fragment, fit);
        if known.key.is_none() {
            known.key = Some(key);
            self.held -= known.held.len();
            self.released.extend(known.held.drain(..).map(|packet| (key, packet)));
        }
        if known.is_complete() {
            // Forgotten at once, so that the sender may use the identification again. A duplicate
            // that comes later is held as the beginning of another datagram, and times out.
            self.forget(at);
        }
        Tracked::Release { key, packet }
    }

    /// The next of the fragments that the last first fragment set free, in their order of arrival,
    /// with the key of their flow.
    #[inline]
    pub fn next_released(&mut self) -> Option<(FlowKey, Mbuf)> {
        self.released.pop_front()
    }

    /// The next of the held fragments that are to be dropped, with the reason.
    #[inline]
    pub fn next_dropped(&mut self) -> Option<(DropReason, Mbuf)> {
        self.dropped.pop_front()
    }

    /// Gives up datagrams whose time is up; what was held of them is to be dropped as
    /// [`DropReason::FragmentIncomplete`].
    pub fn expire(&mut self, now: Time) {
        if now < self.next_deadline {
            return;
        }
        let mut at = 0;
        while let Some(datagram) = self.datagrams.get(at) {
            if datagram.deadline <= now {
                self.discard(at, DropReason::FragmentIncomplete);
            } else {
                at += 1;
            }
        }
        let deadlines = self.datagrams.iter().map(|datagram| datagram.deadline);
        self.next_deadline = deadlines.min().unwrap_or(Time::NEVER);
    }

    /// When [`FragmentTracker::expire`] has something to do next, at the earliest.
    pub fn next_due(&self) -> Option<Time> {
        Some(self.next_deadline).filter(|&due| due != Time::NEVER)
    }

    /// Packets the tracker has, those to be released or dropped included.
    pub fn held(&self) -> usize {
        self.held + self.released.len() + self.dropped.len()
    }

    /// Datagrams being tracked.
    pub fn datagrams(&self) -> usize {
        self.datagrams.len()
    }

    /// Takes every packet out of the tracker and forgets all datagrams; for the end of a run.
    pub fn drain(&mut self) -> Vec<Mbuf> {
        let mut packets: Vec<Mbuf> = self.released.drain(..).map(|(_, packet)| packet).collect();
        packets.extend(self.dropped.drain(..).map(|(_, packet)| packet));
        packets.extend(self.datagrams.drain(..).flat_map(|datagram| datagram.held));
        self.held = 0;
        self.next_deadline = Time::NEVER;
        packets
    }

    fn find(&self, id: &DatagramId) -> Option<usize> {
        self.datagrams.iter().position(|datagram| datagram.id == *id)
    }

    /// Begins to track a datagram, in place of the oldest one if need be.
    fn begin(&mut self, id: DatagramId, now: Time) -> usize {
        if self.datagrams.len() == self.config.datagrams {
            self.discard(0, DropReason::FragmentsFull);
        }
        let timeout = match id.family() {
            Family::V4 => self.config.timeout_v4,
            Family::V6 => self.config.timeout_v6,
        };
        let deadline = now + timeout;
        self.next_deadline = self.next_deadline.min(deadline);
        let mut datagram = self.spare.pop().unwrap_or_else(|| Datagram::new(id));
        datagram.restart(id, deadline);
        self.datagrams.push(datagram);
        self.datagrams.len() - 1
    }

    /// Sees to it that the datagram at `at` can hold another packet: the oldest other datagrams that
    /// hold any give way. Returns where it is afterwards, or `None` when it holds too much itself.
    fn room_to_hold(&mut self, mut at: usize) -> Option<usize> {
        let own = self.datagrams[at].held.len();
        if own >= self.config.pieces.min(self.config.held) {
            return None;
        }
        while self.held >= self.config.held {
            let gives_way = |(other, datagram): (usize, &Datagram)| {
                (other != at && !datagram.held.is_empty()).then_some(other)
            };
            let other = self.datagrams.iter().enumerate().find_map(gives_way)?;
            self.discard(other, DropReason::FragmentsFull);
            at -= usize::from(other < at);
        }
        Some(at)
    }

    /// Drops what is held of the datagram at `at`, and whatever of it comes until its time is up.
    fn poison(&mut self, at: usize) {
        self.drop_held(at, DropReason::FragmentInvalid);
        self.datagrams[at].poison();
    }

    /// Drops what is held of the datagram at `at` and forgets it.
    fn discard(&mut self, at: usize, reason: DropReason) {
        self.drop_held(at, reason);
        self.forget(at);
    }

    fn drop_held(&mut self, at: usize, reason: DropReason) {
        let held = &mut self.datagrams[at].held;
        self.held -= held.len();
        self.dropped.extend(held.drain(..).map(|packet| (reason, packet)));
    }

    /// Forgets the datagram at `at`, of which nothing is held.
    fn forget(&mut self, at: usize) {
        let datagram = self.datagrams.remove(at);
        self.spare.push(datagram);
    }
}

/// Whether a fragment can be part of any datagram: one that is not the last carries a multiple of
/// eight bytes (RFC 791, section 3.2; RFC 8200, section 4.5: such a fragment itself is discarded), and
/// each carries some.
fn is_well_formed(fragment: &Fragment) -> bool {
    fragment.len > 0
        && fragment.offset.is_multiple_of(8)
        && (!fragment.more || fragment.len.is_multiple_of(8))
}
