//! The endpoints of a flow, from its number alone.

use std::net::{Ipv4Addr, Ipv6Addr};

use rheostat_packet::FlowKey;
use rheostat_traffic::tuple_of;

/// What packets are: how long, headers and all, without the frame check sequence, and of what protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSize {
    /// 60 bytes: 64 on the wire. TCP over IPv4 throughout.
    Smallest,
    /// The same with a VLAN tag: 68 on the wire.
    Tagged,
    /// The shortest of TCP over IPv6 that carry data: 84 on the wire.
    Ipv6,
    /// By flow, in the proportions of the synthetic internet mix: a fifth under 74 bytes, half of
    /// Ethernet's MTU, the rest between. A tenth of the flows is IPv6, a fifth UDP.
    Mix,
}

/// The servers that flows go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// Each to a server of its own, more or less.
    Many,
    /// All to [`SERVICE`].
    One,
    /// As many, and frames have link addresses: each address of IP has its own.
    Stations,
}

/// The address of the one server, on port 443.
pub const SERVICE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// Bytes of an Ethernet frame with an IP packet of 1,500 bytes.
const FULL: u16 = 1_514;
/// The smallest Ethernet frame, without the frame check sequence.
const SMALLEST: u16 = 60;
/// A frame of IPv6 with as many bytes of data as fit into the one of IPv4.
const SMALLEST_V6: u16 = 80;
/// The VLAN of frames that have a tag.
pub(super) const VLAN: u16 = 7;
/// Bytes of a tag.
pub(super) const TAG_LEN: u16 = 4;

/// What a flow's packets are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryEndpoints {
    pub(super) client: (Ipv4Addr, u16),
    pub(super) server: (Ipv4Addr, u16),
    pub(super) is_v6: bool,
    pub(super) is_udp: bool,
    /// Whether frames have a VLAN tag.
    pub(super) is_tagged: bool,
    /// Whether frames go from station to station.
    pub(super) has_stations: bool,
    /// Bytes of each packet that carries data.
    pub(super) frame_len: u16,
}

impl Default for MemoryEndpoints {
    fn default() -> MemoryEndpoints {
        MemoryEndpoints::of(0, FrameSize::Smallest, Servers::Many)
    }
}

impl MemoryEndpoints {
    /// The endpoints of flow `number`.
    #[inline]
    pub(super) fn of(number: u64, size: FrameSize, servers: Servers) -> MemoryEndpoints {
        let (client, mut server) = tuple_of(number);
        if servers == Servers::One {
            server.0 = SERVICE;
        }
        let plain = MemoryEndpoints {
            client,
            server,
            is_v6: false,
            is_udp: false,
            is_tagged: false,
            has_stations: servers == Servers::Stations,
            frame_len: SMALLEST,
        };
        match size {
            FrameSize::Smallest => plain,
            FrameSize::Tagged => {
                MemoryEndpoints { is_tagged: true, frame_len: SMALLEST + TAG_LEN, ..plain }
            }
            FrameSize::Ipv6 => MemoryEndpoints { is_v6: true, frame_len: SMALLEST_V6, ..plain },
            FrameSize::Mix => {
                // Fibonacci hashing: neighbouring numbers, and ranks of popularity, get all kinds.
                let draw = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32;
                let (is_v6, is_udp) = (draw.is_multiple_of(10), draw % 5 == 1);
                let frame_len = match draw / 10 % 10 {
                    // An IPv6 segment cannot be that short.
                    0 | 1 if !is_v6 => SMALLEST,
                    0 | 1 => 86,
                    2..=6 => FULL,
                    other => 128 * other as u16,
                };
                MemoryEndpoints { is_v6, is_udp, frame_len, ..plain }
            }
        }
    }

    /// Bytes of each frame of a handshake: room for the headers of a SYN with the window scale option.
    pub(super) fn handshake_len(&self) -> u16 {
        match (self.is_v6, self.is_tagged) {
            (true, _) => SMALLEST_V6 - 2,
            (false, true) => SMALLEST + TAG_LEN,
            (false, false) => SMALLEST,
        }
    }

    /// A TCP connection over IPv4 of the smallest frames.
    #[inline]
    pub(super) fn brief(number: u64, servers: Servers) -> MemoryEndpoints {
        MemoryEndpoints::of(number, FrameSize::Smallest, servers)
    }

    /// The flow's key, client first.
    pub(super) fn key(&self) -> FlowKey {
        let protocol = if self.is_udp { 17 } else { 6 };
        let ((client, from), (server, to)) = (self.client, self.server);
        let zone = if self.is_tagged { VLAN.into() } else { 0 };
        if self.is_v6 {
            FlowKey::v6((widened(client), from), (widened(server), to), protocol, zone)
        } else {
            FlowKey::v4((client, from), (server, to), protocol, zone)
        }
    }
}

/// An IPv6 address of the documentation prefix (RFC 3849) for each IPv4 address.
pub fn widened(address: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(PREFIX | u128::from(address.to_bits()))
}

/// 2001:db8::/32.
pub(super) const PREFIX: u128 = 0x2001_0db8 << 96;
