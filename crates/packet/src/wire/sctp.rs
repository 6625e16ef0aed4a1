//! SCTP (RFC 9260): the common header.

use super::field::{u16_at, u32_at};
use crate::malformed::{Layer, Malformed};

/// Bytes of the common header.
pub const HEADER: usize = 12;

/// An SCTP packet.
#[derive(Clone, Copy, Debug)]
pub struct SctpPacket<'a> {
    header: &'a [u8; HEADER],
    chunks: &'a [u8],
}

impl<'a> SctpPacket<'a> {
    /// The packet in `bytes`.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] when the common header is not whole.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<SctpPacket<'a>, Malformed> {
        let (header, chunks) =
            bytes.split_first_chunk().ok_or(Malformed::Truncated(Layer::Sctp))?;
        Ok(SctpPacket { header, chunks })
    }

    /// The source port.
    #[inline]
    pub fn source_port(&self) -> u16 {
        u16_at(self.header, 0)
    }

    /// The destination port.
    #[inline]
    pub fn destination_port(&self) -> u16 {
        u16_at(self.header, 2)
    }

    /// The tag that shows the receiver that the sender belongs to the association.
    #[inline]
    pub fn verification_tag(&self) -> u32 {
        u32_at(self.header, 4)
    }

    /// The CRC-32c as it stands, in network byte order.
    #[inline]
    pub fn checksum(&self) -> u32 {
        u32_at(self.header, 8)
    }

    /// The bytes behind the common header.
    #[inline]
    pub fn chunks(&self) -> &'a [u8] {
        self.chunks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_header_is_taken_apart() {
        let bytes = [0x0b, 0x59, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0xaa];
        let sctp = SctpPacket::new(&bytes).unwrap();
        assert_eq!((sctp.source_port(), sctp.destination_port()), (2905, 80));
        assert_eq!((sctp.verification_tag(), sctp.checksum()), (0x0102_0304, 0x0506_0708));
        assert_eq!(sctp.chunks(), [0xaa]);
        assert_eq!(SctpPacket::new(&bytes[..11]).unwrap_err(), Malformed::Truncated(Layer::Sctp));
    }
}
