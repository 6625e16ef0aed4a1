//! TCP connections as values: segments, user calls and the time go in; segments, events and deadlines come out.
//!
//! [`Connection`] does no I/O and reads no clock. Its owner passes it every segment of the connection
//! ([`Connection::handle_segment`]), calls [`Connection::handle_timeout`] when [`Connection::next_deadline`] has come, and after
//! either, and after user calls, sends what [`Connection::poll_transmit`] yields and looks at [`Connection::poll_event`].
//! Listening belongs to the owner: [`HalfOpen`] answers a SYN and becomes a connection when the peer acknowledges, and
//! [`SynCookies`] does so without memory. `docs/tcp.md` says what is implemented.
#![forbid(unsafe_code)]

mod buffer;
pub mod config;
pub mod congestion;
pub mod connection;
mod deadline;
pub mod half_open;
pub mod initial;
pub mod memory;
pub mod options;
mod receive;
mod ring;
pub mod sched;
pub mod segment;
mod send;
pub mod sequence;
mod spare_buffers;
pub mod syn_cookies;
pub mod time_wait;

pub use config::{Config, KeepAlive};
pub use connection::{
    Challenge, CloseReason, Connection, Decision, Event, Ignored, Info, MIN_PATH_MSS, Numbers,
    PathReport, ReadError, State, WriteError,
};
pub use half_open::{HalfOpen, HalfOpenOutcome, HalfOpenTimeout};
pub use initial::{Initial, InitialNumbers};
pub use memory::MemoryBudget;
pub use options::{Options, Timestamps};
pub use segment::{Header, Repair, Segment, SendReason, Transmit};
pub use sequence::{SequenceNumber, SequenceRange};
pub use spare_buffers::SpareBuffers;
pub use syn_cookies::SynCookies;
pub use time_wait::{TimeWait, TimeWaitOutcome};
