//! What is wrong with a packet that cannot be parsed.

use std::fmt;

use thiserror::Error;

/// A protocol whose header was being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Layer {
    /// Ethernet, Linux cooked or BSD loopback framing.
    Link,
    /// An IEEE 802.1Q tag.
    Vlan,
    /// ARP.
    Arp,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// An IPv6 extension header.
    Extension,
    /// TCP.
    Tcp,
    /// UDP, and UDP-Lite.
    Udp,
    /// SCTP.
    Sctp,
    /// DCCP.
    Dccp,
    /// ICMP for IPv4.
    Icmpv4,
    /// ICMP for IPv6.
    Icmpv6,
    /// GRE.
    Gre,
    /// ESP.
    Esp,
    /// AH.
    Ah,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layer::Link => "link",
            Layer::Vlan => "VLAN",
            Layer::Arp => "ARP",
            Layer::Ipv4 => "IPv4",
            Layer::Ipv6 => "IPv6",
            Layer::Extension => "IPv6 extension",
            Layer::Tcp => "TCP",
            Layer::Udp => "UDP",
            Layer::Sctp => "SCTP",
            Layer::Dccp => "DCCP",
            Layer::Icmpv4 => "ICMPv4",
            Layer::Icmpv6 => "ICMPv6",
            Layer::Gre => "GRE",
            Layer::Esp => "ESP",
            Layer::Ah => "AH",
        })
    }
}

/// Why a packet is refused, and which header is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Malformed {
    /// The bytes end inside the header.
    #[error("the packet ends inside its {0} header")]
    Truncated(Layer),
    /// The header's version field names another protocol version.
    #[error("the {0} header carries another version number")]
    Version(Layer),
    /// The header states that it is shorter than such a header can be, or longer than the packet.
    #[error("the {0} header states an impossible header length")]
    HeaderLength(Layer),
    /// The header states that the packet is shorter than the header, or longer than the frame.
    #[error("the {0} header states an impossible packet length")]
    Length(Layer),
    /// A segmentation-offload frame, which states no length, cannot be a fragment.
    #[error("the {0} header of a fragment states no length")]
    FragmentLength(Layer),
    /// More VLAN tags than any network stacks.
    #[error("too many VLAN tags")]
    TooManyTags,
    /// More extension headers than any host sends (RFC 8504, section 5.3, allows such a limit).
    #[error("too many IPv6 extension headers")]
    TooManyExtensions,
    /// Hop-by-hop options elsewhere than first, or a second fragment header (RFC 8200, section 4.1).
    #[error("an IPv6 extension header stands where it must not")]
    ExtensionOrder,
}
