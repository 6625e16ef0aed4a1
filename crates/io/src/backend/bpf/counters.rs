//! What programs in the kernel have counted.

use std::sync::atomic::Ordering;

use super::shared_array::SharedArray;

/// The load of one bucket of the indirection table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketLoad {
    /// Packets that rheostat took.
    pub packets: u64,
    /// Their bytes on the wire, link header included.
    pub bytes: u64,
}

/// What a program has counted, over all processors. Metrics of a moment, read while they grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramCounters {
    /// By bucket.
    pub buckets: Vec<BucketLoad>,
    /// Packets left to the kernel because of the filter.
    pub passed: u64,
    /// Packets for whose lane there was no socket. The kernel got them.
    pub unplaced: u64,
}

impl ProgramCounters {
    /// All buckets together.
    pub fn total(&self) -> BucketLoad {
        self.buckets.iter().fold(BucketLoad::default(), |sum, load| BucketLoad {
            packets: sum.packets.wrapping_add(load.packets),
            bytes: sum.bytes.wrapping_add(load.bytes),
        })
    }
}

/// Reads the rows of all processors.
pub(super) struct Meter {
    buckets: usize,
    processors: usize,
    loads: SharedArray,
    totals: SharedArray,
}

impl Meter {
    /// A meter over `loads`, which has a row of buckets for each processor, and `totals`.
    pub(super) fn new(loads: SharedArray, totals: SharedArray, buckets: usize) -> Meter {
        Meter { buckets, processors: totals.entries(), loads, totals }
    }

    pub(super) fn read(&self) -> ProgramCounters {
        // Relaxed: each word has one processor that writes it, and orders nothing.
        let load = |row, at| self.loads.u64(row, at).load(Ordering::Relaxed);
        let buckets = (0..self.buckets).map(|bucket| {
            let rows = (0..self.processors).map(|processor| processor * self.buckets + bucket);
            rows.fold(BucketLoad::default(), |sum, row| BucketLoad {
                packets: sum.packets.wrapping_add(load(row, 0)),
                bytes: sum.bytes.wrapping_add(load(row, 8)),
            })
        });
        let total = |at| {
            let word = |processor| self.totals.u64(processor, at).load(Ordering::Relaxed);
            (0..self.processors).map(word).fold(0, u64::wrapping_add)
        };
        ProgramCounters { buckets: buckets.collect(), passed: total(0), unplaced: total(8) }
    }
}
