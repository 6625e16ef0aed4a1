//! Link addresses, and what hosts on a link say about them: ARP and neighbour discovery.

use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr};

use rheostat_packet::wire::arp::{self, ArpAddresses};
use rheostat_packet::wire::{ArpPacket, MacAddress};

/// Reads `02:00:00:00:00:09`.
pub(crate) fn mac(text: &str) -> Result<MacAddress, String> {
    let wrong = || format!("`{text}` is no link address such as 02:00:00:00:00:09");
    let bytes: Option<Vec<u8>> =
        text.split(':').map(|digits| u8::from_str_radix(digits, 16).ok()).collect();
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(wrong)
}

/// The words for a link address.
pub(crate) fn tell_mac(mac: &[u8]) -> String {
    mac.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// A packet of ARP in Ethernet's payload.
pub(crate) fn arp_packet(
    is_reply: bool,
    sender: (IpAddr, Option<MacAddress>),
    target: (IpAddr, Option<MacAddress>),
) -> Vec<u8> {
    let operation = if is_reply { arp::REPLY } else { arp::REQUEST };
    let mut bytes = vec![0, 1, 0x08, 0, 6, 4];
    bytes.extend(operation.to_be_bytes());
    for (address, mac) in [sender, target] {
        bytes.extend(mac.unwrap_or_default());
        if let IpAddr::V4(v4) = address {
            bytes.extend(v4.octets());
        }
    }
    bytes
}

/// A packet of ARP in words; `None` when it is not about IPv4 on Ethernet.
pub(crate) fn tell_arp(bytes: &[u8]) -> Option<String> {
    let packet = ArpPacket::new(bytes).ok()?;
    let ArpAddresses { sender_mac, sender, target_mac, target } = packet.addresses()?;
    let operation = match packet.operation() {
        arp::REQUEST => "request",
        arp::REPLY => "reply",
        _ => return None,
    };
    let mut text = format!("{sender}@{} > {target}", tell_mac(&sender_mac));
    if target_mac != [0; 6] {
        let _ = write!(text, "@{}", tell_mac(&target_mac));
    }
    Some(format!("{text} arp {operation}"))
}

/// A message of neighbour discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Discovery {
    /// Whether it answers.
    pub(crate) tells: bool,
    pub(crate) target: Ipv6Addr,
    pub(crate) mac: Option<MacAddress>,
    /// Router, solicited and override, as the message has them.
    pub(crate) flags: u32,
}

/// The flags of an advertisement by their letters.
const FLAGS: [(char, u32); 3] = [('R', 1 << 31), ('S', 1 << 30), ('O', 1 << 29)];

impl Discovery {
    pub(crate) fn set_flags(&mut self, letters: &str) -> Result<(), String> {
        for letter in letters.chars() {
            let known = FLAGS.iter().find(|(known, _)| *known == letter);
            self.flags |= known.ok_or_else(|| format!("`{letter}` is no flag of R S O"))?.1;
        }
        Ok(())
    }

    /// Type, first word and body.
    pub(crate) fn message(&self) -> (u8, u32, Vec<u8>) {
        let mut body = self.target.octets().to_vec();
        if let Some(mac) = self.mac {
            body.extend([if self.tells { 2 } else { 1 }, 1]);
            body.extend(mac);
        }
        (if self.tells { 136 } else { 135 }, self.flags, body)
    }

    /// The message in words; `None` when it is something else.
    pub(crate) fn tell(message: &[u8]) -> Option<String> {
        let word = match message.first()? {
            135 => "ask",
            136 => "tell",
            _ => return None,
        };
        let target = Ipv6Addr::from(*message.get(8..)?.first_chunk::<16>()?);
        let mut text = format!("nd {word} {target}");
        if let Some([1 | 2, 1, mac @ ..]) = message.get(24..32) {
            let _ = write!(text, " mac {}", tell_mac(mac));
        }
        let flags = u32::from_be_bytes(*message.get(4..)?.first_chunk()?);
        let letters: String =
            FLAGS.iter().filter(|(_, bit)| flags & bit != 0).map(|(letter, _)| letter).collect();
        if !letters.is_empty() {
            let _ = write!(text, " flags {letters}");
        }
        Some(text)
    }
}
