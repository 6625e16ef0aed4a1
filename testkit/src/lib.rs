//! Fixtures that tests of several crates share. Nothing but tests depends on this crate.
//!
//! Features keep a crate's tests from building the layers above it: without any, namespaces, frames and captures; with
//! `runtime`, lanes with small services; with `world`, whole runs of the firewall in virtual time; with
//! `help`, checks of the examples that commands give.

pub mod captures;
#[cfg(feature = "runtime")]
pub mod datagrams;
#[cfg(feature = "runtime")]
pub mod flow_order;
#[cfg(feature = "world")]
pub mod flows;
#[cfg(feature = "help")]
pub mod help;
#[cfg(feature = "runtime")]
pub mod intercepted;
pub mod namespace;
pub mod numbered;
#[cfg(feature = "runtime")]
pub mod runtime;
#[cfg(feature = "runtime")]
pub mod service;
pub mod spliced;
pub mod veth;
#[cfg(feature = "world")]
pub mod world;
