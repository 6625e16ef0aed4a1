//! The kinds of device.

pub mod pcap;
pub mod sim;
