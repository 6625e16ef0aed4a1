//! What goes out: to which neighbour, and whole or in fragments.

use rheostat_base::{DeviceId, DropReason};
use rheostat_packet::Mbuf;
use rheostat_packet::wire::{Ipv4Packet, Ipv6Packet, MacAddress, ethernet, ipv6};

use rheostat_run::Output;

use super::{Departure, Next, Origin, Path, Stack};

use crate::fragmentation::fragments;
use crate::icmp_error::Problem;
use crate::interface::assumed_mac;
use crate::neighbour::{NeighbourKey, Seen, mapped, mapped_v4};
use crate::route::{Hop, HopId};

/// The header fields of a packet that leaves.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    destination: u128,
    len: usize,
    ethertype: u16,
    may_fragment: bool,
}

impl Stack {
    /// Finds the next hop of a packet and writes the link header for it. The path is that with which it
    /// was admitted, or [`Stack::own`]; where the chain has changed the destination, the way is looked up
    /// again.
    #[inline]
    pub fn depart(&mut self, packet: &mut Mbuf, path: Path, out: &mut Output) -> Departure {
        let Some(leaving) = Leaving::of(packet, path.l3) else {
            return self.depart_other(packet, path);
        };
        let (hop, way) = if leaving.destination == path.destination {
            (path.hop, self.routes.hop(path.hop))
        } else {
            self.look_up(packet.device(), leaving.destination)
        };
        let (device, key, seen) = match way {
            Hop::OnLink(device) => {
                let key = NeighbourKey::of_bits(device, leaving.destination);
                (device, key, self.neighbours.get(&key))
            }
            Hop::Gateway(device, gateway) => {
                let seen = self.gateways.get(usize::from(hop.0)).copied().flatten();
                (device, NeighbourKey::new(device, gateway), seen)
            }
            _ => return self.stray(way),
        };
        let Some(Seen { mac, stale }) = seen else {
            return self.depart_unknown(packet, Next { key, path }, out);
        };
        if stale {
            self.note_use(key, out);
        }
        self.seal(packet, path, device, mac, out)
    }

    /// Gives a packet the link header that takes it to `mac`, or cuts it up if it is too long.
    #[inline(always)]
    pub(super) fn seal(
        &mut self,
        packet: &mut Mbuf,
        path: Path,
        device: DeviceId,
        mac: MacAddress,
        out: &mut Output,
    ) -> Departure {
        let (Some(leaving), Some(port)) = (Leaving::of(packet, path.l3), self.port(device)) else {
            return Departure::Drop(DropReason::Malformed);
        };
        if leaving.len > usize::from(port.longest(leaving.ethertype)) {
            return self.seal_long(packet, path, device, mac, out);
        }
        match port.write_link(packet, path.l3, mac, leaving.ethertype) {
            true => Departure::Send(device),
            false => Departure::Drop(DropReason::Oversize),
        }
    }

    /// A packet whose next hop has not said its link address yet.
    #[cold]
    #[inline(never)]
    fn depart_unknown(&mut self, packet: &mut Mbuf, next: Next, out: &mut Output) -> Departure {
        let device = next.key.device();
        if next.key.address().is_ipv6() && !self.carries_v6(device) {
            return self.refuse_v6(packet, next.path, device, out);
        }
        match self.port(device).is_some_and(|port| port.is_played) {
            true => self.seal(packet, next.path, device, assumed_mac(next.key.address()), out),
            false => Departure::Hold(next),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn look_up(&self, device: DeviceId, destination: u128) -> (HopId, Hop) {
        // Link-local addresses of IPv6 are on the link the packet belongs to, and in no table.
        if destination >> 118 == 0xfe80 >> 6 {
            return (HopId::NONE, Hop::OnLink(device));
        }
        let address = std::net::Ipv6Addr::from_bits(destination).to_canonical();
        debug_assert_eq!(mapped(address), destination, "an address is a number and back");
        let hop = self.routes.lookup(address);
        (hop, self.routes.hop(hop))
    }

    /// A packet of IPv6 whose next link is too narrow for IPv6: as if no route led there.
    #[cold]
    fn refuse_v6(
        &mut self,
        packet: &Mbuf,
        path: Path,
        device: DeviceId,
        out: &mut Output,
    ) -> Departure {
        self.complain_after_chain(packet, path, device, Problem::NoRoute, out);
        Departure::Drop(DropReason::Ipv6Off)
    }

    /// A packet without a next hop.
    #[cold]
    fn stray(&self, way: Hop) -> Departure {
        Departure::Drop(match way {
            Hop::Broadcast => DropReason::NotRouted,
            Hop::Local { .. } => DropReason::NoListener,
            _ => DropReason::NoRoute,
        })
    }

    /// What a function sends and is not IP leaves as it is, on the device it names.
    #[cold]
    fn depart_other(&self, packet: &Mbuf, path: Path) -> Departure {
        match path.origin {
            Origin::Own => Departure::Send(packet.device()),
            Origin::Home | Origin::Transit => Departure::Drop(DropReason::NotIp),
        }
    }

    #[cold]
    fn note_use(&mut self, key: NeighbourKey, out: &Output) {
        self.network.with_neighbours(|table| table.note_use(key, out.now()));
    }

    /// A packet that is longer than its link carries: in fragments if it may be, else an ICMP error goes to its sender
    /// (RFC 1191, section 4; RFC 8200, section 5).
    #[cold]
    #[inline(never)]
    fn seal_long(
        &mut self,
        packet: &mut Mbuf,
        path: Path,
        device: DeviceId,
        mac: MacAddress,
        out: &mut Output,
    ) -> Departure {
        let Some((leaving, port)) = Leaving::of(packet, path.l3).zip(self.port(device)) else {
            return Departure::Drop(DropReason::Malformed);
        };
        let mtu = port.longest(leaving.ethertype);
        if mtu == 0 {
            return self.refuse_v6(packet, path, device, out);
        }
        if !leaving.may_fragment {
            self.complain_after_chain(packet, path, device, Problem::TooBig(mtu), out);
            return Departure::Drop(DropReason::TooBig);
        }
        let bytes = packet.to_vec();
        let ip = bytes.get(usize::from(path.l3)..).unwrap_or_default();
        let ip = &ip[..leaving.len.min(ip.len())];
        let Some(pieces) = fragments(ip, mtu) else {
            return Departure::Drop(DropReason::TooBig);
        };
        let port = port.clone();
        for piece in pieces {
            let Some(mut made) = self.originate(device, &port.frame(&piece), out) else {
                continue;
            };
            match port.write_link(&mut made, port.l3, mac, leaving.ethertype) {
                true => out.send(device, made),
                false => out.drop(made, DropReason::Oversize),
            }
        }
        Departure::Consume
    }
}

impl Leaving {
    /// The header at `l3`; `None` when it is not one of IP.
    #[inline(always)]
    fn of(packet: &Mbuf, l3: u8) -> Option<Leaving> {
        let bytes = packet.data().get(usize::from(l3)..)?;
        // A byte shows whether it is one of IPv4 or IPv6: by now, link headers may be out of date.
        if bytes.first()? >> 4 == 4 {
            let ip = Ipv4Packet::new(bytes).ok()?;
            return Some(Leaving {
                destination: mapped_v4(ip.destination().to_bits()),
                len: usize::from(ip.total_len()),
                ethertype: ethernet::IPV4,
                may_fragment: !ip.dont_fragment(),
            });
        }
        let ip = Ipv6Packet::new(bytes).ok()?;
        Some(Leaving {
            destination: ip.destination().to_bits(),
            len: ipv6::HEADER + usize::from(ip.payload_len()),
            ethertype: ethernet::IPV6,
            may_fragment: false,
        })
    }
}
