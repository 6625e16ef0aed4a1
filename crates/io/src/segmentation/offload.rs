//! The header that states what is left to do.

use rheostat_packet::checksum;
use thiserror::Error;

/// Bytes of the header (`struct virtio_net_hdr`).
pub const VNET_HEADER: usize = 10;

/// Flag: a checksum is to be completed.
const NEEDS_CHECKSUM: u8 = 1;

const NO_SEGMENTATION: u8 = 0;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const UDP: u8 = 5;
/// Added to a TCP kind: the first segment alone keeps the CWR flag, which every segmentation of ours
/// does anyway.
const ECN: u8 = 0x80;

/// What is left to do with a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// Where the checksum starts to cover the frame, and where it stands, counted from there.
    pub checksum: Option<(u16, u16)>,
    /// How the frame is to be cut, and how many bytes of data each segment takes.
    pub segments: Option<(Transport, u16)>,
}

/// What is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A TCP segment.
    Tcp,
    /// A train of UDP datagrams.
    Udp,
}

/// Why a frame cannot be finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OffloadError {
    /// The header requests something that was not offered.
    #[error("segmentation of kind {0:#x} was not offered")]
    Kind(u8),
    /// Numbers that cannot be.
    #[error("the header points outside the frame, or contradicts it")]
    Layout,
}

impl Offload {
    /// Reads a header in the processor's byte order.
    ///
    /// # Errors
    /// [`OffloadError`] when it requests what we cannot do.
    pub fn parse(header: &[u8; VNET_HEADER]) -> Result<Offload, OffloadError> {
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let size = word(4);
        let checksum = (header[0] & NEEDS_CHECKSUM != 0).then(|| (word(6), word(8)));
        let transport = match header[1] & !ECN {
            NO_SEGMENTATION => return Ok(Offload { checksum, segments: None }),
            TCP_V4 | TCP_V6 => Transport::Tcp,
            UDP => Transport::Udp,
            other => return Err(OffloadError::Kind(other)),
        };
        // Without the place of the transport header, nothing can be cut.
        if size == 0 || checksum.is_none() {
            return Err(OffloadError::Layout);
        }
        Ok(Offload { checksum, segments: Some((transport, size)) })
    }

    /// The same for the frame with `count` bytes more in front of its network layer.
    #[must_use]
    pub fn shifted(self, count: u16) -> Offload {
        let checksum = self.checksum.map(|(start, at)| (start.saturating_add(count), at));
        Offload { checksum, ..self }
    }

    /// Fills in the checksum of a frame that is not cut. The field holds the sum of the pseudo header.
    ///
    /// # Errors
    /// [`OffloadError::Layout`] when the field lies outside the frame.
    pub fn complete(&self, frame: &mut [u8]) -> Result<(), OffloadError> {
        let Some((start, offset)) = self.checksum else { return Ok(()) };
        let covered = frame.get_mut(usize::from(start)..).ok_or(OffloadError::Layout)?;
        let at = usize::from(offset);
        let whole = checksum::of(covered);
        let field = covered.get_mut(at..at + 2).ok_or(OffloadError::Layout)?;
        // As Linux does for every protocol: to UDP, zero would mean that there is none.
        field.copy_from_slice(&checksum::for_udp(whole).to_be_bytes());
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn header(flags: u8, kind: u8, size: u16, start: u16, offset: u16) -> [u8; VNET_HEADER] {
        let mut header = [0; VNET_HEADER];
        (header[0], header[1]) = (flags, kind);
        for (at, word) in [(4, size), (6, start), (8, offset)] {
            header[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        }
        header
    }

    #[test]
    fn reads_what_was_offered_and_refuses_the_rest() {
        let parse = |flags, kind, size| Offload::parse(&header(flags, kind, size, 34, 16));
        assert_eq!(parse(0, 0, 0), Ok(Offload::default()));
        let checksum = Some((34, 16));
        assert_eq!(parse(1, 0, 0), Ok(Offload { checksum, segments: None }));
        let cut = |transport| Ok(Offload { checksum, segments: Some((transport, 1_448)) });
        assert_eq!(parse(1, 1, 1_448), cut(Transport::Tcp));
        assert_eq!(parse(1, 4 | 0x80, 1_448), cut(Transport::Tcp));
        assert_eq!(parse(1, 5, 1_448), cut(Transport::Udp));
        assert_eq!(parse(1, 3, 1_448), Err(OffloadError::Kind(3)));
        assert_eq!(parse(1, 1, 0), Err(OffloadError::Layout));
        assert_eq!(parse(0, 1, 9), Err(OffloadError::Layout));
    }

    #[test]
    fn a_checksum_outside_the_frame_is_refused() {
        let mut frame = [0; 40];
        for (start, offset) in [(41, 0), (34, 16), (30, 9), (u16::MAX, u16::MAX)] {
            let offload = Offload { checksum: Some((start, offset)), segments: None };
            assert_eq!(offload.complete(&mut frame), Err(OffloadError::Layout));
        }
        assert_eq!(frame, [0; 40]);
    }
}
