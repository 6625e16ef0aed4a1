//! What the packets of a shard remember: flows with the states that network functions keep about
//! them, the timers that end them, and the datagrams whose fragments are still on their way. All of a
//! shard's state is one value, [`Shard`], that one lane owns and another can be given. What lanes share is in
//! [`object`], changed by [transactions](txn).

pub mod deadline_wheel;
pub mod flow_hash;
pub mod flow_table;
pub mod fragment;
pub mod gauges;
mod list;
pub mod object;
pub mod quota;
mod shard;
pub mod space_saving;
mod timer_wheel;
pub mod txn;

pub use deadline_wheel::DeadlineWheel;
pub use flow_hash::{FlowHash, FlowHasher};
pub use flow_table::{
    AliasError, Arena, ArenaError, AwayFlow, Detached, DetachedFlow, EntryColumn, Expiry, FlowId,
    FlowMarks, FlowMut, FlowTable, Handle, LayoutError, OPEN_FLOWS, OpenDetached, OpenFlow,
    OpenFlows, PrefetchHint, Probe, Reclaimed, ShardLocals, StateBits, StateColumnMut, StateLayout,
    StateRefs, StateSet, TableConfig, TableCounts, TableFull, TimePlace, WalkedFlow, prefetch_line,
};
pub use fragment::{DatagramId, FragmentConfig, FragmentTracker, Tracked};
pub use gauges::Gauges;
pub use quota::Quota;
pub use shard::Shard;
pub use space_saving::{Estimate, SpaceSaving};

/// The derives that make a value [`Plain`](txn::Plain).
pub use bytemuck;
