//! A wire in virtual time: two stacks face to face, or a stack and a list of clients, with a link in each direction.
//!
//! ```text
//!  client 0 ──link──►┌───────┐
//!           ◄──link──┤       │
//!  client 1 ──link──►│ stack │    frames of the stack go to the client that has their destination address
//!           ◄──link──┤       │
//!                    └───────┘
//! ```
//!
//! Frames are IP packets without a link layer. Nothing reads a clock: time jumps from one event to the next, so a session over
//! a slow link takes no longer than its frames. Sessions of the same endpoints, links and seed are the same, frame by frame.

mod endpoint;
mod link;
mod observer;
mod session;

pub use endpoint::{Endpoint, Side};
pub use link::{Link, LinkConfig, LinkCounts, Passage};
pub use observer::{NoObserver, Observer};
pub use session::{Outcome, Wire, WireError};
