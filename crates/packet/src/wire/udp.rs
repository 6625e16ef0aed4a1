//! UDP (RFC 768).

use super::field::{put_u16, u16_at};
use crate::checksum::Delta;
use crate::malformed::{Layer, Malformed};

/// Bytes of the header.
pub const HEADER: usize = 8;

pub(super) const CHECKSUM: usize = 6;

/// The length that a header states.
#[inline(always)]
pub(crate) fn len(header: &[u8; HEADER]) -> u16 {
    u16_at(header, 4)
}

/// A datagram.
#[derive(Clone, Copy, Debug)]
pub struct UdpDatagram<'a> {
    header: &'a [u8; HEADER],
}

impl<'a> UdpDatagram<'a> {
    /// The datagram at the start of `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when the header is not whole.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<UdpDatagram<'a>, Malformed> {
        let header = bytes.first_chunk().ok_or(Malformed::Truncated(Layer::Udp))?;
        Ok(UdpDatagram { header })
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

    /// The length of header and data that the header states.
    #[inline]
    pub fn stated_len(&self) -> u16 {
        len(self.header)
    }

    /// The checksum as it stands; zero when there is none.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.header, CHECKSUM)
    }
}

/// A datagram's header, to write. Setters keep the checksum right, absent, or as wrong as it was.
#[derive(Debug)]
pub struct UdpDatagramMut<'a> {
    header: &'a mut [u8; HEADER],
}

impl<'a> UdpDatagramMut<'a> {
    /// The datagram at the start of `bytes`.
    ///
    /// # Errors
    /// As [`UdpDatagram::new`].
    #[inline]
    pub fn new(bytes: &'a mut [u8]) -> Result<UdpDatagramMut<'a>, Malformed> {
        let header = bytes.first_chunk_mut().ok_or(Malformed::Truncated(Layer::Udp))?;
        Ok(UdpDatagramMut { header })
    }

    /// Sets the source port.
    #[inline]
    pub fn set_source_port(&mut self, port: u16) {
        self.set_word(0, port);
    }

    /// Sets the destination port.
    #[inline]
    pub fn set_destination_port(&mut self, port: u16) {
        self.set_word(2, port);
    }

    /// Adjusts the checksum to a change of the addresses.
    #[inline]
    pub fn adjust(&mut self, delta: Delta) {
        let checksum = u16_at(self.header, CHECKSUM);
        put_u16(self.header, CHECKSUM, delta.apply_udp(checksum));
    }

    #[inline]
    fn set_word(&mut self, at: usize, new: u16) {
        let old = u16_at(self.header, at);
        put_u16(self.header, at, new);
        self.adjust(Delta::of_u16(old, new));
    }
}
