//! The fast path of a router: packets of IP that need no more than another hop's link header, one from their time to live
//! and, over IPv4, the checksum that follows from it (RFC 1812, section 5.2.1; RFC 1624). The headers of all packets of a
//! burst are looked at for their ways first, in one loop, so that the lines of the table of routes are fetched beside each
//! other; then packet after packet is checked and written, up to the first that needs more.
//!
//! Whatever is odd about a packet leaves it as it was, for [`Stack::admit`] and [`Stack::depart`]: what makes it not
//! [plain](super::plain), an address of this machine, a link that is too narrow, a next hop that has not answered or has to be
//! asked again. What those two would have made of a packet is what it becomes here.

use rheostat_base::DeviceId;
use rheostat_packet::{BURST, Mbuf};
use rheostat_run::PacketInfo;

use super::Stack;
use super::plain::{V4, half_word};

use crate::route::{HopId, Routes};

/// Where a burst leads.
#[derive(Debug)]
pub(super) struct Forwarding {
    /// Where the packets of the burst lead.
    ways: Vec<HopId>,
    /// As of which change of the network.
    changes: u64,
    /// On which devices those leave that are ready.
    egress: [DeviceId; BURST],
}

impl Default for Forwarding {
    fn default() -> Forwarding {
        let ways = Vec::with_capacity(2 * BURST);
        Forwarding { ways, changes: 0, egress: [DeviceId(0); BURST] }
    }
}

impl Stack {
    /// Looks up where the packets of a burst lead, before the first of them is forwarded by [`Stack::forward`].
    #[inline]
    pub fn look_up_ways(&mut self, packets: &[Mbuf]) {
        self.forwarding.ways.clear();
        self.forwarding.changes = self.changes;
        ways(&self.routes, packets, &mut self.forwarding.ways);
    }

    /// Makes the packets at the front of what is left of a burst ready to leave, up to the first that needs more than the
    /// fast path does, and at most [`BURST`]. The first of them was the one at `place` when their ways were looked up. The result
    /// states on which devices they leave.
    #[inline(never)]
    pub fn forward(
        &mut self,
        place: usize,
        packets: &mut [Mbuf],
        infos: &[PacketInfo],
    ) -> &[DeviceId] {
        if self.forwarding.changes != self.changes {
            // One of the packets before has changed neighbours or routes.
            self.forwarding.ways.truncate(place);
            self.forwarding.changes = self.changes;
            ways(&self.routes, packets, &mut self.forwarding.ways);
        }
        let mut egress = self.forwarding.egress;
        let ways = &self.forwarding.ways[place..];
        let mut ready = 0;
        for (((packet, info), way), egress) in
            packets.iter_mut().zip(infos).zip(ways).zip(&mut egress)
        {
            if !info.is_usual() {
                break;
            }
            let Some(device) = self.pass_v4(packet, *way).or_else(|| self.pass_v6(packet)) else {
                break;
            };
            *egress = device;
            ready += 1;
        }
        self.forwarding.egress = egress;
        &self.forwarding.egress[..ready]
    }

    /// Makes a plain packet of IPv4 ready to leave, and returns on which device. A packet that is not plain stays as it is.
    #[inline(always)]
    fn pass_v4(&self, packet: &mut Mbuf, way: HopId) -> Option<DeviceId> {
        let mut plain = self.plain_v4(packet)?;
        let mut adjacency = self.adjacencies.by_hop.get(usize::from(way.0))?;
        let on_link;
        if plain.total > adjacency.longest[0] {
            on_link = self.adjacency_on_link(way, plain.destination());
            adjacency = &on_link;
            if plain.total > adjacency.longest[0] {
                return None;
            }
        }
        plain.count_hop();
        Some(plain.address_to(adjacency))
    }

    /// The same for a packet of IPv6.
    #[inline(never)]
    fn pass_v6(&self, packet: &mut Mbuf) -> Option<DeviceId> {
        let mut plain = self.plain_v6(packet)?;
        let way = self.routes.lookup_v6(plain.address);
        let mut adjacency = *self.adjacencies.by_hop.get(usize::from(way.0))?;
        if plain.total > adjacency.longest[1].into() {
            adjacency = self.adjacency_on_link(way, plain.destination());
        }
        if plain.total > adjacency.longest[1].into() {
            return None;
        }
        plain.count_hop();
        Some(plain.address_to(&adjacency))
    }
}

/// Appends where packets lead, if they are plain ones of IPv4, and else anything.
#[inline(never)]
fn ways(routes: &Routes, packets: &[Mbuf], ways: &mut Vec<HopId>) {
    ways.extend(packets.iter().map(|packet| match packet.data().first_chunk::<V4>() {
        Some(frame) => routes.lookup_v4(half_word(frame, 30).to_le_bytes().into()),
        None => HopId::NONE,
    }));
}
