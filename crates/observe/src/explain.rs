//! What a policy would do with the load there is, and why: the load of lanes, shards and buckets, the moves, and
//! what limits them.

mod census;
mod explanation;
mod limit;
#[cfg(test)]
mod tests;
mod text;

pub use census::Census;
pub use explanation::{
    Explanation, FlowFigures, LaneFigures, MoveFigures, Prediction, ShardFigures, Squared,
};
pub use limit::{Limit, LimitKind};
