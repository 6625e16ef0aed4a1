//! Sizes of packets.

use serde::Serialize;

use super::distribution::Distribution;

/// Frames of as many bytes are of full size on Ethernet: 1,500 of IP and the header.
const FULL: u64 = 1_514;
/// Below this, RSS++ calls a packet small.
const SMALL: u64 = 74;
/// Longer packets count as this long.
const LONGEST: usize = 65_535;
/// The width of a bar.
const BAR: usize = 64;

/// Counts of packets by size, to be drawn.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Histogram {
    /// Bytes that a bar spans: the first from 0 to one less than this, and so on. The last one is open: all
    /// packets longer than full size on Ethernet are in it.
    pub width: u64,
    /// Packets of each bar.
    pub packets: Vec<u64>,
}

/// Packets by their bytes on the wire.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    counts: Vec<u64>,
    bytes: u64,
}

impl Sizes {
    pub(super) fn count(&mut self, wire_len: u32) {
        self.bytes += u64::from(wire_len);
        let size = (wire_len as usize).min(LONGEST);
        if size >= self.counts.len() {
            self.counts.resize(size + 1, 0);
        }
        self.counts[size] += 1;
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn distribution(&self) -> Distribution {
        Distribution::of_counts((0..).zip(self.counts.iter().copied()))
    }

    /// The shares of small packets and of those of full size.
    pub(super) fn small_and_full(&self) -> (f64, f64) {
        let distribution = self.distribution();
        let any = self.counts.iter().any(|count| *count > 0);
        let full = if any { 1.0 - distribution.below(FULL) } else { 0.0 };
        (distribution.below(SMALL), full)
    }

    pub(super) fn histogram(&self) -> Histogram {
        // 24 bars end behind 1,535 bytes, as a full frame with a VLAN tag does not.
        let mut packets = vec![0; 25];
        for (bar, counts) in self.counts.chunks(BAR).enumerate() {
            packets[bar.min(24)] += counts.iter().sum::<u64>();
        }
        Histogram { width: BAR as u64, packets }
    }
}
