//! Generic routing encapsulation (RFC 2784, RFC 2890).

use super::field::{u16_at, u32_at};
use crate::malformed::{Layer, Malformed};

/// Bytes of the header without optional fields.
pub const MIN_HEADER: usize = 4;

const CHECKSUM_PRESENT: u16 = 0x8000;
const KEY_PRESENT: u16 = 0x2000;
const SEQUENCE_PRESENT: u16 = 0x1000;

/// A GRE packet whose header is whole.
#[derive(Clone, Copy, Debug)]
pub struct GrePacket<'a> {
    fixed: &'a [u8; MIN_HEADER],
    bytes: &'a [u8],
}

impl<'a> GrePacket<'a> {
    /// The packet in `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when the header with its optional fields is not whole, or of a version other
    /// than 0: PPTP's version 1 (RFC 2637) has another layout.
    pub fn new(bytes: &'a [u8]) -> Result<GrePacket<'a>, Malformed> {
        let truncated = Malformed::Truncated(Layer::Gre);
        let fixed = bytes.first_chunk().ok_or(truncated)?;
        let gre = GrePacket { fixed, bytes };
        if gre.flags() & 7 != 0 {
            Err(Malformed::Version(Layer::Gre))
        } else if bytes.len() < gre.header_len() {
            Err(truncated)
        } else {
            Ok(gre)
        }
    }

    fn flags(&self) -> u16 {
        u16_at(self.fixed, 0)
    }

    /// Bytes of the header with the optional fields that it has.
    pub fn header_len(&self) -> usize {
        let optional = self.flags() & (CHECKSUM_PRESENT | KEY_PRESENT | SEQUENCE_PRESENT);
        MIN_HEADER + 4 * optional.count_ones() as usize
    }

    /// The ethertype of the encapsulated packet.
    pub fn protocol(&self) -> u16 {
        u16_at(self.fixed, 2)
    }

    /// The key that distinguishes the flows of a tunnel, if there is one.
    pub fn key(&self) -> Option<u32> {
        let at = if self.flags() & CHECKSUM_PRESENT != 0 { 8 } else { 4 };
        (self.flags() & KEY_PRESENT != 0).then(|| u32_at(self.bytes, at))
    }

    /// The encapsulated packet.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_len()..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_fields_move_key_and_payload() {
        let plain = GrePacket::new(&[0, 0, 8, 0, 0x45]).unwrap();
        assert_eq!((plain.protocol(), plain.key(), plain.payload()), (0x0800, None, &[0x45][..]));
        let mut bytes = [0xb0, 0, 0x86, 0xdd, 1, 1, 0, 0, 2, 2, 2, 2, 3, 3, 3, 3, 0x60];
        let full = GrePacket::new(&bytes).unwrap();
        assert_eq!((full.key(), full.payload()), (Some(0x0202_0202), &[0x60][..]));
        assert_eq!(GrePacket::new(&bytes[..15]).unwrap_err(), Malformed::Truncated(Layer::Gre));
        bytes[1] = 1;
        assert_eq!(GrePacket::new(&bytes).unwrap_err(), Malformed::Version(Layer::Gre));
    }
}
