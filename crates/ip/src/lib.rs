//! What routers and hosts share: interfaces, routes, neighbours, the answers to packets that are not let
//! through, and how often they may be given.

mod interface;
mod link;
pub mod neighbour;
mod rate_limit;
mod reset;
mod resident;
pub mod route;
mod unreachable;

pub use interface::{Interface, InterfaceAddress};
pub use link::Received;
pub use rate_limit::RateLimit;
pub use reset::{is_host, tcp_reset};
pub use resident::{LocalPacket, Outbox, Resident};
pub use route::{Hop, HopId, Route, RouteError, Routes};
pub use unreachable::{Unreachable, unreachable};

/// The longest answer: an ICMPv6 error of the least MTU (RFC 4443, section 2.4 (c)), with room for the
/// link header.
pub const LONGEST_ANSWER: usize = 1_280 + 32;
