//! The kinds of device.

pub mod bpf;
pub mod pcap;
pub mod sim;
