//! Network functions: the trait to implement, what a handler can do, and chains of functions run by
//! the lanes.

pub mod chain;
mod chain_service;
mod cx;
pub mod function;
mod packet;
mod verdict;

pub use chain::{Chain, Empty, Stage, Then, steering_for};
pub use chain_service::{ChainService, Seeds, make_shards};
pub use cx::{Cx, DEFAULT_LIFETIME, Flows, Scope};
pub use function::{NetworkFunction, ShardInfo};
pub use packet::Packet;
pub use verdict::{Abort, Admission, Ending, Outcome, Verdict};
