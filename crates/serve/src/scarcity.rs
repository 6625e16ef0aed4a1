//! Whether memory for connections is scarce, and the connections that lanes could end.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use rheostat_base::LaneId;

/// Noted by the lane that meets a bound, until no lane finds memory scarce.
///
/// Relaxed: nothing is published by it. A lane that sees a count too late ends a connection that is not the largest.
#[derive(Debug)]
pub(crate) struct Scarcity {
    is_noted: AtomicBool,
    /// How often it was noted.
    number: AtomicU64,
    /// For each lane, bytes of the largest connection that it may end; 0 for none.
    largest: Vec<AtomicUsize>,
}

impl Scarcity {
    /// Memory is not scarce.
    pub(crate) fn new(lanes: usize) -> Scarcity {
        let largest = (0..lanes).map(|_| AtomicUsize::new(0)).collect();
        Scarcity { is_noted: AtomicBool::new(false), number: AtomicU64::new(0), largest }
    }

    /// Notes that memory is scarce; returns whether that is new.
    pub(crate) fn note(&self) -> bool {
        let is_new = !self.is_noted.swap(true, Ordering::Relaxed);
        if is_new {
            self.number.fetch_add(1, Ordering::Relaxed);
        }
        is_new
    }

    /// The number of the scarcity at hand, or the last: 1 for the first.
    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn is_noted(&self) -> bool {
        self.is_noted.load(Ordering::Relaxed)
    }

    /// Memory is not scarce any more.
    pub(crate) fn end(&self) {
        self.is_noted.store(false, Ordering::Relaxed);
        self.largest.iter().for_each(|largest| largest.store(0, Ordering::Relaxed));
    }

    /// The largest connection that a lane may end has so many bytes.
    pub(crate) fn set_largest(&self, lane: LaneId, bytes: usize) {
        self.largest[lane.index()].store(bytes, Ordering::Relaxed);
    }

    /// Bytes of the largest connection that another lane may end.
    pub(crate) fn largest_elsewhere(&self, lane: LaneId) -> usize {
        let others = self.largest.iter().enumerate().filter(|(place, _)| *place != lane.index());
        others.map(|(_, largest)| largest.load(Ordering::Relaxed)).max().unwrap_or(0)
    }
}
