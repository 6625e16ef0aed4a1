//! The fast path around a chain: plain packets of a burst are admitted before the chain sees the first, in one loop, and leave
//! behind it, in another. [`Stack::admit`] and [`Stack::depart`] deal with all others in their turn, and would have made the same of
//! those that pass here.

use rheostat_base::DeviceId;
use rheostat_packet::{BURST, Mbuf};
use rheostat_run::{Output, PacketInfo};

use super::plain::{PlainV4, PlainV6};
use super::port::UNTAGGED;
use super::{Admission, Path, Stack};

use crate::route::HopId;

impl Stack {
    /// Admits the packets of a burst, in order, and appends what becomes of each. Those that do not go through to the chain are no
    /// longer usual.
    #[inline(never)]
    pub fn admit_burst(
        &mut self,
        packets: &mut [Mbuf],
        infos: &mut [PacketInfo],
        admissions: &mut Vec<Admission>,
        out: &mut Output,
    ) {
        admissions.reserve(packets.len());
        for (packet, info) in packets.iter_mut().zip(infos) {
            let entered = match info.is_usual() {
                true => self.enter_v4(packet).or_else(|| self.enter_v6(packet)),
                false => None,
            };
            let admission = match entered {
                Some(path) => Admission::Through(path),
                None => {
                    out.set_now(info.now);
                    self.admit(packet, out)
                }
            };
            if !matches!(admission, Admission::Through(_)) {
                info.set_usual(false);
            }
            admissions.push(admission);
        }
    }

    /// Makes packets at the front of a burst that the chain forwards ready to leave, up to the first that needs more than the fast
    /// path does, and at most [`BURST`]. With each goes what it was admitted with. The result states on which devices they leave.
    #[inline(never)]
    pub fn depart_burst<'a>(
        &self,
        packets: &mut [Mbuf],
        admissions: &[Admission],
        egress: &'a mut [DeviceId; BURST],
    ) -> &'a [DeviceId] {
        let mut ready = 0;
        for ((packet, admission), egress) in packets.iter_mut().zip(admissions).zip(&mut *egress) {
            let Admission::Through(path) = admission else { break };
            let Some(device) = self.leave_v4(packet, path).or_else(|| self.leave_v6(packet, path))
            else {
                break;
            };
            *egress = device;
            ready += 1;
        }
        &egress[..ready]
    }

    /// Admits a plain packet of IPv4 to the chain. A packet that is not plain stays as it is.
    #[inline(always)]
    fn enter_v4(&self, packet: &mut Mbuf) -> Option<Path> {
        let mut plain = self.plain_v4(packet)?;
        let hop = self.routes.lookup_v4(plain.address());
        let entry = self.adjacencies.entries.get(usize::from(hop.0))?;
        if plain.total > entry.longest[0] {
            return None;
        }
        plain.count_hop();
        let destination = plain.destination();
        Some(Path { destination, hop, l3: UNTAGGED, origin: entry.origin })
    }

    /// The same for a packet of IPv6.
    #[inline(never)]
    fn enter_v6(&self, packet: &mut Mbuf) -> Option<Path> {
        let mut plain = self.plain_v6(packet)?;
        let hop = self.routes.lookup_v6(plain.address);
        let entry = self.adjacencies.entries.get(usize::from(hop.0))?;
        if plain.total > entry.longest[1].into() {
            return None;
        }
        plain.count_hop();
        let destination = plain.address.to_bits();
        Some(Path { destination, hop, l3: UNTAGGED, origin: entry.origin })
    }

    /// Makes a packet of IPv4 without options ready to leave, if its next hop has answered and its link is wide enough.
    #[inline(always)]
    fn leave_v4(&self, packet: &mut Mbuf, path: &Path) -> Option<DeviceId> {
        let plain = PlainV4::leaving(packet)?;
        let destination = plain.destination();
        let hop = match destination == path.destination {
            true => path.hop,
            false => self.routes.lookup_v4(plain.address()),
        };
        let mut adjacency = self.adjacencies.by_hop.get(usize::from(hop.0))?;
        let on_link;
        if plain.total > adjacency.longest[0] {
            on_link = self.adjacency_on_link(hop, destination);
            adjacency = &on_link;
            if plain.total > adjacency.longest[0] {
                return None;
            }
        }
        Some(plain.address_to(adjacency))
    }

    /// The same for a packet of IPv6.
    #[inline(never)]
    fn leave_v6(&self, packet: &mut Mbuf, path: &Path) -> Option<DeviceId> {
        let plain = PlainV6::leaving(packet)?;
        let destination = plain.address.to_bits();
        let hop: HopId = match destination == path.destination {
            true => path.hop,
            false => self.routes.lookup_v6(plain.address),
        };
        let mut adjacency = *self.adjacencies.by_hop.get(usize::from(hop.0))?;
        if plain.total > adjacency.longest[1].into() {
            adjacency = self.adjacency_on_link(hop, plain.destination());
        }
        (plain.total <= adjacency.longest[1].into()).then(|| plain.address_to(&adjacency))
    }
}
