//! Copies of packets for whoever looks at a run while it goes on: a tap in every lane, which costs a test
//! per burst while nobody looks; expressions that say which packets are meant; and files of what was
//! copied.

pub mod expression;
pub mod pcapng;
mod tap;
mod wanted;

pub use expression::{Expression, ExpressionError, Fields};
pub use pcapng::{Pcapng, Taken};
pub use tap::{Capture, Epoch, LaneTap, TapBusy, Taps, Trace};
pub use wanted::{Copied, Point, Wanted};
