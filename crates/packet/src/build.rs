//! Whole frames with right checksums, for generators, tests, and packets that functions originate.

use std::net::IpAddr;

use crate::checksum::{self, Sum};
use crate::wire::ethernet::{self, MacAddress};
use crate::wire::field::{put_u16, put_u32};
use crate::wire::{protocol, tcp, udp};

/// The shortest Ethernet frame, without its check sequence.
const MIN_FRAME: usize = 60;

/// The Ethernet header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ethernet {
    /// Where it comes from.
    pub source: MacAddress,
    /// Where it goes.
    pub destination: MacAddress,
    /// The VLAN, if it is tagged.
    pub vlan: Option<u16>,
}

/// A TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader<'a> {
    /// Source and destination port.
    pub ports: (u16, u16),
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags, see [`crate::wire::tcp::TcpFlags`].
    pub flags: u8,
    /// Window, unscaled.
    pub window: u16,
    /// Options, a multiple of four bytes and at most 40.
    pub options: &'a [u8],
}

/// What lies above IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport<'a> {
    /// TCP.
    Tcp(TcpHeader<'a>),
    /// UDP.
    Udp {
        /// Source and destination port.
        ports: (u16, u16),
    },
    /// An ICMP or ICMPv6 message, as the address family has it.
    Icmp {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
        /// The second word: identifier and sequence number, or unused.
        rest: u32,
    },
    /// Any protocol; the payload is all of it. Also for fragments.
    Protocol(u8),
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// This many bytes of a pattern, for when contents do not matter.
    Pattern(usize),
}

/// A frame to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameBuilder<'a> {
    /// The Ethernet header; without it the frame starts with IP.
    pub ethernet: Option<Ethernet>,
    /// The source address.
    pub source: IpAddr,
    /// The destination address, of the same family.
    pub destination: IpAddr,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Identification (IPv4), or that of the fragment header.
    pub id: u16,
    /// For a fragment: where its data starts in the datagram, a multiple of 8, and whether more follow.
    pub fragment: Option<(u16, bool)>,
    /// What lies above IP.
    pub transport: Transport<'a>,
    /// What the packet carries.
    pub payload: Payload<'a>,
}

const PATTERN: [u8; 4] = *b"rheo";

impl Payload<'_> {
    fn len(&self) -> usize {
        match self {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Pattern(len) => *len,
        }
    }

    #[inline]
    fn write(&self, out: &mut [u8]) {
        match self {
            Payload::Bytes(bytes) => out.copy_from_slice(bytes),
            Payload::Pattern(_) => {
                for chunk in out.chunks_mut(PATTERN.len()) {
                    chunk.copy_from_slice(&PATTERN[..chunk.len()]);
                }
            }
        }
    }
}

impl Transport<'_> {
    fn header_len(&self) -> usize {
        match self {
            Transport::Tcp(header) => tcp::MIN_HEADER + header.options.len(),
            Transport::Udp { .. } => udp::HEADER,
            Transport::Icmp { .. } => 8,
            Transport::Protocol(_) => 0,
        }
    }

    fn protocol(&self, v4: bool) -> u8 {
        match self {
            Transport::Tcp(_) => protocol::TCP,
            Transport::Udp { .. } => protocol::UDP,
            Transport::Icmp { .. } if v4 => protocol::ICMPV4,
            Transport::Icmp { .. } => protocol::ICMPV6,
            Transport::Protocol(protocol) => *protocol,
        }
    }
}

impl<'a> FrameBuilder<'a> {
    /// A packet between two addresses without a link header.
    ///
    /// # Panics
    /// When the addresses are of different families.
    pub fn new(
        source: IpAddr,
        destination: IpAddr,
        transport: Transport<'a>,
        payload: Payload<'a>,
    ) -> FrameBuilder<'a> {
        assert_eq!(source.is_ipv4(), destination.is_ipv4(), "addresses of one family");
        let (ethernet, fragment) = (None, None);
        FrameBuilder { ethernet, source, destination, ttl: 64, id: 0, fragment, transport, payload }
    }

    /// The same with an Ethernet header.
    #[must_use]
    pub fn with_ethernet(self, ethernet: Ethernet) -> FrameBuilder<'a> {
        FrameBuilder { ethernet: Some(ethernet), ..self }
    }

    fn link_len(&self) -> usize {
        self.ethernet.map_or(0, |ethernet| if ethernet.vlan.is_some() { 18 } else { 14 })
    }

    fn ip_len(&self) -> usize {
        match (self.source.is_ipv4(), self.fragment.is_some()) {
            (true, _) => 20,
            (false, false) => 40,
            (false, true) => 48,
        }
    }

    /// Bytes of the frame, padding to the shortest Ethernet frame included.
    #[expect(clippy::len_without_is_empty, reason = "a frame is never empty")]
    pub fn len(&self) -> usize {
        let transport = self.transport.header_len() + self.payload.len();
        let len = self.link_len() + self.ip_len() + transport;
        if self.ethernet.is_some() { len.max(MIN_FRAME) } else { len }
    }

    /// The frame as a vector.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut frame = vec![0; self.len()];
        self.write(&mut frame);
        frame
    }

    /// Writes the frame to the start of `out` and returns its length.
    ///
    /// # Panics
    /// When `out` is shorter than [`FrameBuilder::len`], or the packet longer than IP allows.
    #[inline]
    pub fn write(&self, out: &mut [u8]) -> usize {
        let len = self.len();
        let frame = &mut out[..len];
        let l3 = self.write_link(frame);
        let l4 = l3 + self.ip_len();
        let end = l4 + self.transport.header_len() + self.payload.len();
        self.write_ip(&mut frame[l3..l4], end - l4);
        self.write_transport(&mut frame[l4..end]);
        frame[end..].fill(0);
        len
    }

    #[inline]
    fn write_link(&self, frame: &mut [u8]) -> usize {
        let Some(link) = self.ethernet else { return 0 };
        frame[..6].copy_from_slice(&link.destination);
        frame[6..12].copy_from_slice(&link.source);
        let kind = if self.source.is_ipv4() { ethernet::IPV4 } else { ethernet::IPV6 };
        match link.vlan {
            None => {
                put_u16(frame, 12, kind);
                14
            }
            Some(vlan) => {
                put_u16(frame, 12, ethernet::VLAN);
                put_u16(frame, 14, vlan);
                put_u16(frame, 16, kind);
                18
            }
        }
    }

    #[inline]
    fn write_ip(&self, header: &mut [u8], payload: usize) {
        let length = |len: usize| u16::try_from(len).expect("an IP packet has at most 65535 bytes");
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let header: &mut [u8; 20] = header.try_into().expect("an IPv4 header");
                header[0] = 0x45;
                header[1] = 0;
                put_u16(header, 2, length(20 + payload));
                put_u16(header, 4, self.id);
                let fragment = match self.fragment {
                    None => 0x4000,
                    Some((offset, more)) => (offset / 8) | (u16::from(more) << 13),
                };
                put_u16(header, 6, fragment);
                header[8] = self.ttl;
                header[9] = self.transport.protocol(true);
                put_u16(header, 10, 0);
                header[12..16].copy_from_slice(&source.octets());
                header[16..20].copy_from_slice(&destination.octets());
                let sum = checksum::of(header);
                put_u16(header, 10, sum);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                put_u32(header, 0, 0x6000_0000);
                let extension = header.len() - 40;
                put_u16(header, 4, length(extension + payload));
                let inner = self.transport.protocol(false);
                header[6] = if extension > 0 { protocol::FRAGMENT } else { inner };
                header[7] = self.ttl;
                header[8..24].copy_from_slice(&source.octets());
                header[24..40].copy_from_slice(&destination.octets());
                if let Some((offset, more)) = self.fragment {
                    header[40] = inner;
                    header[41] = 0;
                    put_u16(header, 42, offset & !7 | u16::from(more));
                    put_u32(header, 44, self.id.into());
                }
            }
            _ => unreachable!("`new` has checked the families"),
        }
    }

    #[inline]
    fn write_transport(&self, out: &mut [u8]) {
        let (header, body) = out.split_at_mut(self.transport.header_len());
        self.payload.write(body);
        let checksum_at = match self.transport {
            Transport::Tcp(tcp) => {
                put_u16(header, 0, tcp.ports.0);
                put_u16(header, 2, tcp.ports.1);
                put_u32(header, 4, tcp.seq);
                put_u32(header, 8, tcp.ack);
                header[12] = (header.len() as u8 / 4) << 4;
                header[13] = tcp.flags;
                put_u16(header, 14, tcp.window);
                put_u32(header, 16, 0);
                header[20..].copy_from_slice(tcp.options);
                16
            }
            Transport::Udp { ports } => {
                put_u16(header, 0, ports.0);
                put_u16(header, 2, ports.1);
                put_u16(header, 4, (header.len() + body.len()) as u16);
                put_u16(header, 6, 0);
                6
            }
            Transport::Icmp { kind, code, rest } => {
                header[0] = kind;
                header[1] = code;
                put_u16(header, 2, 0);
                put_u32(header, 4, rest);
                2
            }
            Transport::Protocol(_) => return,
        };
        let v4 = self.source.is_ipv4();
        let protocol = self.transport.protocol(v4);
        let mut sum = Sum::default();
        // ICMP for IPv4 is the one whose checksum covers no pseudo header.
        if protocol != protocol::ICMPV4 {
            sum.add_pseudo_header(self.source, self.destination, protocol, out.len() as u32);
        }
        sum.add(out);
        let value = match self.transport {
            Transport::Udp { .. } => checksum::for_udp(sum.checksum()),
            _ => sum.checksum(),
        };
        put_u16(out, checksum_at, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::{Validity, judge};
    use crate::{Headers, LinkType, Tuple};
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    proptest! {
        /// What is built parses back to the same endpoints, with right checksums.
        #[test]
        fn frames_read_back(
            v6: bool, a: u128, b: u128, ports: (u16, u16), kind in 0..3, len in 0_usize..1_400, vlan: bool,
        ) {
            let address = |bits: u128| -> IpAddr {
                if v6 { Ipv6Addr::from_bits(bits).into() } else { Ipv4Addr::from_bits(bits as u32).into() }
            };
            let transport = match kind {
                0 => Transport::Tcp(TcpHeader { ports, options: &[2, 4, 5, 180], ..TcpHeader::default() }),
                1 => Transport::Udp { ports },
                _ => Transport::Icmp { kind: if v6 { 128 } else { 8 }, code: 0, rest: u32::from(ports.0) << 16 },
            };
            let ethernet = Ethernet { source: [2; 6], destination: [4; 6], vlan: vlan.then_some(7) };
            let frame = FrameBuilder::new(address(a), address(b), transport, Payload::Pattern(len))
                .with_ethernet(ethernet)
                .to_vec();
            let headers = Headers::parse_bytes(&frame, frame.len(), LinkType::Ethernet).unwrap();
            let Tuple::Flow(key) = Tuple::of_bytes(&frame, &headers) else { panic!("a flow") };
            prop_assert_eq!((key.first(), key.second()), (address(a), address(b)));
            let expected = if kind == 2 { (ports.0, ports.0) } else { ports };
            prop_assert_eq!((key.first_port(), key.second_port()), expected);
            prop_assert_eq!(key.zone(), if vlan { 7 } else { 0 });
            let body = &frame[usize::from(headers.l4)..headers.end as usize];
            if headers.protocol == 1 {
                prop_assert_eq!(checksum::of(body), 0);
            } else {
                let validity = judge(address(a), address(b), headers.protocol, 1, [body]);
                prop_assert_eq!(validity, Validity::Valid);
            }
        }
    }
}
