//! ARP and neighbour discovery: requests, answers and announcements on the link.

use std::net::IpAddr;

use rheostat_base::DropReason;
use rheostat_packet::Mbuf;
use rheostat_packet::wire::arp::{self, ArpAddresses};
use rheostat_packet::wire::{ArpPacket, Ipv6Packet};

use rheostat_run::Output;

use super::{Admission, Stack};

use crate::arp as frames;
use crate::discovery::{self, Message};
use crate::interface::Interface;
use crate::neighbour::{Advertisement, NeighbourKey, Solicitation};

/// Proxied addresses of one prefix that are announced at most.
const ANNOUNCED: u128 = 256;

impl Stack {
    /// Deals with a packet of ARP (RFC 826).
    #[cold]
    pub(super) fn take_arp(&mut self, packet: &Mbuf, l3: u8, out: &mut Output) -> Admission {
        let device = packet.device();
        let network = self.network.clone();
        let Some(interface) = network.interface(device) else {
            return Admission::Drop(DropReason::NotOurs);
        };
        let bytes = packet.data().get(usize::from(l3)..).unwrap_or_default();
        let parsed = ArpPacket::new(bytes).ok();
        let Some((operation, asked)) = parsed.and_then(|p| Some((p.operation(), p.addresses()?)))
        else {
            return Admission::Drop(DropReason::Malformed);
        };
        let ArpAddresses { sender_mac, sender, target, .. } = asked;
        let key = NeighbourKey::new(device, sender.into());
        // Not learned are this machine's own addresses, and those that are not on the link. A sender without an address probes
        // whether the one it wants is free (RFC 5227, section 2.1.1). Where link addresses are assumed, none may change in the
        // middle.
        let may_be_learned = interface.is_on_link(sender.into())
            && !interface.is_played
            && !sender.is_unspecified()
            && !network.answers_for(interface, sender.into());
        let is_for_us = network.answers_for(interface, target.into());
        if may_be_learned {
            self.network.with_neighbours(|table| match operation {
                arp::REQUEST if is_for_us => table.learn(key, sender_mac, out.now()),
                arp::REPLY => table.reply(key, sender_mac, out.now()),
                _ => table.merge(key, sender_mac, out.now()),
            });
            self.refresh(out);
        }
        if operation == arp::REQUEST && is_for_us && sender_mac != interface.mac {
            self.transmit(interface, &frames::reply(interface, &asked), out);
        }
        Admission::Consume
    }

    /// Deals with a packet of neighbour discovery (RFC 4861); `None` when it is something else, or must be
    /// ignored.
    #[cold]
    pub(super) fn take_discovery(
        &mut self,
        packet: &Mbuf,
        l3: u8,
        out: &mut Output,
    ) -> Option<Admission> {
        let device = packet.device();
        let network = self.network.clone();
        let interface = network.interface(device)?;
        let ip = Ipv6Packet::new(packet.data().get(usize::from(l3)..)?).ok()?;
        if ip.next_header() != 58 {
            return None;
        }
        let source = ip.source();
        let sender_mac = packet.data().get(6..12)?.first_chunk().copied()?;
        match discovery::parse(&ip, ip.payload())? {
            Message::Solicitation { target, source_mac } => {
                if !network.answers_for(interface, target.into()) {
                    return Some(Admission::Consume);
                }
                let asked_by = (!source.is_unspecified())
                    .then_some((source, source_mac.unwrap_or(sender_mac)));
                let may_be_learned = interface.is_on_link(source.into())
                    && !interface.is_played
                    && !network.answers_for(interface, source.into());
                if let Some(mac) = source_mac.filter(|_| may_be_learned) {
                    let key = NeighbourKey::new(device, source.into());
                    self.network.with_neighbours(|table| table.learn(key, mac, out.now()));
                    self.refresh(out);
                }
                let answer = discovery::advertisement(interface, target, asked_by);
                self.transmit(interface, &answer, out);
            }
            Message::Advertisement { target, target_mac: mac, solicited, overrides } => {
                if !network.answers_for(interface, target.into()) {
                    let key = NeighbourKey::new(device, target.into());
                    let advertised = Advertisement { mac, solicited, overrides };
                    self.network
                        .with_neighbours(|table| table.advertise(key, advertised, out.now()));
                    self.refresh(out);
                }
            }
        }
        Some(Admission::Consume)
    }

    /// Requests link addresses.
    pub(super) fn ask_all(&mut self, questions: &[Solicitation], out: &mut Output) {
        let network = self.network.clone();
        for Solicitation { device, target, to } in questions {
            if let Some(resolver) = network.resolver() {
                resolver.look_for(*device, *target);
                continue;
            }
            let Some(interface) = network.interface(*device) else { continue };
            if target.is_ipv6() && !self.carries_v6(*device) {
                continue;
            }
            let frame = match (*target, interface.address_towards(*target)) {
                (IpAddr::V4(target), Some(IpAddr::V4(own))) => {
                    frames::request(interface, own, target, *to)
                }
                (IpAddr::V6(target), own) => {
                    let own = match own {
                        Some(IpAddr::V6(own)) => own,
                        _ => interface.link_local(),
                    };
                    discovery::solicitation(interface, own, target, *to)
                }
                // Without an address of its own, it asks as one that wants one (RFC 5227).
                (IpAddr::V4(target), _) => {
                    frames::request(interface, std::net::Ipv4Addr::UNSPECIFIED, target, *to)
                }
            };
            self.transmit(interface, &frame, out);
        }
    }

    /// Announces this machine's addresses on every link: hosts that had other link addresses for them learn the new ones (RFC
    /// 5227, section 2.3; RFC 4861, section 7.2.6).
    #[cold]
    pub(super) fn announce(&mut self, out: &mut Output) {
        for interface in self.network.clone().interfaces() {
            let own = interface.addresses.iter().map(|own| own.address);
            let proxied = self.network.proxied(interface.device);
            let proxied = proxied.iter().flat_map(hosts);
            let mut addresses: Vec<IpAddr> = own.chain(proxied).collect();
            addresses.push(interface.link_local().into());
            addresses.sort_unstable();
            addresses.dedup();
            let carries_v6 = self.carries_v6(interface.device);
            addresses.retain(|address| address.is_ipv4() || carries_v6);
            for address in addresses {
                let frame = match address {
                    IpAddr::V4(v4) => frames::announcement(interface, v4),
                    IpAddr::V6(v6) => discovery::advertisement(interface, v6, None),
                };
                self.transmit(interface, &frame, out);
            }
        }
    }

    fn transmit(&mut self, interface: &Interface, frame: &[u8], out: &mut Output) {
        if let Some(packet) = self.originate(interface.device, frame, out) {
            out.send(interface.device, packet);
        }
    }
}

/// The addresses of a prefix, unless they are very many.
fn hosts(prefix: &rheostat_steer::Prefix) -> Vec<IpAddr> {
    let (first, width) = match prefix.address() {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    };
    let count = 1_u128.checked_shl(width - u32::from(prefix.length())).unwrap_or(u128::MAX);
    let address = |number: u128| match prefix.address() {
        IpAddr::V4(_) => IpAddr::V4(((first + number) as u32).into()),
        IpAddr::V6(_) => IpAddr::V6((first + number).into()),
    };
    if count > ANNOUNCED { Vec::new() } else { (0..count).map(address).collect() }
}
