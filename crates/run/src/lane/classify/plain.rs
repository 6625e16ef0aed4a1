//! The fast path of the first stage: usual packets of TCP and UDP, from devices where the device alone says which side they come
//! from, of flows that the lane owns. That is most packets of most runs, and what is done here is all that these need before
//! their flows are looked up. The second stage follows some packets behind it.

use rheostat_base::{ShardId, Time};
use rheostat_packet::usual::UsualKind;
use rheostat_packet::{FlowKey, HashKind, Headers, Mbuf, usual};
use rheostat_steer::{Side, Steering};

use super::{Classifier, Found, Owned, PacketInfo, PacketKind, Placement, Places};
use crate::lane::batch::Spare;
use crate::migrate::Place;

/// Packets that are classified between one and the search for its flow. The line of the index is on its way meanwhile: fewer
/// packets are done before it arrives, and more leave the lines of the entry too little time.
pub(super) const LAG: usize = 10;

/// A kind of usual packets. A type and not a function that is passed on: even where that is known, calls of it may stay calls.
trait Usual {
    /// Layers and key, source first, of a packet of this kind.
    fn parse(packet: &Mbuf) -> Option<(Headers, FlowKey)>;
}

/// Of IPv4, without a tag.
struct V4;
/// Of IPv4, with a tag.
struct TaggedV4;
/// Of IPv6, without a tag.
struct V6;
/// Of any kind.
struct Any;

impl Usual for V4 {
    #[inline(always)]
    fn parse(packet: &Mbuf) -> Option<(Headers, FlowKey)> {
        usual::v4(packet)
    }
}

impl Usual for TaggedV4 {
    #[inline(always)]
    fn parse(packet: &Mbuf) -> Option<(Headers, FlowKey)> {
        usual::tagged_v4(packet)
    }
}

impl Usual for V6 {
    #[inline(always)]
    fn parse(packet: &Mbuf) -> Option<(Headers, FlowKey)> {
        usual::v6(packet)
    }
}

impl Usual for Any {
    #[inline(always)]
    fn parse(packet: &Mbuf) -> Option<(Headers, FlowKey)> {
        usual::parse(packet)
    }
}

/// A way from a packet with an oriented key to the key that names its flow, and to its shard. A type for the same reason.
trait Placing {
    /// Whether the way is one for the packet, as far as its handle shows.
    fn is_for(packet: &Mbuf) -> bool;

    /// `None` for a packet that has to be placed another way.
    fn place(
        steering: &Steering,
        packet: &Mbuf,
        key: FlowKey,
        side: Side,
    ) -> Option<(FlowKey, ShardId)>;
}

/// By the device's hash over addresses and ports, which name the flow.
struct ByHash;
/// By the device's hash over some fields of these, which name the flow.
struct ByReducedHash;
/// By the device's hash where that can be, else by the key. So are packets placed that a device has not hashed, and those behind a
/// translation whose external addresses devices do not know. A packet that the device has placed in another shard has to be
/// brought there, and is not for this way.
struct ByAny;

impl Placing for ByHash {
    #[inline(always)]
    fn is_for(packet: &Mbuf) -> bool {
        packet.is_plain()
    }

    #[inline(always)]
    fn place(
        steering: &Steering,
        packet: &Mbuf,
        key: FlowKey,
        _: Side,
    ) -> Option<(FlowKey, ShardId)> {
        debug_assert_eq!(packet.hash_kind(), steering.kind_of(&key));
        Some((key, steering.shard_of_hash(packet.hash())))
    }
}

impl Placing for ByReducedHash {
    /// A hash covers ports unless keys have none.
    #[inline(always)]
    fn is_for(packet: &Mbuf) -> bool {
        packet.mark() == 0
    }

    #[inline(always)]
    fn place(
        steering: &Steering,
        packet: &Mbuf,
        key: FlowKey,
        side: Side,
    ) -> Option<(FlowKey, ShardId)> {
        let key = steering.reduced(key, side);
        let is_hashed = packet.hash_kind() == steering.kind_of(&key);
        is_hashed.then(|| (key, steering.shard_of_hash(packet.hash())))
    }
}

impl Placing for ByAny {
    #[inline(always)]
    fn is_for(packet: &Mbuf) -> bool {
        packet.mark() == 0
    }

    #[inline(always)]
    fn place(
        steering: &Steering,
        packet: &Mbuf,
        key: FlowKey,
        side: Side,
    ) -> Option<(FlowKey, ShardId)> {
        let key = if steering.reduces_keys() { steering.reduced(key, side) } else { key };
        let shard = steering.place(packet.hash(), packet.hash_kind(), &key);
        let is_placed =
            packet.hash_kind() == HashKind::None || steering.shard_of_hash(packet.hash()) == shard;
        is_placed.then_some((key, shard))
    }
}

impl Classifier<'_> {
    /// Writes down what is found out about the plain packets of `burst`, all from `side`, at their places in `spare`, counts
    /// them, and asks for the lines of the index that lead to their flows. All but the last [`LAG`] are probed, too, so that
    /// memory works on their entries while the lane works on the packets behind them.
    pub(in crate::lane) fn plain(
        &self,
        side: Side,
        burst: &[Mbuf],
        spare: Spare<'_>,
        owned: &Owned<'_>,
    ) -> Found {
        match side {
            Side::Inside => self.plain_from::<true>(burst, spare, owned),
            Side::Outside => self.plain_from::<false>(burst, spare, owned),
        }
    }

    #[inline(always)]
    fn plain_from<const INSIDE: bool>(
        &self,
        burst: &[Mbuf],
        spare: Spare<'_>,
        owned: &Owned<'_>,
    ) -> Found {
        match (self.steering.places_by_hashes(), self.steering.reduces_keys()) {
            (true, false) => self.plain_placed::<ByHash, INSIDE>(burst, spare, owned),
            (true, true) => self.plain_placed::<ByReducedHash, INSIDE>(burst, spare, owned),
            (false, _) => self.plain_placed::<ByAny, INSIDE>(burst, spare, owned),
        }
    }

    /// One loop for the kind of packets that the burst begins with, since most bursts are of one kind, and one for what that
    /// loop left.
    #[inline(always)]
    fn plain_placed<P: Placing, const INSIDE: bool>(
        &self,
        burst: &[Mbuf],
        Spare { infos, probes }: Spare<'_>,
        owned: &Owned<'_>,
    ) -> Found {
        let spare = Spare { infos: &mut *infos, probes: &mut *probes };
        let most = match burst.first().map_or(UsualKind::V4, usual::kind_of) {
            UsualKind::V4 => self.plain_most::<V4, P, INSIDE>(burst, spare, owned),
            UsualKind::Tagged => self.plain_most::<TaggedV4, P, INSIDE>(burst, spare, owned),
            UsualKind::V6 => self.plain_most::<V6, P, INSIDE>(burst, spare, owned),
        };
        if most.left.is_empty() {
            return most;
        }
        let spare = Spare { infos, probes };
        let others = self.plain_others::<INSIDE>(most.left, burst, spare, owned);
        Found { left: others.left, latest: most.latest.max(others.latest) }
    }

    /// The packets of a burst that are of kind `U`. A function of its own for each case, and small, so that what it works with
    /// stays in registers.
    #[inline(never)]
    fn plain_most<U: Usual, P: Placing, const INSIDE: bool>(
        &self,
        burst: &[Mbuf],
        Spare { infos, probes }: Spare<'_>,
        owned: &Owned<'_>,
    ) -> Found {
        let mut found = Found { left: Places::default(), latest: Time::ZERO };
        for (place, packet) in burst.iter().enumerate() {
            match self.plain_one::<U, P, INSIDE>(packet, &mut infos[place], owned) {
                Some(now) => found.latest = found.latest.max(now),
                None => found.left.add(place),
            }
            if place >= LAG && !found.left.contains(place - LAG) {
                probes[place - LAG] = owned.shards.probe(&infos[place - LAG]);
            }
        }
        found
    }

    /// The plain packets of any kind, placed by whatever they have, among those at the places `wanted`.
    #[inline(never)]
    fn plain_others<const INSIDE: bool>(
        &self,
        wanted: Places,
        burst: &[Mbuf],
        Spare { infos, probes }: Spare<'_>,
        owned: &Owned<'_>,
    ) -> Found {
        let mut found = Found { left: Places::default(), latest: Time::ZERO };
        let (mut behind, mut count) = (Places::default(), 0);
        for place in wanted {
            let (packet, info) = (&burst[place], &mut infos[place]);
            let Some(now) = self.plain_one::<Any, ByAny, INSIDE>(packet, info, owned) else {
                found.left.add(place);
                continue;
            };
            found.latest = found.latest.max(now);
            behind.add(place);
            count += 1;
            if count > LAG
                && let Some(first) = behind.next()
            {
                probes[first] = owned.shards.probe(&infos[first]);
            }
        }
        found
    }

    /// Writes down what is found out about one packet, if it is of kind `U` and can be placed by `P`, and returns its time.
    #[inline(always)]
    fn plain_one<U: Usual, P: Placing, const INSIDE: bool>(
        &self,
        packet: &Mbuf,
        info: &mut PacketInfo,
        owned: &Owned<'_>,
    ) -> Option<Time> {
        if !P::is_for(packet) || self.unusual.includes(packet.stamp()) {
            return None;
        }
        let (headers, key) = U::parse(packet)?;
        let side = if INSIDE { Side::Inside } else { Side::Outside };
        let key = if INSIDE { key } else { key.reversed() };
        let (key, shard) = P::place(self.steering, packet, key, side)?;
        let hint = owned.shards.prefetch_hint(shard)?;
        debug_assert_eq!(owned.ownership.place(shard), Place::Local, "a shard owned is owned");
        let hash = self.hasher.hash(&key);
        hint.prefetch(hash);
        owned.loads.count(shard, packet.len());
        let now = self.time.of(packet, self.now);
        let (forward, kind, is_usual) = (INSIDE, PacketKind::Flow, true);
        let placement = Placement { key, hash, shard, side, forward, kind, is_usual };
        info.set(headers, now, &placement);
        Some(now)
    }
}
