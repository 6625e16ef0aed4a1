//! What routers and hosts share: the answers to packets that are not let through, and how often they
//! may be given.

mod link;
mod rate_limit;
mod reset;
mod unreachable;

pub use link::Received;
pub use rate_limit::RateLimit;
pub use reset::{is_host, tcp_reset};
pub use unreachable::{Unreachable, unreachable};

/// The longest answer: an ICMPv6 error of the least MTU (RFC 4443, section 2.4 (c)), with room for the
/// link header.
pub const LONGEST_ANSWER: usize = 1_280 + 32;
