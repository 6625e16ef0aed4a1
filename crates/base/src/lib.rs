//! What every layer shares: identifiers, units, clocks, counters, drop reasons, the cores a process
//! may use, and the synchronisation facade through which lock-free code is model-checked.

#[cfg(not(loom))]
pub mod capability;
pub mod cgroup;
pub mod choice;
pub mod clock;
pub mod core_set;
pub mod counter;
pub mod drop_reason;
pub mod histogram;
pub mod id;
pub mod netlink;
pub mod placement;
pub mod printable;
#[cfg(not(loom))]
pub mod privileges;
pub mod simd;
pub mod sync;
pub mod time;
pub mod topology;
pub mod unit;

pub use cgroup::Cgroups;
pub use clock::{Clock, ClockSource, Cycles, VirtualClock, WallClock};
pub use core_set::CoreSet;
pub use counter::Counter;
pub use drop_reason::{DropCounters, DropReason, DropReasonError, OwnDropReason};
pub use histogram::Histogram;
pub use id::{CoreId, DeviceId, LaneId, QueueId, ShardId, WorkerId};
pub use placement::Placement;
pub use time::{Nanos, Time};
pub use topology::Topology;
