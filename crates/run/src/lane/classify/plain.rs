//! The fast path of the first stage: usual packets of TCP and UDP, from devices where the device alone says which side they come
//! from, of flows that the lane owns. That is most packets of most runs, and what is done here is all that these need before
//! their flows are looked up. The second stage follows some packets behind it.

use rheostat_base::Time;
use rheostat_packet::usual::UsualKind;
use rheostat_packet::{FlowKey, Headers, Mbuf, usual};
use rheostat_steer::Side;

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
        match (side, self.steering.reduces_keys()) {
            (Side::Inside, false) => self.plain_from::<true, false>(burst, spare, owned),
            (Side::Outside, false) => self.plain_from::<false, false>(burst, spare, owned),
            (Side::Inside, true) => self.plain_from::<true, true>(burst, spare, owned),
            (Side::Outside, true) => self.plain_from::<false, true>(burst, spare, owned),
        }
    }

    /// One loop for the kind of packets that the burst begins with, since most bursts are of one kind, and one for what that
    /// loop left.
    #[inline(always)]
    fn plain_from<const INSIDE: bool, const REDUCED: bool>(
        &self,
        burst: &[Mbuf],
        Spare { infos, probes }: Spare<'_>,
        owned: &Owned<'_>,
    ) -> Found {
        let spare = Spare { infos: &mut *infos, probes: &mut *probes };
        let most = match burst.first().map_or(UsualKind::V4, usual::kind_of) {
            UsualKind::V4 => self.plain_most::<V4, INSIDE, REDUCED>(burst, spare, owned),
            UsualKind::Tagged => self.plain_most::<TaggedV4, INSIDE, REDUCED>(burst, spare, owned),
            UsualKind::V6 => self.plain_most::<V6, INSIDE, REDUCED>(burst, spare, owned),
        };
        if most.left.is_empty() {
            return most;
        }
        let spare = Spare { infos, probes };
        let others = self.plain_others::<INSIDE, REDUCED>(most.left, burst, spare, owned);
        Found { left: others.left, latest: most.latest.max(others.latest) }
    }

    /// The packets of a burst that are of kind `U`. A function of its own for each case, and small, so that what it works with
    /// stays in registers.
    #[inline(never)]
    fn plain_most<U: Usual, const INSIDE: bool, const REDUCED: bool>(
        &self,
        burst: &[Mbuf],
        Spare { infos, probes }: Spare<'_>,
        owned: &Owned<'_>,
    ) -> Found {
        let mut found = Found { left: Places::default(), latest: Time::ZERO };
        for (place, packet) in burst.iter().enumerate() {
            match self.plain_one::<U, INSIDE, REDUCED>(packet, &mut infos[place], owned) {
                Some(now) => found.latest = found.latest.max(now),
                None => found.left.add(place),
            }
            if place >= LAG && !found.left.contains(place - LAG) {
                probes[place - LAG] = owned.shards.probe(&infos[place - LAG]);
            }
        }
        found
    }

    /// The plain packets of any kind among those at the places `wanted`.
    #[inline(never)]
    fn plain_others<const INSIDE: bool, const REDUCED: bool>(
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
            let Some(now) = self.plain_one::<Any, INSIDE, REDUCED>(packet, info, owned) else {
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

    /// Writes down what is found out about one packet, if it is of kind `U`, and returns its time.
    #[inline(always)]
    fn plain_one<U: Usual, const INSIDE: bool, const REDUCED: bool>(
        &self,
        packet: &Mbuf,
        info: &mut PacketInfo,
        owned: &Owned<'_>,
    ) -> Option<Time> {
        // A hash covers ports unless keys have none.
        let is_plain = if REDUCED { packet.mark() == 0 } else { packet.is_plain() };
        if !is_plain || self.unusual.includes(packet.stamp()) {
            return None;
        }
        let (headers, key) = U::parse(packet)?;
        let side = if INSIDE { Side::Inside } else { Side::Outside };
        let key = if INSIDE { key } else { key.reversed() };
        let key = if REDUCED { self.steering.reduced(key, side) } else { key };
        if REDUCED && packet.hash_kind() != self.steering.kind_of(&key) {
            return None;
        }
        debug_assert_eq!(packet.hash_kind(), self.steering.kind_of(&key));
        let shard = self.steering.shard_of_hash(packet.hash());
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
