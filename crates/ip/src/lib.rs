//! What routers and hosts share: interfaces, routes, neighbours, the answers to packets that are not let
//! through, and how often they may be given.

mod arp;
mod discovery;
mod fragmentation;
mod icmp_error;
mod interface;
pub mod kernel_tables;
mod link;
mod local_service;
pub mod neighbour;
mod network;
pub mod path_mtu;
mod rate_limit;
pub mod reassembly;
mod reset;
mod resolver;
pub mod route;
mod run_limit;
mod stack;
mod unreachable;

pub use icmp_error::{Problem, icmp_error};
pub use interface::{Interface, InterfaceAddress};
pub use kernel_tables::{KernelTables, KnownNeighbours, Progress};
pub use link::Received;
pub use local_service::{LocalPacket, LocalService, Outbox};
pub use neighbour::{KnownNeighbour, NeighbourKey, NeighbourLimits, NeighbourState};
pub use network::{Network, NetworkError, NetworkUpdate, Policy};
pub use path_mtu::{PathMtuConfig, PathMtus, TooBig};
pub use rate_limit::RateLimit;
pub use reassembly::{Reassembled, Reassembler, ReassemblyConfig, ReassemblyCounts};
pub use reset::{is_host, tcp_reset};
pub use resolver::Resolver;
pub use route::{Hop, HopId, Route, RouteError, Routes};
pub use run_limit::{RunLimit, ShardLimit};
pub use stack::{Admission, Departure, ErrorsAfterChain, Next, Path, Stack};
pub use unreachable::{Unreachable, unreachable};

/// The longest answer: an ICMPv6 error of the least MTU (RFC 4443, section 2.4 (c)), with room for the
/// link header.
pub const LONGEST_ANSWER: usize = 1_280 + 32;
