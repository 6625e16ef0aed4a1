//! The first stage for services that keep no state: the hash that a device gave a packet tells its shard, and nothing else
//! has to be found out.

use rheostat_base::Time;
use rheostat_packet::{HashKind, Headers, Mbuf};
use rheostat_steer::Side;

use super::{Classifier, Found, Owned, PacketInfo, Placement, Places};
use crate::migrate::Place;

impl Classifier<'_> {
    /// Writes down the shards of the packets of `burst` that a device has hashed, all from `side`, if the lane owns them, at their
    /// places in `infos`, and counts them.
    #[inline(never)]
    pub(in crate::lane) fn hashed(
        &self,
        side: Side,
        burst: &[Mbuf],
        infos: &mut [PacketInfo],
        owned: &Owned<'_>,
    ) -> Found {
        let mut found = Found { left: Places::default(), latest: Time::ZERO };
        for (place, (packet, info)) in burst.iter().zip(infos).enumerate() {
            let shard = self.steering.shard_of_hash(packet.hash());
            if packet.hash_kind() == HashKind::None
                || packet.mark() != 0
                || self.unusual.includes(packet.stamp())
                || owned.ownership.place(shard) != Place::Local
            {
                found.left.add(place);
                continue;
            }
            owned.loads.count(shard, packet.len());
            let now = self.time.of(packet, self.now);
            found.latest = found.latest.max(now);
            info.set(Headers::default(), now, &Placement { shard, side, ..Placement::NONE });
        }
        found
    }

    /// Writes down the shards of those of the packets of `burst` at these places, at the same ones in `infos`: by their hashes,
    /// else by their keys, and of what cannot be parsed the first.
    pub(in crate::lane) fn unhashed(
        &self,
        wanted: Places,
        burst: &[Mbuf],
        infos: &mut [PacketInfo],
    ) {
        for place in wanted {
            let (packet, info) = (&burst[place], &mut infos[place]);
            let now = self.time.of(packet, self.now);
            let found = self.one(packet);
            let found = found.unwrap_or_else(|_| PacketInfo::unplaced(Headers::default(), now));
            let shard = match packet.hash_kind() {
                HashKind::None => found.shard,
                _ => self.steering.shard_of_hash(packet.hash()),
            };
            *info = found.as_non_flow();
            info.shard = shard;
        }
    }
}
