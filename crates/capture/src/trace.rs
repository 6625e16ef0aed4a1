//! Single packets traced through a run: a mark on the packet, and a note at every trace point.

mod step;

pub use step::{Event, SegmentDecision, SegmentSummary, Step};

/// The most packets of one trace: each has a mark of its own, in one byte.
pub const MOST: u8 = 255;
