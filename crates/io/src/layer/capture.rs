//! Copies of packets for readers outside a run: a mirror in every lane, which costs a test per burst while there is no reader;
//! expressions that select packets; and files of what was copied.

pub mod expression;
mod mirror;
pub mod pcapng;
mod wanted;

pub use expression::{Expression, ExpressionError, Fields};
pub use mirror::{Capture, Epoch, LaneMirror, Mirrors, TapBusy, Trace};
pub use pcapng::{Pcapng, Taken};
pub use wanted::{Copied, Point, Wanted};
