//! Live interfaces by packet sockets: works on every interface of every kernel that loads programs, and
//! copies each packet. The fallback where AF_XDP cannot be had.
//!
//! Every lane has a socket with a ring (TPACKET_V2). The sockets form a fanout group, in which a program
//! names the socket of each packet by the indirection table ([`crate::backend::bpf`]). The kernel's own
//! stack sees packets after the sockets; another program there drops those that the sockets took.

mod config;
mod device;
mod monitor;
mod receive;
mod ring;
mod transmit;

pub use config::PacketConfig;
pub use device::PacketDevice;
