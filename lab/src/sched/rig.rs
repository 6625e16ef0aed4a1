//! Clients of a service over TCP inside the process, in an exact open loop.
//!
//! ```text
//!   drawn ahead: (moment, client) ──► due? ──► its receive queue ──► lane ──► service
//!                                                                              │
//!   sample: transmitted at − moment ◄── bytes of the client's replies ◄────────┘
//! ```
//!
//! Each request has a moment at which it is due, drawn before the run. It is in the receive queue of its connection from then on,
//! whatever becomes of other requests, and a lane gets it with the next poll: as with a NIC that needs no core. Latency counts from that
//! moment until the lane hands the segment with the end of the reply to the device. The number of a request is its moment, which
//! comes back in the reply, so clients remember nothing about requests.
//!
//! A connection carries as many requests at a time as are due and fit its window; others wait with their client, and are counted. A
//! receive queue has no bound, and the link loses nothing. Replies that are out of order, missing bytes or surplus ones break a
//! connection, which fails a run.
//!
//! Lanes do the clients' work, because there is no other core: a frame is copied from a prepared one, and its checksum follows from that
//! one's; samples are written one behind the other. The time this takes is counted ([`Totals::ticks`]), and is a figure of
//! its own in results.

mod client;
mod counters;
mod device;
mod poll;
mod population;
mod receiving;
mod request_frame;
mod samples;
mod schedule;
mod stages;
#[cfg(test)]
mod tests;
mod transmitting;

pub(crate) use counters::RigTotals;
pub(crate) use device::Clients;
pub(crate) use population::{MOST_CLIENTS, RigConfig};
pub(crate) use request_frame::REQUEST;
pub(crate) use samples::{RigSample, Samples};
pub(crate) use schedule::{Offered, Plan};
pub(crate) use stages::Stages;
