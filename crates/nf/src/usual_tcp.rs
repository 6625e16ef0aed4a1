//! The TCP header of a packet on the fast path.

use rheostat_packet::wire::tcp::MIN_HEADER;

/// The TCP header of a packet of which it is known that its header lies whole in the first segment, states a possible length,
/// and ends before the packet does. So nothing is checked again.
#[derive(Clone, Copy, Debug)]
pub struct UsualTcp<'a> {
    header: &'a [u8; MIN_HEADER],
    /// Bytes from the start of the header to the end of the packet.
    len: u32,
}

impl<'a> UsualTcp<'a> {
    /// The header that `header` starts with, of a segment of `len` bytes.
    #[inline(always)]
    pub fn new(header: &'a [u8; MIN_HEADER], len: u32) -> UsualTcp<'a> {
        UsualTcp { header, len }
    }

    #[inline(always)]
    fn u32_at(self, at: usize) -> u32 {
        let header = self.header;
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    }

    /// The sequence number of the first byte.
    #[inline(always)]
    pub fn seq(self) -> u32 {
        self.u32_at(4)
    }

    /// The acknowledgement number.
    #[inline(always)]
    pub fn ack(self) -> u32 {
        self.u32_at(8)
    }

    /// The flags of the header's fourteenth byte.
    #[inline(always)]
    pub fn flags(self) -> u8 {
        self.header[13]
    }

    /// The window, unscaled.
    #[inline(always)]
    pub fn window(self) -> u16 {
        u16::from_be_bytes([self.header[14], self.header[15]])
    }

    /// Bytes behind the header.
    #[inline(always)]
    pub fn payload_len(self) -> u32 {
        let header_len = u32::from(self.header[12] >> 4) * 4;
        debug_assert!(header_len <= self.len, "the header ends before the packet does");
        self.len.wrapping_sub(header_len)
    }
}
