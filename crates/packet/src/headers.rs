//! Where the headers of a packet lie.

/// What a packet is above the link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Network {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// ARP.
    Arp,
    /// Anything else.
    #[default]
    Other,
}

/// The part of a datagram that a fragment carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// The identification field: 16 bits for IPv4, 32 for IPv6.
    pub id: u32,
    /// Where the fragment's data starts in the datagram's data, in bytes.
    pub offset: u16,
    /// Bytes of data the fragment carries.
    pub len: u16,
    /// Whether fragments follow.
    pub more: bool,
}

/// The layers of a packet as offsets from its first byte. Made by [`Headers::parse`], which has
/// checked that everything it points to lies inside the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// What lies above the link layer.
    pub network: Network,
    /// The protocol above IP and its extension headers; zero without IP.
    pub protocol: u8,
    /// Set for a fragment; an IPv6 atomic fragment (RFC 6946) is not one.
    pub fragment: Option<Fragment>,
    /// The ethertype, or zero where the link layer has none.
    pub ethertype: u16,
    /// VLAN identifiers: outer « 12 | inner; zero without tags.
    pub zone: u32,
    /// Where the network layer starts.
    pub l3: u16,
    /// Where the transport layer starts: behind all IP options and extension headers.
    pub l4: u16,
    /// Where the packet ends: link padding lies behind. Beyond the captured bytes when a capture
    /// cut the packet short.
    pub end: u32,
}
