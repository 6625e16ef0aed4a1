//! Authentication header (RFC 4302).

use super::field::u32_at;
use crate::malformed::{Layer, Malformed};

/// Bytes of the header without the check value.
pub const FIXED: usize = 12;

/// The length that the second byte of a header states: in words of four bytes, minus two (RFC 4302,
/// section 2.2).
#[inline]
pub(crate) fn header_len(words: u8) -> usize {
    (usize::from(words) + 2) * 4
}

/// An authentication header.
#[derive(Clone, Copy, Debug)]
pub struct AuthenticationHeader<'a> {
    fixed: &'a [u8; FIXED],
    bytes: &'a [u8],
}

impl<'a> AuthenticationHeader<'a> {
    /// The header at the start of `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when the header is not whole or states an impossible length.
    pub fn new(bytes: &'a [u8]) -> Result<AuthenticationHeader<'a>, Malformed> {
        let truncated = Malformed::Truncated(Layer::Ah);
        let fixed: &[u8; FIXED] = bytes.first_chunk().ok_or(truncated)?;
        let len = header_len(fixed[1]);
        if len < FIXED {
            Err(Malformed::HeaderLength(Layer::Ah))
        } else if len > bytes.len() {
            Err(truncated)
        } else {
            Ok(AuthenticationHeader { fixed, bytes })
        }
    }

    /// The protocol of what follows.
    pub fn next_header(&self) -> u8 {
        self.fixed[0]
    }

    /// The security parameters index: names the association at the receiver.
    pub fn spi(&self) -> u32 {
        u32_at(self.fixed, 4)
    }

    /// The sequence number.
    pub fn sequence(&self) -> u32 {
        u32_at(self.fixed, 8)
    }

    /// What follows the header, which is not encrypted.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[header_len(self.fixed[1])..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_is_skipped() {
        let mut bytes = [6, 2, 0, 0, 1, 2, 3, 4, 0, 0, 0, 9, 0xcc, 0xcc, 0xcc, 0xcc, 0xaa];
        let ah = AuthenticationHeader::new(&bytes).unwrap();
        assert_eq!((ah.next_header(), ah.spi(), ah.sequence()), (6, 0x0102_0304, 9));
        assert_eq!(ah.payload(), [0xaa]);
        let error = |bytes: &[u8]| AuthenticationHeader::new(bytes).unwrap_err();
        assert_eq!(error(&bytes[..15]), Malformed::Truncated(Layer::Ah));
        bytes[1] = 0;
        assert_eq!(error(&bytes), Malformed::HeaderLength(Layer::Ah));
    }
}
