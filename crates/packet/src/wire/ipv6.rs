//! IPv6 (RFC 8200). Its extension headers are in [`super::ipv6_extension`].

use std::net::Ipv6Addr;

use super::field::{array_at, put_u32, u16_at, u32_at};
use super::ipv6_extension::Extensions;
use crate::checksum::Delta;
use crate::malformed::{Layer, Malformed};

/// Bytes of the header without extension headers.
pub const HEADER: usize = 40;

const PAYLOAD_LEN: usize = 4;
const NEXT_HEADER: usize = 6;
const HOP_LIMIT: usize = 7;
const SOURCE: usize = 8;
const DESTINATION: usize = 24;

/// An IPv6 packet whose fixed header is whole; its data may be cut short, or lie in later segments.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6Packet<'a> {
    fixed: &'a [u8; HEADER],
    rest: &'a [u8],
}

impl<'a> Ipv6Packet<'a> {
    /// The packet at the start of `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when the header is not whole, or not of version 6. The payload length is not
    /// looked at: compare it with the frame's.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Ipv6Packet<'a>, Malformed> {
        let (fixed, rest): (&[u8; HEADER], _) =
            bytes.split_first_chunk().ok_or(Malformed::Truncated(Layer::Ipv6))?;
        if fixed[0] >> 4 != 6 {
            return Err(Malformed::Version(Layer::Ipv6));
        }
        Ok(Ipv6Packet { fixed, rest })
    }

    /// DSCP (6 bits) and ECN (2 bits).
    #[inline]
    pub fn traffic_class(&self) -> u8 {
        (u16_at(self.fixed, 0) >> 4) as u8
    }

    /// The flow label, 20 bits.
    #[inline]
    pub fn flow_label(&self) -> u32 {
        u32_at(self.fixed, 0) & 0xf_ffff
    }

    /// Bytes behind the fixed header; zero in a jumbogram, and in a frame captured before
    /// segmentation offload.
    #[inline]
    pub fn payload_len(&self) -> u16 {
        u16_at(self.fixed, PAYLOAD_LEN)
    }

    /// The protocol of what follows the fixed header, perhaps an extension header.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.fixed[NEXT_HEADER]
    }

    /// How many more routers may forward the packet.
    #[inline]
    pub fn hop_limit(&self) -> u8 {
        self.fixed[HOP_LIMIT]
    }

    /// Where the packet comes from.
    #[inline]
    pub fn source(&self) -> Ipv6Addr {
        array_at::<16>(self.fixed, SOURCE).into()
    }

    /// Where the packet goes; with a routing header, its next stop.
    #[inline]
    pub fn destination(&self) -> Ipv6Addr {
        array_at::<16>(self.fixed, DESTINATION).into()
    }

    /// What follows the fixed header, as far as it is held; link padding is cut off where the payload
    /// length allows it.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        match self.payload_len() {
            0 => self.rest,
            len => &self.rest[..self.rest.len().min(len.into())],
        }
    }

    /// The extension headers.
    #[inline]
    pub fn extensions(&self) -> Extensions<'a> {
        Extensions::new(self.next_header(), self.payload())
    }
}

/// An IPv6 header, to write.
#[derive(Debug)]
pub struct Ipv6PacketMut<'a> {
    fixed: &'a mut [u8; HEADER],
}

impl<'a> Ipv6PacketMut<'a> {
    /// The packet at the start of `bytes`.
    ///
    /// # Errors
    /// As [`Ipv6Packet::new`].
    #[inline]
    pub fn new(bytes: &'a mut [u8]) -> Result<Ipv6PacketMut<'a>, Malformed> {
        Ipv6Packet::new(bytes)?;
        let fixed = bytes.first_chunk_mut().ok_or(Malformed::Truncated(Layer::Ipv6))?;
        Ok(Ipv6PacketMut { fixed })
    }

    /// Sets where the packet comes from. The result is what the checksum of a transport protocol
    /// with a pseudo header has to be adjusted by.
    #[inline]
    #[must_use = "the transport checksum covers the address too"]
    pub fn set_source(&mut self, address: Ipv6Addr) -> Delta {
        self.set_address(SOURCE, address)
    }

    /// Sets where the packet goes; the result is as for [`Ipv6PacketMut::set_source`].
    #[inline]
    #[must_use = "the transport checksum covers the address too"]
    pub fn set_destination(&mut self, address: Ipv6Addr) -> Delta {
        self.set_address(DESTINATION, address)
    }

    #[inline]
    fn set_address(&mut self, at: usize, address: Ipv6Addr) -> Delta {
        let old = u128::from_be_bytes(array_at(self.fixed, at));
        self.fixed[at..at + 16].copy_from_slice(&address.octets());
        Delta::of_u128(old, address.to_bits())
    }

    /// Sets DSCP and ECN.
    #[inline]
    pub fn set_traffic_class(&mut self, class: u8) {
        let word = u32_at(self.fixed, 0) & !0x0ff0_0000 | u32::from(class) << 20;
        put_u32(self.fixed, 0, word);
    }

    /// Sets how many more routers may forward the packet.
    #[inline]
    pub fn set_hop_limit(&mut self, limit: u8) {
        self.fixed[HOP_LIMIT] = limit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> [u8; 44] {
        let mut bytes = [0; 44];
        bytes[..8].copy_from_slice(&[0x6a, 0xb1, 0x23, 0x45, 0, 3, 17, 64]);
        bytes[8..24].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
        bytes[24..40].copy_from_slice(&[0xfd; 16]);
        bytes[40..].copy_from_slice(&[1, 2, 3, 4]);
        bytes
    }

    #[test]
    fn fields_are_where_the_rfc_says() {
        let bytes = header();
        let ip = Ipv6Packet::new(&bytes).unwrap();
        assert_eq!((ip.traffic_class(), ip.flow_label()), (0xab, 0x12345));
        assert_eq!((ip.payload_len(), ip.next_header(), ip.hop_limit()), (3, 17, 64));
        assert_eq!(ip.source(), Ipv6Addr::LOCALHOST);
        assert_eq!(ip.destination(), Ipv6Addr::from([0xfd; 16]));
        assert_eq!(ip.payload(), [1, 2, 3]);
        assert!(Ipv6Packet::new(&bytes[..39]).is_err());
        assert_eq!(Ipv6Packet::new(&[0x45; 40]).unwrap_err(), Malformed::Version(Layer::Ipv6));
    }

    #[test]
    fn setters_write_only_their_field() {
        let mut bytes = header();
        let mut ip = Ipv6PacketMut::new(&mut bytes).unwrap();
        ip.set_traffic_class(0x5c);
        ip.set_hop_limit(9);
        let _ = ip.set_source(Ipv6Addr::UNSPECIFIED);
        let mut expected = header();
        expected[..2].copy_from_slice(&[0x65, 0xc1]);
        expected[7] = 9;
        expected[23] = 0;
        assert_eq!(bytes, expected);
    }
}
