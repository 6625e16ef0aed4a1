//! TCP (RFC 9293).

use std::fmt;

use super::field::{put_u16, u16_at, u32_at};
use super::tcp_option::{TcpOption, TcpOptions};
use crate::checksum::Delta;
use crate::malformed::{Layer, Malformed};

/// Bytes of the header without options.
pub const MIN_HEADER: usize = 20;

pub(super) const CHECKSUM: usize = 16;

/// The flags, as bits of the header's fourteenth byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number counts.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer counts.
    pub const URG: u8 = 0x20;

    /// Whether the sender sends no more data.
    #[inline(always)]
    pub const fn fin(self) -> bool {
        self.0 & TcpFlags::FIN != 0
    }

    /// Whether the sender synchronises sequence numbers.
    #[inline(always)]
    pub const fn syn(self) -> bool {
        self.0 & TcpFlags::SYN != 0
    }

    /// Whether the connection is reset.
    #[inline(always)]
    pub const fn rst(self) -> bool {
        self.0 & TcpFlags::RST != 0
    }

    /// Whether the receiver is to pass the data on at once.
    #[inline(always)]
    pub const fn psh(self) -> bool {
        self.0 & TcpFlags::PSH != 0
    }

    /// Whether the acknowledgement number counts.
    #[inline(always)]
    pub const fn ack(self) -> bool {
        self.0 & TcpFlags::ACK != 0
    }

    /// Whether the urgent pointer counts.
    #[inline(always)]
    pub const fn urg(self) -> bool {
        self.0 & TcpFlags::URG != 0
    }

    /// Whether the segment requests a new connection: SYN, without ACK and RST.
    #[inline(always)]
    pub const fn opens(self) -> bool {
        self.0 & (TcpFlags::SYN | TcpFlags::ACK | TcpFlags::RST) == TcpFlags::SYN
    }
}

/// The names of the flags that are set: `SYN ACK`, or `none`.
impl fmt::Display for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(u8, &str); 6] = [
            (TcpFlags::SYN, "SYN"),
            (TcpFlags::FIN, "FIN"),
            (TcpFlags::RST, "RST"),
            (TcpFlags::PSH, "PSH"),
            (TcpFlags::ACK, "ACK"),
            (TcpFlags::URG, "URG"),
        ];
        let set = NAMES.iter().filter(|(bit, _)| self.0 & bit != 0).map(|(_, name)| *name);
        let set: Vec<_> = set.collect();
        f.write_str(if set.is_empty() { "none".to_owned() } else { set.join(" ") }.as_str())
    }
}

/// The length that a header states.
#[inline(always)]
pub(crate) fn header_len(fixed: &[u8; MIN_HEADER]) -> usize {
    usize::from(fixed[12] >> 4) * 4
}

/// A segment.
#[derive(Clone, Copy, Debug)]
pub struct TcpSegment<'a> {
    fixed: &'a [u8; MIN_HEADER],
    bytes: &'a [u8],
}

impl<'a> TcpSegment<'a> {
    /// The segment at the start of `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when the header is not whole or states an impossible length.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<TcpSegment<'a>, Malformed> {
        let fixed = bytes.first_chunk().ok_or(Malformed::Truncated(Layer::Tcp))?;
        if header_len(fixed) < MIN_HEADER {
            return Err(Malformed::HeaderLength(Layer::Tcp));
        }
        Ok(TcpSegment { fixed, bytes })
    }

    /// The source port.
    #[inline]
    pub fn source_port(&self) -> u16 {
        u16_at(self.fixed, 0)
    }

    /// The destination port.
    #[inline]
    pub fn destination_port(&self) -> u16 {
        u16_at(self.fixed, 2)
    }

    /// The sequence number of the first byte.
    #[inline]
    pub fn seq(&self) -> u32 {
        u32_at(self.fixed, 4)
    }

    /// The acknowledgement number.
    #[inline]
    pub fn ack(&self) -> u32 {
        u32_at(self.fixed, 8)
    }

    /// Bytes of the header with options.
    #[inline]
    pub fn header_len(&self) -> usize {
        header_len(self.fixed)
    }

    /// The flags.
    #[inline]
    pub fn flags(&self) -> TcpFlags {
        TcpFlags(self.fixed[13])
    }

    /// The window, unscaled.
    #[inline]
    pub fn window(&self) -> u16 {
        u16_at(self.fixed, 14)
    }

    /// The checksum as it stands.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.fixed, CHECKSUM)
    }

    /// The urgent pointer.
    #[inline]
    pub fn urgent_pointer(&self) -> u16 {
        u16_at(self.fixed, 18)
    }

    /// The options, as far as they were captured.
    #[inline]
    pub fn options(&self) -> TcpOptions<'a> {
        let end = self.header_len().min(self.bytes.len());
        TcpOptions::new(&self.bytes[MIN_HEADER..end])
    }

    /// The largest segment that the sender takes, in bytes; `None` without the option, which only
    /// segments with SYN have.
    pub fn mss(&self) -> Option<u16> {
        self.options().find_map(|option| match option {
            TcpOption::MaximumSegmentSize(bytes) => Some(bytes),
            _ => None,
        })
    }
}

/// A segment's header, to write. Setters keep the checksum right, or as wrong as it was.
#[derive(Debug)]
pub struct TcpSegmentMut<'a> {
    fixed: &'a mut [u8; MIN_HEADER],
}

impl<'a> TcpSegmentMut<'a> {
    /// The segment at the start of `bytes`.
    ///
    /// # Errors
    /// As [`TcpSegment::new`].
    #[inline]
    pub fn new(bytes: &'a mut [u8]) -> Result<TcpSegmentMut<'a>, Malformed> {
        TcpSegment::new(bytes)?;
        let fixed = bytes.first_chunk_mut().ok_or(Malformed::Truncated(Layer::Tcp))?;
        Ok(TcpSegmentMut { fixed })
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
        let checksum = u16_at(self.fixed, CHECKSUM);
        put_u16(self.fixed, CHECKSUM, delta.apply(checksum));
    }

    #[inline]
    fn set_word(&mut self, at: usize, new: u16) {
        let old = u16_at(self.fixed, at);
        put_u16(self.fixed, at, new);
        self.adjust(Delta::of_u16(old, new));
    }
}

/// Sets the largest segment that the sender of the segment at the start of `bytes` takes, and keeps the
/// checksum right, or as wrong as it was. False, and nothing changed, when the header has no such option,
/// or was cut short before it.
///
/// # Errors
/// As [`TcpSegment::new`].
pub fn set_mss(bytes: &mut [u8], mss: u16) -> Result<bool, Malformed> {
    let segment = TcpSegment::new(bytes)?;
    let Some(at) = segment.options().mss_at() else { return Ok(false) };
    let at = MIN_HEADER + at;
    let old = u16_at(bytes, at);
    put_u16(bytes, at, mss);
    // At an odd place, the value lies across two words of the checksum, each byte in the other half.
    let is_odd = at % 2 == 1;
    let (old, new) = if is_odd { (old.swap_bytes(), mss.swap_bytes()) } else { (old, mss) };
    TcpSegmentMut::new(bytes)?.adjust(Delta::of_u16(old, new));
    Ok(true)
}
