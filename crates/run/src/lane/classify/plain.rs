//! The fast path of the first stage: usual packets of TCP and UDP, from devices where the device alone says which side they come
//! from, of flows that the lane owns. That is most packets of most runs, and what is done here is all that these need before
//! their flows are looked up. The second stage follows some packets behind it.

use rheostat_base::Time;
use rheostat_packet::{FlowKey, Headers, Mbuf, usual};
use rheostat_steer::Side;

use super::{Classifier, Found, Owned, PacketInfo, PacketKind, Placement, Places};
use crate::lane::batch::Spare;
use crate::migrate::Place;

/// Packets that are classified between one and the search for its flow. The line of the index is on its way meanwhile: fewer
/// packets are done before it arrives, and more leave the lines of the entry too little time.
pub(super) const LAG: usize = 10;

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

    #[inline(always)]
    fn plain_from<const INSIDE: bool, const REDUCED: bool>(
        &self,
        burst: &[Mbuf],
        Spare { infos, probes }: Spare<'_>,
        owned: &Owned<'_>,
    ) -> Found {
        let spare = Spare { infos: &mut *infos, probes: &mut *probes };
        let v4 = self.plain_v4::<INSIDE, REDUCED>(burst, spare, owned);
        if v4.left.is_empty() {
            return v4;
        }
        let spare = Spare { infos: &mut *infos, probes: &mut *probes };
        let tagged = self.plain_tagged::<INSIDE, REDUCED>(v4.left, burst, spare, owned);
        let latest = v4.latest.max(tagged.latest);
        if tagged.left.is_empty() {
            return Found { latest, ..tagged };
        }
        let spare = Spare { infos, probes };
        let others = self.plain_others::<INSIDE, REDUCED>(tagged.left, burst, spare, owned);
        Found { left: others.left, latest: latest.max(others.latest) }
    }

    /// The packets of IPv4 without tags. A function of its own for each case, and small, so that what it works with stays in
    /// registers.
    #[inline(never)]
    fn plain_v4<const INSIDE: bool, const REDUCED: bool>(
        &self,
        burst: &[Mbuf],
        Spare { infos, probes }: Spare<'_>,
        owned: &Owned<'_>,
    ) -> Found {
        let mut found = Found { left: Places::default(), latest: Time::ZERO };
        for (place, packet) in burst.iter().enumerate() {
            match self.plain_one::<INSIDE, REDUCED>(packet, usual::v4, &mut infos[place], owned) {
                Some(now) => found.latest = found.latest.max(now),
                None => found.left.add(place),
            }
            if place >= LAG && !found.left.contains(place - LAG) {
                probes[place - LAG] = owned.shards.probe(&infos[place - LAG]);
            }
        }
        found
    }

    /// The packets of IPv4 with a tag among those at the places `wanted`.
    #[inline(never)]
    fn plain_tagged<const INSIDE: bool, const REDUCED: bool>(
        &self,
        wanted: Places,
        burst: &[Mbuf],
        spare: Spare<'_>,
        owned: &Owned<'_>,
    ) -> Found {
        self.plain_among::<INSIDE, REDUCED>(wanted, usual::tagged_v4, burst, spare, owned)
    }

    /// The packets of IPv6 among those at the places `wanted`.
    #[inline(never)]
    fn plain_others<const INSIDE: bool, const REDUCED: bool>(
        &self,
        wanted: Places,
        burst: &[Mbuf],
        spare: Spare<'_>,
        owned: &Owned<'_>,
    ) -> Found {
        let usual = |packet: &Mbuf| usual::v6(packet).or_else(|| usual::tagged_v6(packet));
        self.plain_among::<INSIDE, REDUCED>(wanted, usual, burst, spare, owned)
    }

    /// The packets that `usual` knows among those at the places `wanted`.
    #[inline(always)]
    fn plain_among<const INSIDE: bool, const REDUCED: bool>(
        &self,
        mut wanted: Places,
        usual: impl Fn(&Mbuf) -> Option<(Headers, FlowKey)>,
        burst: &[Mbuf],
        Spare { infos, probes }: Spare<'_>,
        owned: &Owned<'_>,
    ) -> Found {
        let mut found = Found { left: Places::default(), latest: Time::ZERO };
        let (mut behind, mut count) = (Places::default(), 0);
        while let Some(place) = wanted.pop() {
            let (packet, info) = (&burst[place], &mut infos[place]);
            let Some(now) = self.plain_one::<INSIDE, REDUCED>(packet, &usual, info, owned) else {
                found.left.add(place);
                continue;
            };
            found.latest = found.latest.max(now);
            behind.add(place);
            count += 1;
            if count > LAG
                && let Some(first) = behind.pop()
            {
                probes[first] = owned.shards.probe(&infos[first]);
            }
        }
        found
    }

    /// Writes down what is found out about one packet, if `usual` knows its layers and its key, and returns its time.
    #[inline(always)]
    fn plain_one<const INSIDE: bool, const REDUCED: bool>(
        &self,
        packet: &Mbuf,
        usual: impl Fn(&Mbuf) -> Option<(Headers, FlowKey)>,
        info: &mut PacketInfo,
        owned: &Owned<'_>,
    ) -> Option<Time> {
        // A hash covers ports unless keys have none.
        let is_plain = if REDUCED { packet.mark() == 0 } else { packet.is_plain() };
        if !is_plain || self.unusual.includes(packet.stamp()) {
            return None;
        }
        let (headers, key) = usual(packet)?;
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
