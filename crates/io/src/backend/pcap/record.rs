//! One packet of a capture.

use rheostat_base::Time;
use rheostat_packet::LinkType;

/// Longest packet we accept; as other readers, four times the longest IP datagram.
pub(super) const MAX_PACKET: usize = 256 * 1024;

/// One packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it was captured, since the Unix epoch.
    pub time: Time,
    /// What its first bytes are.
    pub link: LinkType,
    /// Bytes it had on the wire, at least as many as were captured.
    pub wire_len: u32,
    /// The bytes captured.
    pub bytes: &'a [u8],
}

/// One packet of a capture, with its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordBuf {
    /// When it was captured, since the Unix epoch.
    pub time: Time,
    /// What its first bytes are.
    pub link: LinkType,
    /// Bytes it had on the wire.
    pub wire_len: u32,
    /// The bytes captured.
    pub bytes: Vec<u8>,
}

impl From<Record<'_>> for RecordBuf {
    fn from(Record { time, link, wire_len, bytes }: Record<'_>) -> RecordBuf {
        RecordBuf { time, link, wire_len, bytes: bytes.to_vec() }
    }
}
