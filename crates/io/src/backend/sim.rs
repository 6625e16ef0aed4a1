//! A network interface in the process: descriptor rings, a Toeplitz hash, an indirection table that
//! can be rewritten while packets arrive, drops where a queue is full, and a link of a given rate.
//!
//! Packets come from a [`crate::Source`] and go to a [`crate::Sink`]. One of three drivers
//! makes them arrive; see [`Driver`].

mod answering;
mod config;
mod counters;
pub(super) mod descriptor_ring;
mod driver;
mod engine;
mod nic;
mod nic_thread;
mod pacing;
mod packet_hash;
mod pumped;
mod queue_event;
mod receive;
mod replies;
mod shared_receive;
mod sim_nic;
mod transmit;

pub use config::{Drawing, Driver, SimConfig};
pub use driver::Stepper;
pub use pacing::Pacing;
pub use pumped::DrawnArrivals;
pub use sim_nic::SimNic;
