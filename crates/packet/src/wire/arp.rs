//! ARP (RFC 826).

use std::net::Ipv4Addr;

use super::ethernet::MacAddress;
use super::field::{array_at, u16_at};
use crate::malformed::{Layer, Malformed};

/// Bytes in front of the addresses.
pub const FIXED: usize = 8;
/// Requests the hardware address of the target.
pub const REQUEST: u16 = 1;
/// Answers a request.
pub const REPLY: u16 = 2;

/// An ARP packet with addresses of any length.
#[derive(Clone, Copy, Debug)]
pub struct ArpPacket<'a> {
    fixed: &'a [u8; FIXED],
    addresses: &'a [u8],
}

/// The addresses of an ARP packet between IPv4 hosts on Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpAddresses {
    /// The sender's hardware address.
    pub sender_mac: MacAddress,
    /// The sender's IPv4 address.
    pub sender: Ipv4Addr,
    /// The target's hardware address; meaningless in a request.
    pub target_mac: MacAddress,
    /// The target's IPv4 address.
    pub target: Ipv4Addr,
}

impl<'a> ArpPacket<'a> {
    /// The packet in `bytes`, which may have padding behind it.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] when the addresses are not whole.
    pub fn new(bytes: &'a [u8]) -> Result<ArpPacket<'a>, Malformed> {
        let truncated = Malformed::Truncated(Layer::Arp);
        let (fixed, rest) = bytes.split_first_chunk().ok_or(truncated)?;
        let addresses = rest.get(..len_of(fixed) - FIXED).ok_or(truncated)?;
        Ok(ArpPacket { fixed, addresses })
    }

    /// Bytes of the packet.
    #[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
    pub fn len(&self) -> usize {
        len_of(self.fixed)
    }

    /// The kind of hardware; Ethernet is 1.
    pub fn hardware(&self) -> u16 {
        u16_at(self.fixed, 0)
    }

    /// The ethertype of the protocol whose addresses are resolved.
    pub fn protocol(&self) -> u16 {
        u16_at(self.fixed, 2)
    }

    /// [`REQUEST`], [`REPLY`] or something else.
    pub fn operation(&self) -> u16 {
        u16_at(self.fixed, 6)
    }

    /// The addresses, if the packet is about IPv4 on Ethernet.
    pub fn addresses(&self) -> Option<ArpAddresses> {
        let plain = [0, 1, 0x08, 0x00, 6, 4];
        let addresses: &[u8; 20] = self.addresses.first_chunk()?;
        (self.fixed[..6] == plain).then(|| ArpAddresses {
            sender_mac: array_at(addresses, 0),
            sender: array_at::<4>(addresses, 6).into(),
            target_mac: array_at(addresses, 10),
            target: array_at::<4>(addresses, 16).into(),
        })
    }
}

/// The length of the packet that starts with `fixed`.
pub(crate) fn len_of(fixed: &[u8; FIXED]) -> usize {
    FIXED + 2 * (usize::from(fixed[4]) + usize::from(fixed[5]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST_FOR_2: [u8; 28] =
        [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2];

    #[test]
    fn a_request_names_sender_and_target() {
        let arp = ArpPacket::new(&REQUEST_FOR_2).unwrap();
        assert_eq!((arp.hardware(), arp.protocol(), arp.operation()), (1, 0x0800, REQUEST));
        assert_eq!(arp.len(), 28);
        let addresses = ArpAddresses {
            sender_mac: [2, 0, 0, 0, 0, 1],
            sender: Ipv4Addr::new(10, 0, 0, 1),
            target_mac: [0; 6],
            target: Ipv4Addr::new(10, 0, 0, 2),
        };
        assert_eq!(arp.addresses(), Some(addresses));
    }

    #[test]
    fn addresses_must_be_whole_and_of_known_kind() {
        assert!(ArpPacket::new(&REQUEST_FOR_2[..27]).is_err());
        let mut other = REQUEST_FOR_2;
        other[1] = 6;
        assert_eq!(ArpPacket::new(&other).unwrap().addresses(), None);
        other[4] = 7;
        assert_eq!(ArpPacket::new(&other).unwrap_err(), Malformed::Truncated(Layer::Arp));
    }
}
