//! Network functions: the trait to implement, what a handler can do, and chains of functions run by
//! the lanes.

#![forbid(unsafe_code, reason = "no `static mut`: what flows share lies in a `Vector` or a `Map`")]

mod any_chain;
pub mod chain;
mod chain_service;
mod chain_shard;
mod cx;
mod device_set;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod function;
mod function_spec;
mod link;
pub mod listing;
mod packet;
mod packet_log;
pub mod reading;
pub mod registry;
mod replacement;
mod restored_packet;
pub mod steady;
mod usual_tcp;
mod verdict;

pub use any_chain::AnyChain;
pub use chain::dynamic::{ChainError, DynamicChain};
pub use chain::{BytesBeside, Chain, Chain2, CompiledChain, Mode, OnObjects, Owned, Stage, Visit};
pub use chain_service::ChainService;
pub use chain_shard::ChainShard;
pub use cx::{Cx, DEFAULT_LIFETIME, Flows, Scope, Seen};
pub use device_set::DeviceSet;
pub use function::{Ahead, NetworkFunction, NoShardState, Prefetch, ShardInfo, ShardState};
pub use function_spec::FunctionSpec;
pub use link::{Link, link, shared_link};
pub use listing::{ListCx, ListMethods, Lists};
pub use packet::Packet;
pub use reading::{Reading, Unread};
pub use replacement::{Generation, Unlike};
pub use steady::{General, Steady};
pub use usual_tcp::UsualTcp;
pub use verdict::{Abort, Admission, Ending, Outcome, Verdict};
