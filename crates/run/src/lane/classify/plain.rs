//! The fast path of the first stage: usual packets of TCP and UDP, from devices where the device alone says which side they come
//! from, of flows that the lane owns. That is most packets of most runs, and what is done here is all that these need before
//! their flows are looked up.

use rheostat_base::Time;
use rheostat_packet::{FlowKey, Headers, Mbuf, usual};
use rheostat_steer::Side;

use super::{Classifier, Found, Owned, PacketInfo, PacketKind, Placement, Places};
use crate::migrate::Place;

impl Classifier<'_> {
    /// Writes down what is found out about the plain packets of `burst`, all from `side`, at their places in `infos`, counts
    /// them, and asks for the lines of the index that lead to their flows.
    pub(in crate::lane) fn plain(
        &self,
        side: Side,
        burst: &[Mbuf],
        infos: &mut [PacketInfo],
        owned: &Owned<'_>,
    ) -> Found {
        match (side, self.steering.reduces_keys()) {
            (Side::Inside, false) => self.plain_from::<true, false>(burst, infos, owned),
            (Side::Outside, false) => self.plain_from::<false, false>(burst, infos, owned),
            (Side::Inside, true) => self.plain_from::<true, true>(burst, infos, owned),
            (Side::Outside, true) => self.plain_from::<false, true>(burst, infos, owned),
        }
    }

    #[inline(always)]
    fn plain_from<const INSIDE: bool, const REDUCED: bool>(
        &self,
        burst: &[Mbuf],
        infos: &mut [PacketInfo],
        owned: &Owned<'_>,
    ) -> Found {
        let mut found = self.plain_v4::<INSIDE, REDUCED>(burst, infos, owned);
        if !found.left.is_empty() {
            self.plain_others::<INSIDE, REDUCED>(burst, infos, owned, &mut found);
        }
        found
    }

    /// The packets of IPv4 without tags. A function of its own for each case, and small, so that what it works with stays in
    /// registers.
    #[inline(never)]
    fn plain_v4<const INSIDE: bool, const REDUCED: bool>(
        &self,
        burst: &[Mbuf],
        infos: &mut [PacketInfo],
        owned: &Owned<'_>,
    ) -> Found {
        let mut found = Found { left: Places::default(), latest: Time::ZERO };
        for (place, (packet, info)) in burst.iter().zip(infos).enumerate() {
            match self.plain_one::<INSIDE, REDUCED>(packet, usual::v4, info, owned) {
                Some(now) => found.latest = found.latest.max(now),
                None => found.left.add(place),
            }
        }
        found
    }

    /// The packets of IPv6, and those with a tag, among those that are left.
    #[inline(never)]
    fn plain_others<const INSIDE: bool, const REDUCED: bool>(
        &self,
        burst: &[Mbuf],
        infos: &mut [PacketInfo],
        owned: &Owned<'_>,
        found: &mut Found,
    ) {
        let mut left = std::mem::take(&mut found.left);
        while let Some(place) = left.pop() {
            let (packet, info) = (&burst[place], &mut infos[place]);
            let usual = |packet: &Mbuf| usual::v6(packet).or_else(|| usual::tagged(packet));
            match self.plain_one::<INSIDE, REDUCED>(packet, usual, info, owned) {
                Some(now) => found.latest = found.latest.max(now),
                None => found.left.add(place),
            }
        }
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
