//! Transport headers and their checksums.

use super::FrameBuilder;
use crate::checksum::{Sum, for_udp};
use crate::wire::field::{put_u16, put_u32};
use crate::wire::{protocol, tcp, udp};

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
    /// Urgent pointer.
    pub urgent: u16,
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
    /// An ICMP or ICMPv6 message, as the address family has it. The payload of an error is the packet
    /// it is about, as far as it quotes it.
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

/// Bytes of an ICMP header of either kind.
const ICMP_HEADER: usize = 8;

impl Transport<'_> {
    #[inline]
    pub(super) fn header_len(&self) -> usize {
        match self {
            Transport::Tcp(header) => tcp::MIN_HEADER + header.options.len(),
            Transport::Udp { .. } => udp::HEADER,
            Transport::Icmp { .. } => ICMP_HEADER,
            Transport::Protocol(_) => 0,
        }
    }

    #[inline]
    pub(super) fn protocol(&self, v4: bool) -> u8 {
        match self {
            Transport::Tcp(_) => protocol::TCP,
            Transport::Udp { .. } => protocol::UDP,
            Transport::Icmp { .. } if v4 => protocol::ICMPV4,
            Transport::Icmp { .. } => protocol::ICMPV6,
            Transport::Protocol(protocol) => *protocol,
        }
    }
}

impl FrameBuilder<'_> {
    /// Writes the transport header and the payload, which together fill `out`.
    #[inline]
    pub(super) fn write_transport(&self, out: &mut [u8]) {
        let len = out.len();
        let (header, body) = out.split_at_mut(self.transport.header_len());
        self.payload.write(body);
        match self.transport {
            Transport::Tcp(tcp) => {
                let header_len = header.len();
                assert!(
                    header_len.is_multiple_of(4) && header_len <= 60,
                    "options are padded to words, 40 bytes at most"
                );
                let mut fixed = [0; tcp::MIN_HEADER];
                put_ports(&mut fixed, tcp.ports);
                put_u32(&mut fixed, 4, tcp.seq);
                put_u32(&mut fixed, 8, tcp.ack);
                fixed[12] = ((header_len / 4) << 4) as u8;
                fixed[13] = tcp.flags;
                put_u16(&mut fixed, 14, tcp.window);
                put_u16(&mut fixed, 18, tcp.urgent);
                let sum = self.sum_of(protocol::TCP, &fixed, tcp.options, len);
                put_u16(&mut fixed, 16, sum.checksum());
                header[..tcp::MIN_HEADER].copy_from_slice(&fixed);
                header[tcp::MIN_HEADER..].copy_from_slice(tcp.options);
            }
            Transport::Udp { ports } => {
                let mut fixed = [0; udp::HEADER];
                put_ports(&mut fixed, ports);
                put_u16(&mut fixed, 4, len as u16);
                let sum = self.sum_of(protocol::UDP, &fixed, &[], len);
                put_u16(&mut fixed, 6, for_udp(sum.checksum()));
                header.copy_from_slice(&fixed);
            }
            Transport::Icmp { kind, code, rest } => {
                let mut fixed = [kind, code, 0, 0, 0, 0, 0, 0];
                put_u32(&mut fixed, 4, rest);
                let protocol = self.transport.protocol(self.source.is_ipv4());
                let sum = self.sum_of(protocol, &fixed, &[], len);
                put_u16(&mut fixed, 2, sum.checksum());
                header.copy_from_slice(&fixed);
            }
            Transport::Protocol(_) => {}
        }
    }

    /// The sum of the pseudo header, the transport header and the payload.
    #[inline]
    fn sum_of<const N: usize>(
        &self,
        protocol: u8,
        header: &[u8; N],
        options: &[u8],
        len: usize,
    ) -> Sum {
        let mut sum = Sum::default();
        sum.add(header);
        if !options.is_empty() {
            sum.add(options);
        }
        // ICMP for IPv4 is the one whose checksum covers no pseudo header.
        if protocol != protocol::ICMPV4 {
            sum.add_pseudo_header(self.source, self.destination, protocol, len as u32);
        }
        sum.add_sum(self.payload.sum());
        sum
    }
}

#[inline]
fn put_ports(header: &mut [u8], (source, destination): (u16, u16)) {
    put_u16(header, 0, source);
    put_u16(header, 2, destination);
}
