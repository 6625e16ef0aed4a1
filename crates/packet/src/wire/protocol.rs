//! IP protocol numbers (IANA, "Assigned Internet Protocol Numbers").

/// IPv6 hop-by-hop options (RFC 8200).
pub const HOP_BY_HOP: u8 = 0;
/// ICMP for IPv4 (RFC 792).
pub const ICMPV4: u8 = 1;
/// TCP (RFC 9293).
pub const TCP: u8 = 6;
/// UDP (RFC 768).
pub const UDP: u8 = 17;
/// DCCP (RFC 4340).
pub const DCCP: u8 = 33;
/// IPv6 routing header (RFC 8200).
pub const ROUTING: u8 = 43;
/// IPv6 fragment header (RFC 8200).
pub const FRAGMENT: u8 = 44;
/// Generic routing encapsulation (RFC 2784).
pub const GRE: u8 = 47;
/// Encapsulating security payload (RFC 4303).
pub const ESP: u8 = 50;
/// Authentication header (RFC 4302).
pub const AH: u8 = 51;
/// ICMP for IPv6 (RFC 4443).
pub const ICMPV6: u8 = 58;
/// Nothing follows (RFC 8200).
pub const NO_NEXT_HEADER: u8 = 59;
/// IPv6 destination options (RFC 8200).
pub const DESTINATION_OPTIONS: u8 = 60;
/// SCTP (RFC 9260).
pub const SCTP: u8 = 132;
/// IPv6 mobility header (RFC 6275).
pub const MOBILITY: u8 = 135;
/// UDP-Lite (RFC 3828).
pub const UDP_LITE: u8 = 136;
/// Host identity protocol (RFC 7401).
pub const HIP: u8 = 139;
/// Shim6 (RFC 5533).
pub const SHIM6: u8 = 140;

/// Whether the first four bytes of the protocol's header are a source and a destination port.
#[inline]
pub const fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE)
}

/// A protocol by its name, such as `TCP`; one without a name here by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolName(pub u8);

impl std::fmt::Display for ProtocolName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self.0 {
            ICMPV4 => "ICMP",
            2 => "IGMP",
            TCP => "TCP",
            UDP => "UDP",
            DCCP => "DCCP",
            GRE => "GRE",
            ESP => "ESP",
            AH => "AH",
            ICMPV6 => "ICMPv6",
            89 => "OSPF",
            SCTP => "SCTP",
            UDP_LITE => "UDP-Lite",
            number => return write!(f, "{number}"),
        })
    }
}
