//! Copies of packets for whoever looks at a run while it goes on: a mirror in every lane, which costs a test
//! per burst while nobody looks; expressions that say which packets are meant; and files of what was
//! copied.

pub mod expression;
mod mirror;
pub mod pcapng;
mod wanted;

pub use expression::{Expression, ExpressionError, Fields};
pub use mirror::{Capture, Epoch, LaneMirror, Mirrors, TapBusy, Trace};
pub use pcapng::{Pcapng, Taken};
pub use wanted::{Copied, Point, Wanted};
