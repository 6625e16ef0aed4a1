//! One view per protocol. A view wraps the bytes of a header without copying them; its constructor
//! has checked that the header is whole, so that reading a field cannot fail. Views that write have
//! setters only and never give out the bytes themselves.

pub mod ah;
pub mod arp;
pub mod endpoint;
pub mod esp;
pub mod ethernet;
pub(crate) mod field;
pub mod gre;
pub mod icmpv4;
pub mod icmpv6;
pub mod ipv4;
pub mod ipv6;
pub mod ipv6_extension;
pub mod protocol;
pub mod quoted;
pub mod rewrite;
pub mod sctp;
pub mod tcp;
pub mod tcp_option;
pub mod udp;
pub mod vlan;

pub use ah::AuthenticationHeader;
pub use arp::ArpPacket;
pub use endpoint::{End, replace_endpoint};
pub use esp::EspPacket;
pub use ethernet::{EthernetFrame, EthernetFrameMut, MacAddress};
pub use gre::GrePacket;
pub use icmpv4::{Icmpv4Message, Icmpv4MessageMut};
pub use icmpv6::{Icmpv6Message, Icmpv6MessageMut};
pub use ipv4::{Ipv4Packet, Ipv4PacketMut};
pub use ipv6::{Ipv6Packet, Ipv6PacketMut};
pub use ipv6_extension::{Extension, Extensions};
pub use quoted::Quoted;
pub use rewrite::{Rewrite, RewriteError};
pub use sctp::SctpPacket;
pub use tcp::{TcpFlags, TcpSegment, TcpSegmentMut};
pub use tcp_option::{TcpOption, TcpOptions};
pub use udp::{UdpDatagram, UdpDatagramMut};
pub use vlan::VlanTag;
