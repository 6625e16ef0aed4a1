//! The kinds of device.

#[cfg(not(any(loom, shuttle)))]
pub mod af_packet;
pub mod af_xdp;
#[cfg(not(any(loom, shuttle)))]
pub mod bpf;
#[cfg(not(any(loom, shuttle)))]
pub mod cable;
#[cfg(not(any(loom, shuttle)))]
mod intake;
#[cfg(not(any(loom, shuttle)))]
mod interface_config;
#[cfg(not(any(loom, shuttle)))]
pub mod interface_error;
#[cfg(not(any(loom, shuttle)))]
mod interface_state;
mod padded;
pub mod pcap;
pub mod shared_ring;
pub mod sim;
#[cfg(not(any(loom, shuttle)))]
mod socket_counters;
#[cfg(not(any(loom, shuttle)))]
pub mod tap;
