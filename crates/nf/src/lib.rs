//! Network functions: the trait to implement, what a handler can do, and chains of functions run by
//! the lanes.

#![forbid(unsafe_code, reason = "no `static mut`: what flows share lies in a `Vector` or a `Map`")]

mod any_chain;
pub mod chain;
mod chain_service;
mod cx;
mod device_set;
pub mod function;
mod packet;
mod packet_log;
pub mod reading;
// Unit tests have their own chains, and need not compile these once more.
#[cfg(not(test))]
pub mod shipped;
pub mod steady;
mod usual_tcp;
mod verdict;

pub use any_chain::AnyChain;
pub use chain::{Chain, Chain2, Passthrough, Shared, Stage, steering_for};
pub use chain_service::{ChainService, Seeds, make_shards};
pub use cx::{Cx, DEFAULT_LIFETIME, Flows, Scope, Seen};
pub use device_set::DeviceSet;
pub use function::{Ahead, NetworkFunction, ShardInfo};
pub use packet::Packet;
pub use reading::{Reading, Unread};
pub use steady::{General, Steady};
pub use verdict::{Abort, Admission, Ending, Outcome, Verdict};
