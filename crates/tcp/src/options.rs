//! The options of a segment that the core understands (RFC 9293, 7323, 2018).

use arrayvec::ArrayVec;
use rheostat_packet::wire::{TcpOption, TcpOptions};

use crate::sequence::{SequenceNumber, SequenceRange};

/// Bytes that the options of a segment may take.
pub const MAX_OPTIONS: usize = 40;
/// SACK blocks that fit into the options of a segment.
pub const MAX_BLOCKS: usize = 4;
/// Bytes of time stamps with their padding.
pub(crate) const TIMESTAMPS_LEN: usize = 12;
/// The largest shift of a window (RFC 7323, 2.3).
pub const MAX_WINDOW_SCALE: u8 = 14;

/// The sender's time stamp, and the one of the peer that it echoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The latest stamp received, in segments with ACK.
    pub echo: u32,
}

/// Options as values. Other kinds are skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The largest segment the sender takes, in a SYN.
    pub mss: Option<u16>,
    /// The shift of the sender's windows, in a SYN; at most 14.
    pub window_scale: Option<u8>,
    /// Whether the sender understands SACK, in a SYN.
    pub sack_permitted: bool,
    /// Time stamps.
    pub timestamps: Option<Timestamps>,
    /// What the sender has received beside what it acknowledges.
    pub sack: ArrayVec<SequenceRange, MAX_BLOCKS>,
}

impl Options {
    /// The options of a header. The first of each kind counts; blocks beyond the fourth, and those without bytes, do not.
    pub fn parse(options: TcpOptions<'_>) -> Options {
        let mut parsed = Options::default();
        for option in options {
            match option {
                TcpOption::MaximumSegmentSize(mss) => {
                    parsed.mss.get_or_insert(mss);
                }
                TcpOption::WindowScale(shift) => {
                    parsed.window_scale.get_or_insert(shift.min(MAX_WINDOW_SCALE));
                }
                TcpOption::SackPermitted => parsed.sack_permitted = true,
                TcpOption::Timestamps(value, echo) => {
                    parsed.timestamps.get_or_insert(Timestamps { value, echo });
                }
                TcpOption::Sack(blocks) => parsed.parse_blocks(blocks),
                TcpOption::Other(..) => {}
            }
        }
        parsed
    }

    fn parse_blocks(&mut self, blocks: &[u8]) {
        for [a, b, c, d, e, f, g, h] in blocks.as_chunks().0 {
            let start = SequenceNumber(u32::from_be_bytes([*a, *b, *c, *d]));
            let end = SequenceNumber(u32::from_be_bytes([*e, *f, *g, *h]));
            let block = SequenceRange { start, end };
            if !block.is_empty() && !self.sack.is_full() {
                self.sack.push(block);
            }
        }
    }

    /// Bytes they take in a header, padding included.
    pub fn len(&self) -> usize {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let scale = if self.window_scale.is_some() { 4 } else { 0 };
        let permitted = if self.sack_permitted { 4 } else { 0 };
        let stamps = if self.timestamps.is_some() { TIMESTAMPS_LEN } else { 0 };
        let sack = if self.sack.is_empty() { 0 } else { 4 + 8 * self.sack.len() };
        mss + scale + permitted + stamps + sack
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The options as they stand in a header, padded to words. Blocks that find no room are left out.
    pub fn write(&self) -> ArrayVec<u8, MAX_OPTIONS> {
        let mut out = ArrayVec::new();
        if let Some(mss) = self.mss {
            out.extend([2, 4]);
            out.extend(mss.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            out.extend([1, 3, 3, shift]);
        }
        if self.sack_permitted {
            out.extend([1, 1, 4, 2]);
        }
        if let Some(stamps) = self.timestamps {
            out.extend([1, 1, 8, 10]);
            out.extend(stamps.value.to_be_bytes());
            out.extend(stamps.echo.to_be_bytes());
        }
        let blocks = self.sack.len().min(out.remaining_capacity().saturating_sub(4) / 8);
        if blocks > 0 {
            out.extend([1, 1, 5, 2 + 8 * blocks as u8]);
            for block in &self.sack[..blocks] {
                out.extend(block.start.0.to_be_bytes());
                out.extend(block.end.0.to_be_bytes());
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn options_are_read_as_they_were_written(
            mss: Option<u16>,
            window_scale in prop::option::of(0..=MAX_WINDOW_SCALE),
            sack_permitted: bool,
            stamps: Option<(u32, u32)>,
            blocks in prop::collection::vec((any::<u32>(), 1_u32..1 << 30), 0..=4),
        ) {
            let mut options = Options { mss, window_scale, sack_permitted, ..Options::default() };
            options.timestamps = stamps.map(|(value, echo)| Timestamps { value, echo });
            for (start, len) in blocks {
                options.sack.push(SequenceRange::of_len(SequenceNumber(start), len));
                if options.len() > MAX_OPTIONS {
                    options.sack.pop();
                }
            }
            let bytes = options.write();
            prop_assert_eq!(bytes.len(), options.len());
            prop_assert_eq!(Options::parse(TcpOptions::new(&bytes)), options);
        }

        #[test]
        fn any_bytes_have_bounded_options(bytes in prop::collection::vec(any::<u8>(), 0..=40)) {
            let options = Options::parse(TcpOptions::new(&bytes));
            prop_assert!(options.window_scale.is_none_or(|shift| shift <= MAX_WINDOW_SCALE));
            prop_assert!(options.sack.iter().all(|block| !block.is_empty()));
        }
    }

    #[test]
    fn a_shift_above_14_counts_as_14() {
        let options = Options::parse(TcpOptions::new(&[3, 3, 200, 0]));
        assert_eq!(options.window_scale, Some(14));
    }

    #[test]
    fn blocks_without_bytes_are_skipped() {
        let bytes = [5, 18, 0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 4];
        let options = Options::parse(TcpOptions::new(&bytes));
        assert_eq!(options.sack[..], [SequenceRange::of_len(SequenceNumber(1), 3)]);
    }
}
