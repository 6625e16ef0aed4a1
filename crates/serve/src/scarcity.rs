//! Whether memory for connections is scarce, and the connections that lanes could end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rheostat_base::LaneId;

/// Noted by the lane that meets a bound, for each lane until that has found that its connections are not short of memory.
///
/// Relaxed: nothing is published by it. A lane that sees a count too late ends a connection that is not the largest.
#[derive(Debug)]
pub(crate) struct Scarcity(Vec<LaneScarcity>);

/// What is noted for a lane.
#[derive(Debug, Default)]
struct LaneScarcity {
    is_noted: AtomicBool,
    /// Bytes of the largest connection that the lane may end; 0 for none.
    largest: AtomicUsize,
}

impl Scarcity {
    /// Memory is not scarce.
    pub(crate) fn new(lanes: usize) -> Scarcity {
        Scarcity((0..lanes).map(|_| LaneScarcity::default()).collect())
    }

    /// Notes that memory is scarce; returns whether that is new for a lane.
    pub(crate) fn note(&self) -> bool {
        let is_new = |lane: &&LaneScarcity| !lane.is_noted.swap(true, Ordering::Relaxed);
        // Counts, as each lane is to be noted.
        self.0.iter().filter(is_new).count() > 0
    }

    /// Whether a lane has to look at its connections.
    #[inline]
    pub(crate) fn is_noted(&self, lane: LaneId) -> bool {
        self.0[lane.index()].is_noted.load(Ordering::Relaxed)
    }

    /// The connections of a lane are not short of memory.
    pub(crate) fn end(&self, lane: LaneId) {
        self.set_largest(lane, 0);
        self.0[lane.index()].is_noted.store(false, Ordering::Relaxed);
    }

    /// The largest connection that a lane may end has so many bytes.
    pub(crate) fn set_largest(&self, lane: LaneId, bytes: usize) {
        self.0[lane.index()].largest.store(bytes, Ordering::Relaxed);
    }

    /// Bytes of the largest connection that another lane may end.
    pub(crate) fn largest_elsewhere(&self, lane: LaneId) -> usize {
        let others = self.0.iter().enumerate().filter(|(place, _)| *place != lane.index());
        others.map(|(_, other)| other.largest.load(Ordering::Relaxed)).max().unwrap_or(0)
    }
}
