//! What was found out about a packet.

use std::fmt;
use std::mem::offset_of;
use std::ops::{Deref, DerefMut};

use rheostat_base::clock::Cycles;
use rheostat_base::{DeviceId, ShardId, Time};
use rheostat_packet::{Family, FlowKey, Headers, Mbuf};
use rheostat_state::{FlowHash, FlowHasher};
use rheostat_steer::{Oriented, Side, Steering};

use crate::offload::FlowNumber;

/// Why a packet is where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketKind {
    /// It carries its flow's key.
    Flow,
    /// An ICMP error about a packet of the flow whose key it carries.
    IcmpError,
    /// A fragment that has yet to see the fragment tracker of its home shard.
    Fragment,
    /// It belongs to no flow: not IP, an ICMP message about no packet, or not of a packet set.
    NonFlow,
}

/// The facts about a packet: a line for packets of IPv4, and beside it one that keys of IPv6 need.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct PacketInfo {
    facts: PacketFacts,
}

/// The words of a [`PacketInfo`], without the room to the end of its second line.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PacketFacts {
    /// The first words of the key.
    words: [u64; 2],
    /// The hash of the key in flow tables.
    pub hash: FlowHash,
    /// When the packet arrived: its time stamp, or the time of the poll, as the run counts time.
    pub now: Time,
    /// Where its headers lie.
    pub headers: Headers,
    /// The shard whose owner processes it.
    pub shard: ShardId,
    traits: Traits,
    /// The other words of a key of IPv6. Of other packets, whatever stood here before.
    rest: [u64; 3],
    /// The bits of the number of the packet's flow, if that is away. Of a packet of a joint shard, its ticket. Of others,
    /// whatever stood here before.
    number: u32,
    /// When its home published it, if hops are timed. Of other packets, whatever stood here before.
    published: Cycles,
}

const _: () = assert!(offset_of!(PacketFacts, traits) < 64 && offset_of!(PacketFacts, rest) == 64);

impl PacketFacts {
    /// The number of its flow, for a packet on its way between the flow's home and the lane that the flow is with.
    #[inline]
    pub fn offloaded(&self) -> Option<FlowNumber> {
        (self.traits.0 & OFFLOADED != 0).then(|| FlowNumber::from_bits(self.number))
    }
}

impl Deref for PacketInfo {
    type Target = PacketFacts;

    #[inline(always)]
    fn deref(&self) -> &PacketFacts {
        &self.facts
    }
}

impl DerefMut for PacketInfo {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut PacketFacts {
        &mut self.facts
    }
}

/// A packet with its facts, on its way to another lane.
#[derive(Debug)]
pub struct HandoffPacket {
    /// The packet.
    pub packet: Mbuf,
    /// Its facts.
    pub info: PacketInfo,
}

/// A packet with its facts, as it lies in a ring between lanes: two lines, since the handle of the packet takes the room that
/// [`PacketInfo`] has to spare.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct LinkPacket {
    facts: PacketFacts,
    packet: Mbuf,
}

const _: () = assert!(size_of::<LinkPacket>() == 128);

impl LinkPacket {
    /// For a packet that is taken from where it lay.
    #[inline(always)]
    pub(crate) fn new(packet: Mbuf, info: &PacketInfo) -> LinkPacket {
        LinkPacket { facts: info.facts, packet }
    }

    /// The packet and its facts.
    #[inline(always)]
    pub(crate) fn unpack(self) -> HandoffPacket {
        HandoffPacket { packet: self.packet, info: PacketInfo { facts: self.facts } }
    }

    /// The packet itself.
    #[inline]
    pub(crate) fn packet(&self) -> &Mbuf {
        &self.packet
    }

    /// A copy of the packet's facts.
    pub(crate) fn info(&self) -> PacketInfo {
        PacketInfo { facts: self.facts }
    }

    /// The shard of the packet's flow.
    #[inline]
    pub(crate) fn shard(&self) -> ShardId {
        self.facts.shard
    }

    /// As [`PacketFacts::offloaded`].
    #[inline]
    pub(crate) fn offloaded(&self) -> Option<FlowNumber> {
        self.facts.offloaded()
    }

    /// Notes when the packet is published.
    pub(crate) fn set_published(&mut self, now: Cycles) {
        self.facts.published = now;
    }
}

/// What is yes or no about a packet, and its kind, in one byte.
#[derive(Clone, Copy, Debug)]
struct Traits(u8);

/// The lowest two bits: the kind.
const KIND: u8 = 0b11;
const FORWARD: u8 = 1 << 2;
const OUTSIDE: u8 = 1 << 3;
const USUAL: u8 = 1 << 4;
const V6: u8 = 1 << 5;
const OFFLOADED: u8 = 1 << 6;

/// Where a packet belongs.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    /// The key of its flow, oriented; for a fragment that of its datagram, without ports; without a flow
    /// what it is placed by, all zero when that is nothing.
    pub key: FlowKey,
    /// The hash of the key in flow tables.
    pub hash: FlowHash,
    /// The shard whose owner processes it.
    pub shard: ShardId,
    /// The side it came from.
    pub side: Side,
    /// Whether it travels from the key's first endpoint to the second.
    pub forward: bool,
    /// Why it is where it is.
    pub kind: PacketKind,
    /// Whether it may take the fast path (see [`PacketInfo::is_usual`]).
    pub is_usual: bool,
}

impl Placement {
    /// That of a packet of which nothing is known yet.
    pub const NONE: Placement = Placement {
        key: FlowKey::NONE,
        hash: FlowHash(0),
        shard: Steering::UNPLACED,
        side: Side::Inside,
        forward: true,
        kind: PacketKind::NonFlow,
        is_usual: false,
    };
}

impl PacketInfo {
    /// Writes down everything about a packet.
    #[inline(always)]
    pub fn set(&mut self, headers: Headers, now: Time, placement: &Placement) {
        self.headers = headers;
        self.now = now;
        self.place(placement);
    }

    /// Writes down where a packet belongs.
    #[inline(always)]
    pub fn place(&mut self, placement: &Placement) {
        let &Placement { key, hash, shard, side, forward, kind, is_usual } = placement;
        let bit = |is: bool, bit: u8| if is { bit } else { 0 };
        let family = bit(key.family() == Family::V6, V6);
        let side = bit(side == Side::Outside, OUTSIDE);
        let traits = kind as u8 | bit(forward, FORWARD) | side | bit(is_usual, USUAL) | family;
        self.traits = Traits(traits);
        self.hash = hash;
        self.shard = shard;
        let [first, second, rest @ ..] = *key.raw();
        self.words = [first, second];
        if key.family() == Family::V6 {
            self.rest = rest;
        }
    }

    /// Where the packet belongs.
    #[inline]
    pub fn placement(&self) -> Placement {
        Placement {
            key: self.key(),
            hash: self.hash,
            shard: self.shard,
            side: self.side(),
            forward: self.forward(),
            kind: self.kind(),
            is_usual: self.is_usual(),
        }
    }

    /// See [`Placement::key`].
    #[inline(always)]
    pub fn key(&self) -> FlowKey {
        let ([a, b], [c, d, e]) = (self.words, self.rest);
        match self.traits.0 & V6 {
            0 => FlowKey::from_raw([a, b, 0, 0, 0], Family::V4),
            _ => FlowKey::from_raw([a, b, c, d, e], Family::V6),
        }
    }

    /// The first words of the key: all that a key of IPv4 has.
    #[inline(always)]
    pub(crate) fn first_words(&self) -> [u64; 2] {
        self.words
    }

    /// 0 if the key is of IPv4: for a look at many packets at once.
    #[inline(always)]
    pub(crate) fn v6_bit(&self) -> u8 {
        self.traits.0 & V6
    }

    /// The last word of a key of IPv6: its ports, protocol and zone.
    #[inline(always)]
    pub(crate) fn last_word(&self) -> u64 {
        self.rest[2]
    }

    /// The family of the key.
    #[inline(always)]
    pub fn family(&self) -> Family {
        if self.traits.0 & V6 == 0 { Family::V4 } else { Family::V6 }
    }

    /// The side it came from.
    #[inline]
    pub fn side(&self) -> Side {
        if self.traits.0 & OUTSIDE == 0 { Side::Inside } else { Side::Outside }
    }

    /// Whether it travels from the key's first endpoint to the second.
    #[inline]
    pub fn forward(&self) -> bool {
        self.traits.0 & FORWARD != 0
    }

    /// Why it is where it is.
    #[inline]
    pub fn kind(&self) -> PacketKind {
        match self.traits.0 & KIND {
            0 => PacketKind::Flow,
            1 => PacketKind::IcmpError,
            2 => PacketKind::Fragment,
            _ => PacketKind::NonFlow,
        }
    }

    /// Whether its flow is looked up.
    #[inline]
    pub fn has_key(&self) -> bool {
        matches!(self.kind(), PacketKind::Flow | PacketKind::IcmpError)
    }

    /// Whether it may take the fast path: a packet of its flow, of TCP or UDP, no fragment, whose transport header lies
    /// whole in the first segment, and which is not followed through the run.
    #[inline]
    pub fn is_usual(&self) -> bool {
        self.traits.0 & USUAL != 0
    }

    /// Whether it may take the fast path, whatever was found out about it.
    #[inline]
    pub fn set_usual(&mut self, is_usual: bool) {
        self.traits.0 = self.traits.0 & !USUAL | if is_usual { USUAL } else { 0 };
    }

    /// With which ticket the packet enters its joint shard. None of its flows is away.
    #[inline]
    pub(crate) fn ticket(&self) -> u32 {
        self.number
    }

    /// Notes with which ticket it enters.
    #[inline]
    pub(crate) fn set_ticket(&mut self, ticket: u32) {
        self.number = ticket;
    }

    /// Notes that the packet's flow is away, or that it is not.
    #[inline]
    pub fn set_offloaded(&mut self, number: Option<FlowNumber>) {
        self.traits.0 &= !OFFLOADED;
        if let Some(number) = number {
            self.traits.0 |= OFFLOADED;
            self.number = number.bits();
        }
    }

    /// When the packet's home published it, where hops are timed.
    #[inline]
    pub(crate) fn published(&self) -> Cycles {
        self.published
    }

    /// Notes when the packet's home publishes it.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn set_published(&mut self, now: Cycles) {
        self.published = now;
    }

    /// The same packet as one without a flow. Its place stays.
    #[must_use]
    pub(super) fn as_non_flow(mut self) -> PacketInfo {
        let place = self.placement();
        self.place(&Placement { kind: PacketKind::NonFlow, is_usual: false, ..place });
        self
    }

    /// The same packet as one without a flow, unless packets with this key have one. Its place stays.
    #[must_use]
    pub(super) fn or_non_flow(self, key: &FlowKey, steering: &Steering) -> PacketInfo {
        if steering.admits(key, self.side()) { self } else { self.as_non_flow() }
    }

    /// A packet with this place.
    pub fn of(headers: Headers, now: Time, placement: &Placement) -> PacketInfo {
        let mut info = PacketInfo::default();
        info.set(headers, now, placement);
        info
    }

    /// A packet of which nothing is known yet but its headers.
    pub(super) fn unplaced(headers: Headers, now: Time) -> PacketInfo {
        let mut info = PacketInfo::default();
        (info.headers, info.now) = (headers, now);
        info
    }

    /// The same packet as one of the flow that software found it to belong to. `key` is in the
    /// packet's direction.
    #[must_use]
    pub(super) fn of_flow(
        mut self,
        device: DeviceId,
        key: FlowKey,
        steering: &Steering,
        hasher: &FlowHasher,
    ) -> PacketInfo {
        let Oriented { key, side, forward } = steering.orient(device, key);
        let (shard, hash) = (steering.shard_of_key(&key), hasher.hash(&key));
        let (kind, is_usual) = (PacketKind::Flow, self.is_usual());
        self.place(&Placement { key, hash, shard, side, forward, kind, is_usual });
        self
    }

    /// A fragment that has met its tracker and learned the key of its flow, in its own direction.
    pub(crate) fn of_known_fragment(
        packet: &Mbuf,
        headers: Headers,
        key: FlowKey,
        steering: &Steering,
        hasher: &FlowHasher,
        now: Time,
    ) -> PacketInfo {
        let info = PacketInfo::unplaced(headers, now);
        info.of_flow(packet.device(), key, steering, hasher).or_non_flow(&key, steering)
    }
}

impl Default for PacketInfo {
    /// A packet of which nothing is known.
    fn default() -> PacketInfo {
        let facts = PacketFacts {
            words: [0; 2],
            hash: FlowHash(0),
            now: Time::ZERO,
            headers: Headers::default(),
            shard: ShardId(0),
            traits: Traits(0),
            rest: [0; 3],
            number: 0,
            published: Cycles(0),
        };
        let mut info = PacketInfo { facts };
        info.place(&Placement::NONE);
        info
    }
}

impl fmt::Debug for PacketInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketInfo")
            .field("headers", &self.headers)
            .field("now", &self.now)
            .field("placement", &self.placement())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn everything_about_a_packet_is_found_again() {
        let v4 = FlowKey::v4((Ipv4Addr::LOCALHOST, 7), (Ipv4Addr::BROADCAST, 9), 17, 5);
        let v6 = FlowKey::v6((Ipv6Addr::LOCALHOST, 7), (Ipv6Addr::from_bits(!0), 9), 6, 0);
        let kinds =
            [PacketKind::Flow, PacketKind::IcmpError, PacketKind::Fragment, PacketKind::NonFlow];
        let mut info = PacketInfo::default();
        // A key of IPv6 leaves nothing behind in one of IPv4.
        for key in [v6, v4, v6, v6.reversed(), v4.reversed(), FlowKey::NONE] {
            for kind in kinds {
                for bits in 0..8 {
                    let side = if bits & 1 == 0 { Side::Inside } else { Side::Outside };
                    let (forward, is_usual) = (bits & 2 != 0, bits & 4 != 0);
                    let (hash, shard) = (FlowHash(bits + 1), ShardId(300));
                    let placement = Placement { key, hash, shard, side, forward, kind, is_usual };
                    info.place(&placement);
                    assert_eq!(format!("{:?}", info.placement()), format!("{placement:?}"));
                    info.set_usual(false);
                    assert!(!info.is_usual() && info.forward() == forward && info.key() == key);
                    assert_eq!(info.offloaded(), None, "a new place is one at home");
                    let number = FlowNumber::from_bits(9);
                    info.set_offloaded(Some(number));
                    assert_eq!((info.offloaded(), info.key()), (Some(number), key));
                }
            }
        }
    }
}
