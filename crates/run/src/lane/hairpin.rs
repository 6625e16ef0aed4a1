//! Hairpins: packets from inside to an address that stands for another host inside (RFC 4787,
//! section 6). Translated, they arrive once more, as if from outside.

use rheostat_packet::HashKind;

use super::classify::Classifier;
use super::mirror::note_place;
use super::{HandoffPacket, Lane};

impl Lane {
    /// Places the packets that arrive once more.
    #[cold]
    pub(super) fn reinject(&mut self) {
        for mut packet in self.out.take_reinjected() {
            // What the device hashed is no longer what the packet says.
            packet.set_hash(0, HashKind::None);
            let Lane { steering, hasher, time, latest, unusual, .. } = self;
            let by = Classifier { steering, hasher, time: *time, now: *latest, unusual: *unusual };
            let info = match by.one(&packet) {
                Ok(info) => info,
                Err(reason) => {
                    self.out.drop(packet, reason);
                    continue;
                }
            };
            if packet.mark() != 0 {
                let owner = self.ownership.destination(info.shard);
                note_place(self.out.mirror(), &packet, &info, (self.id, owner));
            }
            self.route_to_owner(HandoffPacket { packet, info });
        }
    }
}
