//! The kernel's routes and neighbours, as it reports them over rtnetlink (RFC 3549; rtnetlink(7)).
//! [`message`] reads what it states, [`KernelTables`] keeps what it comes to. Neither sends or receives.

pub mod message;
mod tables;

pub use message::{KernelEvent, Messages, Request};
pub use tables::{KernelTables, KnownNeighbours, Progress};
