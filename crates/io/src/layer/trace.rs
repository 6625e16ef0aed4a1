//! Single packets followed through a run: a mark on the packet, and a note at every station it passes.

mod step;

pub use step::{Event, Step};

/// The most packets that one trace follows: each has a mark of its own, in one byte.
pub const MOST: u8 = 255;
