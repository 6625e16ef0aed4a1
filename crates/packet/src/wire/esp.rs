//! Encapsulating security payload (RFC 4303): what is not encrypted.

use super::field::u32_at;
use crate::malformed::{Layer, Malformed};

/// Bytes in front of the encrypted payload.
pub const HEADER: usize = 8;

/// An ESP packet.
#[derive(Clone, Copy, Debug)]
pub struct EspPacket<'a> {
    header: &'a [u8; HEADER],
}

impl<'a> EspPacket<'a> {
    /// The packet at the start of `bytes`.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] when the header is not whole.
    pub fn new(bytes: &'a [u8]) -> Result<EspPacket<'a>, Malformed> {
        let header = bytes.first_chunk().ok_or(Malformed::Truncated(Layer::Esp))?;
        Ok(EspPacket { header })
    }

    /// The security parameters index: names the association at the receiver.
    pub fn spi(&self) -> u32 {
        u32_at(self.header, 0)
    }

    /// The sequence number.
    pub fn sequence(&self) -> u32 {
        u32_at(self.header, 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_open_part_is_read() {
        let esp = EspPacket::new(&[1, 2, 3, 4, 0, 0, 0, 9]).unwrap();
        assert_eq!((esp.spi(), esp.sequence()), (0x0102_0304, 9));
        assert_eq!(EspPacket::new(&[0; 7]).unwrap_err(), Malformed::Truncated(Layer::Esp));
    }
}
