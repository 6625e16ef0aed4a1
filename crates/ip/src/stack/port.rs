//! What a lane needs of an interface for every packet.

use std::net::{Ipv4Addr, Ipv6Addr};

use rheostat_packet::Mbuf;
use rheostat_packet::build::MIN_FRAME;
use rheostat_packet::wire::{MacAddress, ethernet, vlan};

use crate::interface::Interface;
use crate::network::LEAST_MTU;

/// Where IP starts in a frame without a tag, and with one.
pub(super) const UNTAGGED: u8 = ethernet::HEADER as u8;
pub(super) const TAGGED: u8 = (ethernet::HEADER + vlan::TAG) as u8;

/// An interface, as far as every packet needs it.
#[derive(Clone, Debug)]
pub(super) struct StackPort {
    pub(super) mac: MacAddress,
    /// The longest packet of IPv4 that the link carries now.
    pub(super) mtu: u16,
    /// The longest packet of IPv6; 0 where the link is too narrow for IPv6.
    pub(super) mtu_v6: u16,
    /// Where IP starts in its frames.
    pub(super) l3: u8,
    pub(super) vlan: Option<u16>,
    pub(super) is_played: bool,
    /// The machine's own addresses, which no other host may send from.
    own_v4: Box<[Ipv4Addr]>,
    own_v6: Box<[Ipv6Addr]>,
}

impl StackPort {
    /// The port of an interface that is one of `all` of the machine.
    pub(super) fn of(interface: &Interface, all: &[Interface]) -> StackPort {
        let own = all.iter().flat_map(|interface| &interface.addresses);
        let addresses = || own.clone().map(|own| own.address);
        let v4 = addresses().filter_map(|address| match address {
            std::net::IpAddr::V4(v4) => Some(v4),
            std::net::IpAddr::V6(_) => None,
        });
        let v6 = addresses().filter_map(|address| match address {
            std::net::IpAddr::V6(v6) => Some(v6),
            std::net::IpAddr::V4(_) => None,
        });
        let mut port = StackPort {
            mac: interface.mac,
            mtu: 0,
            mtu_v6: 0,
            l3: if interface.vlan.is_some() { TAGGED } else { UNTAGGED },
            vlan: interface.vlan,
            is_played: interface.is_played,
            own_v4: v4.collect(),
            own_v6: v6.chain([interface.link_local()]).collect(),
        };
        port.set_mtu(interface.mtu);
        port
    }

    /// Goes by another MTU of the link.
    pub(super) fn set_mtu(&mut self, mtu: u16) {
        self.mtu = mtu;
        self.mtu_v6 = if mtu < LEAST_MTU[1] { 0 } else { mtu };
    }

    /// Whether the link is wide enough for IPv6.
    #[inline]
    pub(super) fn carries_v6(&self) -> bool {
        self.mtu_v6 > 0
    }

    /// The longest packet of this ethertype that the link carries.
    #[inline(always)]
    pub(super) fn longest(&self, ethertype: u16) -> u16 {
        if ethertype == ethernet::IPV6 { self.mtu_v6 } else { self.mtu }
    }

    /// The machine's own addresses of IPv4.
    pub(super) fn own_v4(&self) -> &[Ipv4Addr] {
        &self.own_v4
    }

    #[inline]
    pub(super) fn owns_v4(&self, address: Ipv4Addr) -> bool {
        self.own_v4.contains(&address)
    }

    #[inline]
    pub(super) fn owns_v6(&self, address: Ipv6Addr) -> bool {
        self.own_v6.contains(&address)
    }

    /// Puts the interface's link header before the IP header that starts at `l3`. `false` when there is
    /// no room for it.
    #[inline(always)]
    pub(super) fn write_link(
        &self,
        packet: &mut Mbuf,
        l3: u8,
        to: MacAddress,
        ethertype: u16,
    ) -> bool {
        if l3 != self.l3 && !self.make_room(packet, l3) {
            return false;
        }
        let Some(header) = packet.data_mut().first_chunk_mut::<{ ethernet::HEADER }>() else {
            return false;
        };
        header[..6].copy_from_slice(&to);
        header[6..12].copy_from_slice(&self.mac);
        match self.vlan {
            None => header[12..].copy_from_slice(&ethertype.to_be_bytes()),
            Some(vlan) => {
                header[12..].copy_from_slice(&ethernet::VLAN.to_be_bytes());
                let tag = [vlan.to_be_bytes(), ethertype.to_be_bytes()].concat();
                let at = ethernet::HEADER;
                packet.data_mut()[at..at + vlan::TAG].copy_from_slice(&tag);
            }
        }
        true
    }

    /// Moves the start of the frame so that IP starts where this interface has it.
    #[cold]
    fn make_room(&self, packet: &mut Mbuf, l3: u8) -> bool {
        match self.l3.checked_sub(l3) {
            Some(more) => packet.prepend(more.into()).is_some(),
            None => packet.advance((l3 - self.l3).into()),
        }
    }

    /// A frame of an IP packet, whose link header is yet to be written.
    pub(super) fn frame(&self, ip: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; self.l3.into()];
        frame.extend_from_slice(ip);
        frame.resize(frame.len().max(MIN_FRAME), 0);
        frame
    }
}
