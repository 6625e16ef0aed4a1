//! The kinds of device.

#[cfg(not(loom))]
pub mod af_packet;
pub mod af_xdp;
#[cfg(not(loom))]
pub mod bpf;
#[cfg(not(loom))]
mod intake;
pub mod pcap;
pub mod sim;
#[cfg(not(loom))]
pub mod tap;
