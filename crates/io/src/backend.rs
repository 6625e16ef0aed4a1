//! The kinds of device.

pub mod af_xdp;
pub mod bpf;
pub mod pcap;
pub mod sim;
