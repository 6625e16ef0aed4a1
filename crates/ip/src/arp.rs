//! ARP (RFC 826) as frames of an interface.

use std::net::Ipv4Addr;

use rheostat_packet::wire::arp::{self, ArpAddresses};
use rheostat_packet::wire::{MacAddress, ethernet};

use crate::interface::{BROADCAST, Interface};
use crate::link::frame;

/// A request for the link address of `target`: to all stations, or to the host that had it (RFC 1122, section 2.3.2.1 (2)).
pub(crate) fn request(
    interface: &Interface,
    sender: Ipv4Addr,
    target: Ipv4Addr,
    to: Option<MacAddress>,
) -> Vec<u8> {
    let addresses = ArpAddresses { sender_mac: interface.mac, sender, target_mac: [0; 6], target };
    packet(interface, to.unwrap_or(BROADCAST), arp::REQUEST, addresses)
}

/// Answers a request for an address that the interface answers for.
pub(crate) fn reply(interface: &Interface, asked: &ArpAddresses) -> Vec<u8> {
    let addresses = ArpAddresses {
        sender_mac: interface.mac,
        sender: asked.target,
        target_mac: asked.sender_mac,
        target: asked.sender,
    };
    packet(interface, asked.sender_mac, arp::REPLY, addresses)
}

/// Announces to all stations that the interface has `address` (RFC 5227, section 2.3).
pub(crate) fn announcement(interface: &Interface, address: Ipv4Addr) -> Vec<u8> {
    request(interface, address, address, None)
}

fn packet(
    interface: &Interface,
    to: MacAddress,
    operation: u16,
    addresses: ArpAddresses,
) -> Vec<u8> {
    let mut bytes = vec![0, 1, 0x08, 0, 6, 4];
    bytes.extend(operation.to_be_bytes());
    bytes.extend(addresses.sender_mac);
    bytes.extend(addresses.sender.octets());
    bytes.extend(addresses.target_mac);
    bytes.extend(addresses.target.octets());
    frame(interface, to, ethernet::ARP, &bytes)
}
