//! Live interfaces by AF_XDP: packets go from the driver into the process's own buffers past the
//! kernel's network stack (Documentation/networking/af_xdp.rst).
//!
//! The pool of packet buffers is the UMEM. Every lane has a socket on every hardware queue of the
//! interface; the sockets of one hardware queue share its FILL and COMPLETION rings (`frame_rings`),
//! and a program in the kernel hashes packets and picks the socket ([`crate::backend::bpf`]).

#[cfg(not(loom))]
mod attachment;
#[cfg(not(loom))]
mod bounce;
#[cfg(not(loom))]
mod config;
#[cfg(not(loom))]
mod counters;
#[cfg(not(loom))]
mod device;
mod frame_rings;
#[cfg(not(loom))]
mod monitor;
#[cfg(not(loom))]
mod open;
#[cfg(not(loom))]
mod open_error;
#[cfg(not(loom))]
mod receive;
#[cfg(not(loom))]
mod release;
mod ring;
#[cfg(not(loom))]
mod transmit;
#[cfg(not(loom))]
mod transmit_state;

#[cfg(not(loom))]
pub use bounce::Bounce;
#[cfg(not(loom))]
pub use config::{CopyMode, XdpConfig};
#[cfg(not(loom))]
pub use device::XdpDevice;
#[cfg(not(loom))]
pub use open_error::XdpOpenError;
