//! The fast path of the first stage: usual packets of TCP and UDP over IPv4, from devices where the device alone says which side
//! they come from, of flows that the lane owns. That is most packets of most runs, and what is done here is all that these
//! need before their flows are looked up.

use rheostat_base::Time;
use rheostat_packet::{FlowKey, HashKind, Headers, Mbuf, usual};
use rheostat_steer::Side;

use super::{Classifier, PacketInfo, PacketKind, Places};
use crate::load::ShardLoads;
use crate::migrate::{Ownership, Place};
use crate::shard_set::ShardSet;

/// What a lane has.
pub(in crate::lane) struct Here<'a> {
    pub(in crate::lane) ownership: &'a Ownership,
    pub(in crate::lane) shards: &'a ShardSet,
    pub(in crate::lane) loads: &'a ShardLoads,
}

/// What came of a burst.
pub(in crate::lane) struct Found {
    /// Packets of other kinds, about which nothing was found out.
    pub(in crate::lane) left: Places,
    /// The latest time of the others.
    pub(in crate::lane) latest: Time,
}

impl Classifier<'_> {
    /// Writes down what is found out about the plain packets of `burst`, all from `side`, at their places in `infos`, counts
    /// them, and asks for the lines of the index that lead to their flows.
    pub(in crate::lane) fn plain(
        &self,
        side: Side,
        burst: &[Mbuf],
        infos: &mut [PacketInfo],
        here: &Here<'_>,
    ) -> Found {
        match (side, self.steering.reduces_keys()) {
            (Side::Inside, false) => self.plain_from::<true, false>(burst, infos, here),
            (Side::Outside, false) => self.plain_from::<false, false>(burst, infos, here),
            (Side::Inside, true) => self.plain_from::<true, true>(burst, infos, here),
            (Side::Outside, true) => self.plain_from::<false, true>(burst, infos, here),
        }
    }

    /// A function of its own for each case, and small, so that what it works with stays in registers.
    #[inline(never)]
    fn plain_from<const INSIDE: bool, const REDUCED: bool>(
        &self,
        burst: &[Mbuf],
        infos: &mut [PacketInfo],
        here: &Here<'_>,
    ) -> Found {
        let side = if INSIDE { Side::Inside } else { Side::Outside };
        let mut found = Found { left: Places::default(), latest: Time::ZERO };
        for (place, (packet, info)) in burst.iter().zip(infos).enumerate() {
            let Some((headers, key)) = self.plain_one(packet) else {
                found.left.add(place);
                continue;
            };
            let key = if INSIDE { key } else { key.reversed() };
            let key = if REDUCED { self.steering.reduced(key, side) } else { key };
            let covers = if REDUCED { self.steering.kind_of(&key) } else { HashKind::Ports };
            let shard = self.steering.shard_of_hash(packet.hash());
            if packet.hash_kind() != covers || here.ownership.place(shard) != Place::Here {
                found.left.add(place);
                continue;
            }
            let hash = self.hasher.hash(&key);
            here.shards.prefetch(shard, hash);
            here.loads.count(shard, packet.len());
            let now = self.time.of(packet, self.now);
            found.latest = found.latest.max(now);
            let (forward, kind, is_usual) = (INSIDE, PacketKind::Flow, true);
            *info = PacketInfo { headers, key, hash, now, shard, side, forward, kind, is_usual };
        }
        found
    }

    /// Layers and key, source first, of a packet that is neither followed nor to be treated as unusual.
    #[inline(always)]
    fn plain_one(&self, packet: &Mbuf) -> Option<(Headers, FlowKey)> {
        match packet.mark() == 0 && !self.unusual.includes(packet.stamp()) {
            true => usual::v4(packet),
            false => None,
        }
    }
}
