//! What comes in: whether it is for this station, whole and plausible, and which way it leads.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rheostat_base::DropReason;
use rheostat_packet::wire::{
    Ipv4Packet, Ipv4PacketMut, Ipv6Packet, Ipv6PacketMut, VlanTag, ethernet, ipv4, ipv6,
};
use rheostat_packet::{LinkType, Mbuf};

use rheostat_run::Output;

use super::port::UNTAGGED;
use super::{Admission, Origin, Path, Stack};

use crate::icmp_error::Problem;
use crate::interface::{may_be_source_v4, may_be_source_v6};
use crate::neighbour::{mapped, mapped_v4};
use crate::route::{Hop, HopId};

/// Options by which a packet names its way (RFC 791, section 3.1). Their only known use is in attacks (RFC 7126, sections 4.3 and
/// 4.4).
const SOURCE_ROUTES: [u8; 2] = [131, 137];

impl Stack {
    /// Looks at a packet that has arrived: frames for others, malformed packets and those that no host
    /// can have sent end here; ARP and neighbour discovery, and what is for this machine, are dealt with;
    /// of the rest, the way is looked up, and the time to live taken down by one (RFC 1812, section
    /// 5.2.1).
    #[inline]
    pub fn admit(&mut self, packet: &mut Mbuf, out: &mut Output) -> Admission {
        let Some(port) = self.port(packet.device()) else {
            return Admission::Drop(DropReason::NotOurs);
        };
        let usual = packet
            .data()
            .first_chunk::<{ ethernet::HEADER }>()
            .filter(|link| link[..6] == port.mac && port.l3 == UNTAGGED && !packet.is_reinjected());
        let ethertype = usual.map(|link| u16::from_be_bytes([link[12], link[13]]));
        match ethertype {
            Some(ethernet::IPV4) if packet.link() == LinkType::Ethernet => {
                self.admit_v4(packet, UNTAGGED, out)
            }
            Some(ethernet::IPV6) if packet.link() == LinkType::Ethernet => {
                self.admit_v6(packet, UNTAGGED, out)
            }
            _ => self.admit_unusual(packet, out),
        }
    }

    /// What is not a plain frame of IP to this station.
    #[cold]
    #[inline(never)]
    fn admit_unusual(&mut self, packet: &mut Mbuf, out: &mut Output) -> Admission {
        let device = packet.device();
        let (Some(port), LinkType::Ethernet) = (self.port(device), packet.link()) else {
            return Admission::Drop(DropReason::NotOurs);
        };
        if packet.is_reinjected() {
            // It was looked at when it arrived for the first time, or this machine made it.
            return Admission::Through(Path::unknown(port.l3, Origin::Transit));
        }
        let data = packet.data();
        let Some((link, behind)) = data.split_first_chunk::<{ ethernet::HEADER }>() else {
            return Admission::Drop(DropReason::Malformed);
        };
        let mut ethertype = u16::from_be_bytes([link[12], link[13]]);
        if let Some(vlan) = port.vlan {
            match VlanTag::new(behind) {
                Ok(tag) if ethertype == ethernet::VLAN && tag.id() == vlan => {
                    ethertype = tag.ethertype();
                }
                _ => return Admission::Drop(DropReason::NotOurs),
            }
        }
        let is_for_many = link[0] & 1 != 0;
        if !is_for_many && link[..6] != port.mac && !port.is_played {
            return Admission::Drop(DropReason::NotOurs);
        }
        let l3 = port.l3;
        match ethertype {
            ethernet::ARP => self.take_arp(packet, l3, out),
            ethernet::IPV4 if !is_for_many => self.admit_v4(packet, l3, out),
            ethernet::IPV6 if !port.carries_v6() => Admission::Drop(DropReason::Ipv6Off),
            ethernet::IPV6 if !is_for_many => self.admit_v6(packet, l3, out),
            // What many get is never passed on (RFC 1812, section 5.3.4).
            ethernet::IPV6 => self.take_group_v6(packet, l3, out),
            ethernet::IPV4 => Admission::Drop(DropReason::NotRouted),
            _ if ethernet::is_vlan(ethertype) => Admission::Drop(DropReason::NotOurs),
            _ => Admission::Drop(DropReason::NotIp),
        }
    }

    #[inline(always)]
    fn admit_v4(&mut self, packet: &mut Mbuf, l3: u8, out: &mut Output) -> Admission {
        let Ok(ip) = whole_v4(packet, l3) else {
            return Admission::Drop(DropReason::Malformed);
        };
        let (source, destination, total) = (ip.source(), ip.destination(), ip.total_len());
        let (ttl, may_fragment) = (ip.ttl(), !ip.dont_fragment());
        if ip.header_len() > ipv4::MIN_HEADER && names_its_way(ip.options()) {
            return Admission::Drop(DropReason::Martian);
        }
        let is_own = |port: &super::StackPort| port.owns_v4(source);
        if !may_be_source_v4(source) || self.port(packet.device()).is_some_and(is_own) {
            return Admission::Drop(DropReason::Martian);
        }
        if !may_be_source_v4(destination) {
            return Admission::Drop(refused_v4(destination));
        }
        let hop = self.routes.lookup_v4(destination);
        let to = IpAddr::V4(destination);
        if let Some(taken) = self.look_ahead(packet, l3, hop, to, ttl, out) {
            return taken;
        }
        if !may_fragment && self.is_too_long(hop, total, ethernet::IPV4) {
            return self.refuse_too_long(packet, l3, hop, ethernet::IPV4, out);
        }
        let header = packet.data_mut().get_mut(usize::from(l3)..).unwrap_or_default();
        if let Ok(mut ip) = Ipv4PacketMut::new(header) {
            ip.set_ttl(ttl - 1);
        }
        let origin = self.origin_of(hop);
        Admission::Through(Path { destination: mapped_v4(destination.to_bits()), hop, l3, origin })
    }

    #[inline(always)]
    fn admit_v6(&mut self, packet: &mut Mbuf, l3: u8, out: &mut Output) -> Admission {
        let Some(ip) = whole_v6(packet, l3) else {
            return Admission::Drop(DropReason::Malformed);
        };
        let (source, destination) = (ip.source(), ip.destination());
        let (limit, total) = (ip.hop_limit(), ipv6::HEADER + usize::from(ip.payload_len()));
        let refused = |port: &super::StackPort| port.owns_v6(source) || !port.carries_v6();
        if self.port(packet.device()).is_some_and(refused) {
            return Admission::Drop(self.refused_v6(packet));
        }
        let is_local = |address: Ipv6Addr| address.segments()[0] & 0xffc0 == 0xfe80;
        if !may_be_source_v6(source)
            || !may_be_source_v6(destination)
            || is_local(source)
            || is_local(destination)
        {
            return self.take_odd_v6(packet, l3, (source, destination), out);
        }
        let hop = self.routes.lookup_v6(destination);
        let to = IpAddr::V6(destination);
        if let Some(taken) = self.look_ahead(packet, l3, hop, to, limit, out) {
            return taken;
        }
        if total > usize::from(u16::MAX) || self.is_too_long(hop, total as u16, ethernet::IPV6) {
            return self.refuse_too_long(packet, l3, hop, ethernet::IPV6, out);
        }
        let header = packet.data_mut().get_mut(usize::from(l3)..).unwrap_or_default();
        if let Ok(mut ip) = Ipv6PacketMut::new(header) {
            ip.set_hop_limit(limit - 1);
        }
        let origin = self.origin_of(hop);
        Admission::Through(Path { destination: destination.to_bits(), hop, l3, origin })
    }

    /// Deals with packets that do not go on: without a route, at the end of their time, or for this
    /// machine. `None` for the others.
    #[inline(always)]
    fn look_ahead(
        &mut self,
        packet: &mut Mbuf,
        l3: u8,
        hop: HopId,
        to: IpAddr,
        ttl: u8,
        out: &mut Output,
    ) -> Option<Admission> {
        match self.routes.hop(hop) {
            Hop::OnLink(_) | Hop::Gateway(..) | Hop::Proxied if ttl > 1 => None,
            Hop::Local { proxied: true } if ttl > 1 => None,
            _ => Some(self.stop(packet, l3, hop, to, out)),
        }
    }

    #[cold]
    #[inline(never)]
    fn stop(
        &mut self,
        packet: &mut Mbuf,
        l3: u8,
        hop: HopId,
        to: IpAddr,
        out: &mut Output,
    ) -> Admission {
        let (problem, reason) = match self.routes.hop(hop) {
            // Also at the end of its time: it has arrived.
            Hop::Local { .. } => return self.take_own(packet, l3, to, out),
            Hop::Broadcast => return Admission::Drop(DropReason::NotRouted),
            Hop::None => (Problem::NoRoute, DropReason::NoRoute),
            Hop::OnLink(_) | Hop::Gateway(..) | Hop::Proxied => {
                (Problem::TimeExceeded, DropReason::TtlExceeded)
            }
        };
        self.complain(packet, l3, problem, out);
        Admission::Drop(reason)
    }

    #[inline(always)]
    fn origin_of(&self, hop: HopId) -> Origin {
        match self.routes.hop(hop) {
            Hop::Local { .. } => Origin::Home,
            _ => Origin::Transit,
        }
    }

    /// Whether a packet is longer than the link of its hop carries.
    #[inline(always)]
    fn is_too_long(&self, hop: HopId, total: u16, ethertype: u16) -> bool {
        match self.routes.hop(hop) {
            Hop::OnLink(device) | Hop::Gateway(device, _) => {
                self.port(device).is_some_and(|port| total > port.longest(ethertype))
            }
            _ => false,
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse_too_long(
        &mut self,
        packet: &Mbuf,
        l3: u8,
        hop: HopId,
        ethertype: u16,
        out: &mut Output,
    ) -> Admission {
        let mtu = match self.routes.hop(hop) {
            Hop::OnLink(device) | Hop::Gateway(device, _) => {
                self.port(device).map_or(u16::MAX, |port| port.longest(ethertype))
            }
            _ => u16::MAX,
        };
        if mtu == 0 {
            self.complain(packet, l3, Problem::NoRoute, out);
            return Admission::Drop(DropReason::Ipv6Off);
        }
        self.complain(packet, l3, Problem::TooBig(mtu), out);
        Admission::Drop(DropReason::TooBig)
    }

    /// Why a packet of IPv6 is refused that arrived where IPv6 is off, or from an address of this machine.
    #[cold]
    fn refused_v6(&self, packet: &Mbuf) -> DropReason {
        match self.carries_v6(packet.device()) {
            true => DropReason::Martian,
            false => DropReason::Ipv6Off,
        }
    }

    /// Packets of IPv6 with addresses that are not routed: of groups, of the link, unspecified.
    #[cold]
    #[inline(never)]
    fn take_odd_v6(
        &mut self,
        packet: &mut Mbuf,
        l3: u8,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        out: &mut Output,
    ) -> Admission {
        let is_ours = |port: &super::StackPort| port.owns_v6(destination);
        let home = self.port(packet.device()).is_some_and(is_ours)
            || matches!(self.routes.hop(self.routes.lookup_v6(destination)), Hop::Local { .. });
        if home && !source.is_multicast() && !source.is_loopback() {
            return self.take_own(packet, l3, IpAddr::V6(destination), out);
        }
        if !may_be_source_v6(source) || destination.is_loopback() || destination.is_unspecified() {
            return Admission::Drop(DropReason::Martian);
        }
        if !destination.is_multicast() && source.is_unicast_link_local() {
            // RFC 4443, section 3.1: beyond the scope of the source address.
            self.complain(packet, l3, Problem::Scope, out);
        }
        Admission::Drop(DropReason::NotRouted)
    }

    /// Packets of IPv6 to groups: only neighbour discovery is for this machine.
    #[cold]
    fn take_group_v6(&mut self, packet: &mut Mbuf, l3: u8, out: &mut Output) -> Admission {
        let Some(ip) = whole_v6(packet, l3) else {
            return Admission::Drop(DropReason::Malformed);
        };
        if !ip.destination().is_multicast() {
            return Admission::Drop(DropReason::NotRouted);
        }
        self.take_discovery(packet, l3, out).unwrap_or(Admission::Drop(DropReason::NotRouted))
    }

    /// Deals with a packet for an address of this machine that the chain has no use for, as if the chain
    /// were not there. The path is that with which it was admitted.
    pub fn deliver(&mut self, packet: &mut Mbuf, path: Path, out: &mut Output) -> Admission {
        let bits = path.destination;
        let to = Ipv6Addr::from_bits(bits).to_canonical();
        debug_assert_eq!(mapped(to), bits, "an address is a number and back");
        self.take_own(packet, path.l3, to, out)
    }
}

/// A packet of IPv4 whose header and length are right (RFC 1812, section 5.2.2).
#[inline(always)]
fn whole_v4(packet: &Mbuf, l3: u8) -> Result<Ipv4Packet<'_>, ()> {
    let ip = Ipv4Packet::new(packet.data().get(usize::from(l3)..).ok_or(())?).map_err(|_| ())?;
    let total = usize::from(ip.total_len());
    let fits = total >= ip.header_len() && usize::from(l3) + total <= on_wire(packet);
    (fits && ip.is_checksum_valid()).then_some(ip).ok_or(())
}

/// A packet of IPv6 whose length is right.
#[inline(always)]
fn whole_v6(packet: &Mbuf, l3: u8) -> Option<Ipv6Packet<'_>> {
    let ip = Ipv6Packet::new(packet.data().get(usize::from(l3)..)?).ok()?;
    let end = usize::from(l3) + ipv6::HEADER + usize::from(ip.payload_len());
    (end <= on_wire(packet)).then_some(ip)
}

/// Bytes the frame had on the wire.
#[inline(always)]
fn on_wire(packet: &Mbuf) -> usize {
    packet.len().max(packet.wire_len() as usize)
}

/// Why a packet is not passed on that is for no host.
#[cold]
fn refused_v4(destination: Ipv4Addr) -> DropReason {
    if destination.is_multicast() || destination.is_broadcast() {
        DropReason::NotRouted
    } else {
        DropReason::Martian
    }
}

#[cold]
fn names_its_way(mut options: &[u8]) -> bool {
    while let [kind, rest @ ..] = options {
        let len = match kind {
            0 => return false,
            1 => 1,
            _ if SOURCE_ROUTES.contains(kind) => return true,
            _ => rest.first().map_or(0, |len| usize::from(*len)),
        };
        if len == 0 || len > options.len() {
            return false;
        }
        options = &options[len..];
    }
    false
}
