//! What a policy would do with the load there is, and why: the load of lanes, shards and buckets, the moves, and
//! what limits them.

mod breakdown;
mod explanation;
mod limit;
#[cfg(test)]
mod tests;
mod text;

pub use breakdown::Breakdown;
pub use explanation::{
    Explanation, FlowMetrics, LaneMetrics, MoveMetrics, OffloadMetrics, Prediction, ShardMetrics,
    Squared,
};
pub use limit::{Limit, LimitKind};
