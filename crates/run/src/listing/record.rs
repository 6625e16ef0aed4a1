//! What a walk sends its client.

use std::time::Duration;

use rheostat_base::{LaneId, ShardId};
use rheostat_packet::FlowKey;

use super::fields::ListedFields;

/// What one function reports.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionFields {
    /// The name of the function.
    pub function: &'static str,
    /// The values; none of a function that lists nothing.
    pub fields: ListedFields,
}

/// A flow as it was when its lane came by.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRecord {
    /// The key under which the flow was created: both ends, in the order of the run's sides, the one inside first.
    pub key: FlowKey,
    /// The second key, under which the packets of the other side come, where the flow is translated.
    pub alias: Option<FlowKey>,
    /// The lane that has the shard.
    pub lane: LaneId,
    /// The shard that has the flow.
    pub shard: ShardId,
    /// The time until the flow ends without a packet; `None` for a flow without a deadline.
    pub left: Option<Duration>,
    /// Whether another lane works on the flow, so that its functions' states are not listed. `left` is then a lower bound.
    pub is_away: bool,
    /// Whether the first end of the key has opened the flow, if a function knows.
    pub opened_forward: Option<bool>,
    /// How long there has been the flow, if a function knows.
    pub age: Option<Duration>,
    /// Packets and bytes in both directions together, if a function counts them.
    pub counted: Option<(u64, u64)>,
    /// The functions that have a state of the flow, in the order of the chain.
    pub functions: Vec<FunctionFields>,
}

/// An entry of a table that a function has of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryRecord {
    /// The lane that listed it.
    pub lane: LaneId,
    /// The shard that has it; `None` for one that all shards have together.
    pub shard: Option<ShardId>,
    /// What the function reports.
    pub fields: ListedFields,
}

/// What a walk meets.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A flow.
    Flow(FlowRecord),
    /// An entry of a function's own table.
    Entry(EntryRecord),
}
