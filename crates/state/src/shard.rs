//! The unit of state with one owner.

use rheostat_base::ShardId;

use crate::{FlowTable, FragmentTracker};

/// All state of the packets whose hash falls to this shard. It is a value: the lane that holds the
/// box owns the shard, and giving it away is the whole of a migration.
#[derive(Debug)]
pub struct Shard<L> {
    /// Which shard this is.
    pub id: ShardId,
    /// The flows, with the states of the chain's functions.
    pub table: FlowTable,
    /// The datagrams that arrive in fragments.
    pub fragments: FragmentTracker,
    /// What the chain's functions keep for the shard as a whole: limits, ports, random numbers.
    pub local: L,
}
