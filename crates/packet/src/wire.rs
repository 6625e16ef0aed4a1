//! One view per protocol. A view wraps the bytes of a header without copying them; its constructor
//! has checked that the header is whole, so that reading a field cannot fail. Views that write have
//! setters only and never give out the bytes themselves.

pub mod arp;
pub mod ethernet;
pub(crate) mod field;
pub mod icmpv4;
pub mod icmpv6;
pub mod ipv4;
pub mod ipv6;
pub mod ipv6_extension;
pub mod protocol;
pub mod tcp;
pub mod tcp_option;
pub mod transport_keys;
pub mod udp;
pub mod vlan;

pub use arp::ArpPacket;
pub use ethernet::{EthernetFrame, EthernetFrameMut, MacAddress};
pub use icmpv4::Icmpv4Message;
pub use icmpv6::Icmpv6Message;
pub use ipv4::{Ipv4Packet, Ipv4PacketMut};
pub use ipv6::{Ipv6Packet, Ipv6PacketMut};
pub use ipv6_extension::{Extension, Extensions};
pub use tcp::{TcpFlags, TcpSegment, TcpSegmentMut};
pub use tcp_option::{TcpOption, TcpOptions};
pub use udp::{UdpDatagram, UdpDatagramMut};
pub use vlan::VlanTag;
