//! IPv4 (RFC 791).

use std::net::Ipv4Addr;

use super::field::{array_at, put_u16, put_u32, u16_at, u32_at};
use crate::checksum::{self, Delta};
use crate::malformed::{Layer, Malformed};

/// Bytes of the header without options.
pub const MIN_HEADER: usize = 20;

const TOS: usize = 1;
const TOTAL_LEN: usize = 2;
const ID: usize = 4;
const FLAGS_AND_OFFSET: usize = 6;
const TTL: usize = 8;
const PROTOCOL: usize = 9;
pub(super) const CHECKSUM: usize = 10;
pub(super) const SOURCE: usize = 12;
pub(super) const DESTINATION: usize = 16;

/// In the word of flags and fragment offset: must not be fragmented.
pub(crate) const DONT_FRAGMENT: u16 = 0x4000;
/// In the word of flags and fragment offset: fragments follow.
pub(crate) const MORE_FRAGMENTS: u16 = 0x2000;
/// In the word of flags and fragment offset: the offset, in units of 8 bytes.
pub(crate) const OFFSET: u16 = 0x1fff;

/// An IPv4 packet whose header is whole; its data may be cut short, or lie in later segments.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4Packet<'a> {
    fixed: &'a [u8; MIN_HEADER],
    bytes: &'a [u8],
}

impl<'a> Ipv4Packet<'a> {
    /// The packet at the start of `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when the header is not whole, not of version 4, or shorter than 20 bytes. The
    /// total length is not looked at: compare it with the frame's.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Ipv4Packet<'a>, Malformed> {
        let fixed: &[u8; MIN_HEADER] =
            bytes.first_chunk().ok_or(Malformed::Truncated(Layer::Ipv4))?;
        // Almost every header is this one.
        if fixed[0] != 0x45 {
            check_first_byte(fixed[0], bytes.len())?;
        }
        Ok(Ipv4Packet { fixed, bytes })
    }

    /// Bytes of the header with its options.
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.fixed[0] & 0xf) * 4
    }

    /// Type of service: DSCP (6 bits) and ECN (2 bits).
    #[inline]
    pub fn tos(&self) -> u8 {
        self.fixed[TOS]
    }

    /// Bytes of header and data together; zero in a frame captured before segmentation offload.
    #[inline]
    pub fn total_len(&self) -> u16 {
        u16_at(self.fixed, TOTAL_LEN)
    }

    /// The identification that the fragments of a datagram share.
    #[inline]
    pub fn id(&self) -> u16 {
        u16_at(self.fixed, ID)
    }

    /// Whether routers must not fragment the packet.
    #[inline]
    pub fn dont_fragment(&self) -> bool {
        self.flags_and_offset() & DONT_FRAGMENT != 0
    }

    /// Whether fragments follow.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        self.flags_and_offset() & MORE_FRAGMENTS != 0
    }

    /// Where the data starts in the datagram's data, in bytes.
    #[inline]
    pub fn fragment_offset(&self) -> u16 {
        (self.flags_and_offset() & OFFSET) << 3
    }

    /// Whether the packet is a part of a datagram.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.flags_and_offset() & (MORE_FRAGMENTS | OFFSET) != 0
    }

    #[inline]
    fn flags_and_offset(&self) -> u16 {
        u16_at(self.fixed, FLAGS_AND_OFFSET)
    }

    /// How many more routers may forward the packet.
    #[inline]
    pub fn ttl(&self) -> u8 {
        self.fixed[TTL]
    }

    /// The protocol of the data; see [`super::protocol`].
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.fixed[PROTOCOL]
    }

    /// The header's checksum as it stands.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.fixed, CHECKSUM)
    }

    /// Whether the header's checksum is right.
    pub fn is_checksum_valid(&self) -> bool {
        checksum::of(self.header()) == 0
    }

    /// Where the packet comes from.
    #[inline]
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(u32_at(self.fixed, SOURCE))
    }

    /// Where the packet goes.
    #[inline]
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(u32_at(self.fixed, DESTINATION))
    }

    /// The header with its options.
    #[inline]
    pub fn header(&self) -> &'a [u8] {
        &self.bytes[..self.header_len()]
    }

    /// The options with their padding.
    #[inline]
    pub fn options(&self) -> &'a [u8] {
        &self.bytes[MIN_HEADER..self.header_len()]
    }

    /// The data as far as it is held; link padding is cut off where the total length allows it.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        let end = match self.total_len() {
            0 => self.bytes.len(),
            total => self.bytes.len().min(total.into()),
        };
        self.bytes.get(self.header_len()..end).unwrap_or_default()
    }
}

/// Whether `first`, version and header length, may start a header in `held` bytes.
#[cold]
fn check_first_byte(first: u8, held: usize) -> Result<(), Malformed> {
    let header_len = usize::from(first & 0xf) * 4;
    if first >> 4 != 4 {
        Err(Malformed::Version(Layer::Ipv4))
    } else if header_len < MIN_HEADER {
        Err(Malformed::HeaderLength(Layer::Ipv4))
    } else if header_len > held {
        Err(Malformed::Truncated(Layer::Ipv4))
    } else {
        Ok(())
    }
}

/// An IPv4 header, to write. Every setter keeps the header's checksum right, or as wrong as it was.
#[derive(Debug)]
pub struct Ipv4PacketMut<'a> {
    fixed: &'a mut [u8; MIN_HEADER],
}

impl<'a> Ipv4PacketMut<'a> {
    /// The packet at the start of `bytes`.
    ///
    /// # Errors
    /// As [`Ipv4Packet::new`].
    #[inline]
    pub fn new(bytes: &'a mut [u8]) -> Result<Ipv4PacketMut<'a>, Malformed> {
        Ipv4Packet::new(bytes)?;
        let fixed = bytes.first_chunk_mut().ok_or(Malformed::Truncated(Layer::Ipv4))?;
        Ok(Ipv4PacketMut { fixed })
    }

    /// Sets where the packet comes from. The result is what the checksum of a transport protocol
    /// with a pseudo header has to be adjusted by.
    #[inline]
    #[must_use = "the transport checksum covers the address too"]
    pub fn set_source(&mut self, address: Ipv4Addr) -> Delta {
        self.set_address(SOURCE, address)
    }

    /// Sets where the packet goes; the result is as for [`Ipv4PacketMut::set_source`].
    #[inline]
    #[must_use = "the transport checksum covers the address too"]
    pub fn set_destination(&mut self, address: Ipv4Addr) -> Delta {
        self.set_address(DESTINATION, address)
    }

    #[inline]
    fn set_address(&mut self, at: usize, address: Ipv4Addr) -> Delta {
        let delta = Delta::of_u32(u32_at(self.fixed, at), address.to_bits());
        put_u32(self.fixed, at, address.to_bits());
        self.adjust(delta);
        delta
    }

    /// Sets type of service.
    #[inline]
    pub fn set_tos(&mut self, tos: u8) {
        let new = u16::from_be_bytes([self.fixed[0], tos]);
        self.set_word(0, new);
    }

    /// Sets how many more routers may forward the packet.
    #[inline]
    pub fn set_ttl(&mut self, ttl: u8) {
        let new = u16::from_be_bytes([ttl, self.fixed[PROTOCOL]]);
        self.set_word(TTL, new);
    }

    /// Sets the identification.
    #[inline]
    pub fn set_id(&mut self, id: u16) {
        self.set_word(ID, id);
    }

    #[inline]
    fn set_word(&mut self, at: usize, new: u16) {
        let old = u16::from_be_bytes(array_at(self.fixed, at));
        put_u16(self.fixed, at, new);
        self.adjust(Delta::of_u16(old, new));
    }

    #[inline]
    fn adjust(&mut self, delta: Delta) {
        let checksum = u16_at(self.fixed, CHECKSUM);
        put_u16(self.fixed, CHECKSUM, delta.apply(checksum));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a router alert option; the checksum was computed apart from this code.
    const WITH_OPTION: [u8; 28] = [
        0x46, 0xc0, 0x00, 0x1b, 0x12, 0x34, 0x40, 0x00, 0x01, 0x02, 0xe7, 0xd1, 10, 0, 0, 1, 224,
        0, 0, 22, 0x94, 0x04, 0x00, 0x00, 0xaa, 0xbb, 0xcc, 0xdd,
    ];

    #[test]
    fn options_move_the_payload_and_padding_is_cut_off() {
        let ip = Ipv4Packet::new(&WITH_OPTION).unwrap();
        assert_eq!((ip.header_len(), ip.total_len(), ip.tos()), (24, 27, 0xc0));
        assert_eq!((ip.id(), ip.ttl(), ip.protocol()), (0x1234, 1, 2));
        assert!(ip.dont_fragment() && !ip.more_fragments() && !ip.is_fragment());
        assert_eq!(ip.source(), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(ip.destination(), Ipv4Addr::new(224, 0, 0, 22));
        assert_eq!(ip.options(), [0x94, 0x04, 0x00, 0x00]);
        assert_eq!(ip.payload(), [0xaa, 0xbb, 0xcc]);
        assert_eq!(ip.checksum(), 0xe7d1);
        assert!(ip.is_checksum_valid());
    }

    #[test]
    fn impossible_headers_are_refused() {
        let error = |first: u8, len: usize| {
            let mut bytes = WITH_OPTION;
            bytes[0] = first;
            Ipv4Packet::new(&bytes[..len]).err()
        };
        assert_eq!(error(0x45, 20), None);
        assert_eq!(error(0x46, 24), None);
        assert_eq!(error(0x45, 19), Some(Malformed::Truncated(Layer::Ipv4)));
        assert_eq!(error(0x46, 23), Some(Malformed::Truncated(Layer::Ipv4)));
        assert_eq!(error(0x44, 28), Some(Malformed::HeaderLength(Layer::Ipv4)));
        assert_eq!(error(0x65, 28), Some(Malformed::Version(Layer::Ipv4)));
    }

    #[test]
    fn setters_keep_the_checksum() {
        let mut bytes = WITH_OPTION;
        let mut ip = Ipv4PacketMut::new(&mut bytes).unwrap();
        ip.set_ttl(63);
        ip.set_tos(3);
        ip.set_id(0xffff);
        let _ = ip.set_source(Ipv4Addr::new(203, 0, 113, 77));
        let _ = ip.set_destination(Ipv4Addr::new(192, 0, 2, 255));
        let ip = Ipv4Packet::new(&bytes).unwrap();
        assert_eq!((ip.ttl(), ip.protocol(), ip.tos(), ip.id()), (63, 2, 3, 0xffff));
        assert_eq!(ip.source(), Ipv4Addr::new(203, 0, 113, 77));
        assert_eq!(ip.destination(), Ipv4Addr::new(192, 0, 2, 255));
        assert!(ip.is_checksum_valid());
    }
}
