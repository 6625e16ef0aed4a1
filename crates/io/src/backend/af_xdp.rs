//! Live interfaces by AF_XDP: packets go from the driver into the process's own buffers past the
//! kernel's network stack (Documentation/networking/af_xdp.rst).
//!
//! The pool of packet buffers is the UMEM. Every lane has a socket on every hardware queue of the
//! interface; the sockets of one hardware queue share its FILL and COMPLETION rings (`frame_rings`),
//! and a program in the kernel hashes packets and picks the socket ([`crate::backend::bpf`]). Lanes that share queues
//! ([`crate::backend::shared_ring`]) claim packets of the RX rings of the first of them, to which the program leads the
//! packets of all; each sends through a socket of its own.

#[cfg(not(any(loom, shuttle)))]
mod assembly;
#[cfg(not(any(loom, shuttle)))]
mod attachment;
#[cfg(not(any(loom, shuttle)))]
mod bounce;
#[cfg(not(any(loom, shuttle)))]
mod busy_poll;
mod claimed_ring;
#[cfg(not(any(loom, shuttle)))]
mod config;
#[cfg(not(any(loom, shuttle)))]
mod counters;
#[cfg(not(any(loom, shuttle)))]
mod device;
mod frame_rings;
#[cfg(not(any(loom, shuttle)))]
mod monitor;
#[cfg(not(any(loom, shuttle)))]
mod open;
#[cfg(not(any(loom, shuttle)))]
mod receive;
#[cfg(not(any(loom, shuttle)))]
mod receiving_lane;
#[cfg(not(any(loom, shuttle)))]
mod release;
mod ring;
#[cfg(not(any(loom, shuttle)))]
mod shared_receive;
#[cfg(not(any(loom, shuttle)))]
mod transmit;
#[cfg(not(any(loom, shuttle)))]
mod transmit_state;

#[cfg(not(any(loom, shuttle)))]
pub use bounce::Bounce;
#[cfg(not(any(loom, shuttle)))]
pub use config::{CopyMode, XdpConfig};
#[cfg(not(any(loom, shuttle)))]
pub use device::XdpDevice;
