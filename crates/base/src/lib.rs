//! What every layer shares: identifiers, units, clocks, counters, drop reasons, and the
//! synchronisation facade through which lock-free code is model-checked.

pub mod choice;
pub mod clock;
pub mod counter;
pub mod drop_reason;
pub mod histogram;
pub mod id;
pub mod printable;
pub mod simd;
pub mod sync;
pub mod time;
pub mod unit;

pub use clock::{Clock, ClockSource, Cycles, VirtualClock, WallClock};
pub use counter::Counter;
pub use drop_reason::{DropCounters, DropReason, DropReasonError, OwnDropReason};
pub use histogram::Histogram;
pub use id::{CoreId, DeviceId, LaneId, QueueId, ShardId, WorkerId};
pub use time::{Nanos, Time};
