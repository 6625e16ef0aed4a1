//! Tap interfaces: the kernel of this machine, or a virtual machine, at the other end of the cable.
//!
//! A tap has as many queues as there are lanes, and a program chooses among them by the indirection table
//! ([`crate::backend::bpf`]). Each packet is read and written by a call of its own, and copied.

mod attachment;
mod config;
mod device;
mod monitor;
mod receive;
mod transmit;

pub use config::TapConfig;
pub use device::TapDevice;
