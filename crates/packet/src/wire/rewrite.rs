//! Other endpoints for a whole packet, as address translation needs them.

use std::net::IpAddr;

use thiserror::Error;

use super::protocol::{DCCP, ICMPV4, ICMPV6, TCP, UDP, UDP_LITE};
use super::{
    End, Icmpv4MessageMut, Icmpv6MessageMut, Ipv4PacketMut, Ipv6PacketMut, TcpSegmentMut,
    UdpDatagramMut,
};
use crate::checksum::Delta;
use crate::malformed::Malformed;
use crate::{Headers, Network};

/// Why a field of a packet cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RewriteError {
    /// The packet is not IP.
    #[error("the packet has no IP header")]
    NotIp,
    /// The new address is of the other version of IP.
    #[error("an address cannot be replaced by one of the other family")]
    Family,
    /// The packet has no ports: its protocol has none, or none that may change without computing a
    /// checksum over all data (SCTP), or it is a later fragment, or an ICMP message without identifier.
    #[error("protocol {0} has no ports here that could be changed")]
    NoPorts(u8),
    /// The transport checksum covers the addresses and is not kept by this code.
    #[error("the checksum of protocol {0} cannot be kept")]
    Checksum(u8),
    /// The value does not fit the field.
    #[error("{0} is too large for the field")]
    TooLarge(u8),
    /// The packet is no TCP segment that states a maximum segment size.
    #[error("the packet states no maximum segment size")]
    NoMss,
    /// The packet is no ICMP error that quotes another packet.
    #[error("the packet quotes no other")]
    Quote,
    /// The headers are not those of these bytes, or were cut off by a capture.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// A packet whose addresses and ports are changed, and with them, incrementally, every checksum that
/// covers them: IP's own, and through the pseudo header that of the transport layer. A checksum that was
/// right stays right, one that was wrong stays wrong by as much, and a UDP datagram without one still
/// has none.
#[derive(Debug)]
pub struct Rewrite<'a> {
    ip: Ip<'a>,
    transport: Transport<'a>,
    protocol: u8,
}

#[derive(Debug)]
enum Ip<'a> {
    V4(Ipv4PacketMut<'a>),
    V6(Ipv6PacketMut<'a>),
}

#[derive(Debug)]
enum Transport<'a> {
    Tcp(TcpSegmentMut<'a>),
    /// UDP-Lite has its fields in the same places.
    Udp(UdpDatagramMut<'a>),
    Icmpv4(Icmpv4MessageMut<'a>),
    Icmpv6(Icmpv6MessageMut<'a>),
    /// Nothing to change above IP.
    Opaque,
}

impl<'a> Rewrite<'a> {
    /// The frame that starts with `data` and has these headers. All headers must be in `data`.
    ///
    /// # Errors
    /// [`RewriteError`] unless the packet is IP and its checksums can be kept.
    #[inline]
    pub fn new(data: &'a mut [u8], headers: &Headers) -> Result<Rewrite<'a>, RewriteError> {
        let (l3, l4) = (usize::from(headers.l3), usize::from(headers.l4));
        let (front, transport) = data.split_at_mut_checked(l4).ok_or(RewriteError::NotIp)?;
        let ip = front.get_mut(l3..).ok_or(RewriteError::NotIp)?;
        let ip = match headers.network {
            Network::Ipv4 => Ip::V4(Ipv4PacketMut::new(ip)?),
            Network::Ipv6 => Ip::V6(Ipv6PacketMut::new(ip)?),
            Network::Arp | Network::Other => return Err(RewriteError::NotIp),
        };
        let later = headers.fragment.is_some_and(|fragment| fragment.offset > 0);
        let protocol = headers.protocol;
        let transport = match (protocol, &ip) {
            // The transport header is in the first fragment.
            _ if later => Transport::Opaque,
            (TCP, _) => Transport::Tcp(TcpSegmentMut::new(transport)?),
            (UDP | UDP_LITE, _) => Transport::Udp(UdpDatagramMut::new(transport)?),
            (ICMPV4, Ip::V4(_)) => Transport::Icmpv4(Icmpv4MessageMut::new(transport)?),
            (ICMPV6, Ip::V6(_)) => Transport::Icmpv6(Icmpv6MessageMut::new(transport)?),
            (DCCP, _) => return Err(RewriteError::Checksum(protocol)),
            _ => Transport::Opaque,
        };
        Ok(Rewrite { ip, transport, protocol })
    }

    /// Sets the address the packet comes from.
    ///
    /// # Errors
    /// [`RewriteError::Family`].
    #[inline]
    pub fn set_source(&mut self, address: IpAddr) -> Result<(), RewriteError> {
        self.set_address(End::Source, address)
    }

    /// Sets the address the packet goes to.
    ///
    /// # Errors
    /// [`RewriteError::Family`].
    #[inline]
    pub fn set_destination(&mut self, address: IpAddr) -> Result<(), RewriteError> {
        self.set_address(End::Destination, address)
    }

    /// Sets the source port, or the identifier of an ICMP query.
    ///
    /// # Errors
    /// [`RewriteError::NoPorts`].
    #[inline]
    pub fn set_source_port(&mut self, port: u16) -> Result<(), RewriteError> {
        self.set_port(End::Source, port)
    }

    /// Sets the destination port, or the identifier of an ICMP query.
    ///
    /// # Errors
    /// [`RewriteError::NoPorts`].
    #[inline]
    pub fn set_destination_port(&mut self, port: u16) -> Result<(), RewriteError> {
        self.set_port(End::Destination, port)
    }

    #[inline]
    fn set_address(&mut self, end: End, address: IpAddr) -> Result<(), RewriteError> {
        let delta: Delta = match (&mut self.ip, end, address) {
            (Ip::V4(ip), End::Source, IpAddr::V4(address)) => ip.set_source(address),
            (Ip::V4(ip), End::Destination, IpAddr::V4(address)) => ip.set_destination(address),
            (Ip::V6(ip), End::Source, IpAddr::V6(address)) => ip.set_source(address),
            (Ip::V6(ip), End::Destination, IpAddr::V6(address)) => ip.set_destination(address),
            _ => return Err(RewriteError::Family),
        };
        match &mut self.transport {
            Transport::Tcp(tcp) => tcp.adjust(delta),
            Transport::Udp(udp) => udp.adjust(delta),
            Transport::Icmpv6(icmp) => icmp.adjust(delta),
            // No pseudo header.
            Transport::Icmpv4(_) | Transport::Opaque => {}
        }
        Ok(())
    }

    #[inline]
    fn set_port(&mut self, end: End, port: u16) -> Result<(), RewriteError> {
        let set = match (&mut self.transport, end) {
            (Transport::Tcp(tcp), End::Source) => {
                tcp.set_source_port(port);
                true
            }
            (Transport::Tcp(tcp), End::Destination) => {
                tcp.set_destination_port(port);
                true
            }
            (Transport::Udp(udp), End::Source) => {
                udp.set_source_port(port);
                true
            }
            (Transport::Udp(udp), End::Destination) => {
                udp.set_destination_port(port);
                true
            }
            (Transport::Icmpv4(icmp), _) => icmp.set_query_id(port),
            (Transport::Icmpv6(icmp), _) => icmp.set_query_id(port),
            (Transport::Opaque, _) => false,
        };
        if set { Ok(()) } else { Err(RewriteError::NoPorts(self.protocol)) }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;
    use crate::build::{FrameBuilder, Payload, TcpHeader, Transport as Built};
    use crate::{LinkType, Tuple};

    fn parse(frame: &[u8]) -> Headers {
        Headers::parse_bytes(frame, frame.len(), LinkType::Raw).unwrap()
    }

    fn address(v6: bool, bits: u128) -> IpAddr {
        if v6 { Ipv6Addr::from_bits(bits).into() } else { Ipv4Addr::from_bits(bits as u32).into() }
    }

    fn transport(kind: usize, v6: bool, ports: (u16, u16)) -> Built<'static> {
        match kind {
            0 => Built::Tcp(TcpHeader { ports, seq: 99, ..TcpHeader::default() }),
            1 => Built::Udp { ports },
            _ => {
                let kind = if v6 { 128 } else { 8 };
                Built::Icmp { kind, code: 0, rest: u32::from(ports.0) << 16 | 5 }
            }
        }
    }

    proptest! {
        #![proptest_config(crate::cases::config())]

        /// A rewritten packet is the packet that would have been built with the new endpoints.
        #[test]
        fn rewriting_is_building_anew(
            v6: bool,
            kind in 0_usize..3,
            (a, b, c, d) in any::<(u128, u128, u128, u128)>(),
            (from, to, new_from, new_to) in any::<(u16, u16, u16, u16)>(),
            len in 0_usize..64,
        ) {
            let new_to = if kind == 2 { new_from } else { new_to };
            let payload = Payload::Pattern(len);
            let old = transport(kind, v6, (from, to));
            let mut frame =
                FrameBuilder::new(address(v6, a), address(v6, b), old, payload).to_vec();
            let headers = parse(&frame);
            let mut rewrite = Rewrite::new(&mut frame, &headers).unwrap();
            rewrite.set_source(address(v6, c)).unwrap();
            rewrite.set_destination(address(v6, d)).unwrap();
            rewrite.set_source_port(new_from).unwrap();
            rewrite.set_destination_port(new_to).unwrap();
            let new = transport(kind, v6, (new_from, new_to));
            let expected =
                FrameBuilder::new(address(v6, c), address(v6, d), new, payload).to_vec();
            prop_assert_eq!(frame, expected);
        }
    }

    #[test]
    fn udp_without_checksum_keeps_none() {
        let (a, b) = (address(false, 1), address(false, 2));
        let udp = Built::Udp { ports: (1, 2) };
        let mut frame = FrameBuilder::new(a, b, udp, Payload::Pattern(9)).to_vec();
        frame[26..28].fill(0);
        let headers = parse(&frame);
        let mut rewrite = Rewrite::new(&mut frame, &headers).unwrap();
        rewrite.set_source(address(false, 0x0102_0304)).unwrap();
        rewrite.set_source_port(77).unwrap();
        assert_eq!(frame[26..28], [0, 0]);
        let Tuple::Flow(key) = Tuple::of_bytes(&frame, &headers) else { panic!("a flow") };
        assert_eq!((key.first(), key.first_port()), (address(false, 0x0102_0304), 77));
    }

    #[test]
    fn what_cannot_be_rewritten_is_refused() {
        let (a, b) = (address(false, 1), address(false, 2));
        let gre = FrameBuilder::new(a, b, Built::Protocol(47), Payload::Pattern(9));
        let mut frame = gre.to_vec();
        let headers = parse(&frame);
        let mut rewrite = Rewrite::new(&mut frame, &headers).unwrap();
        assert_eq!(rewrite.set_source_port(1), Err(RewriteError::NoPorts(47)));
        assert_eq!(rewrite.set_source(address(true, 1)), Err(RewriteError::Family));
        assert_eq!(rewrite.set_source(b), Ok(()));

        let later =
            FrameBuilder { transport: Built::Protocol(TCP), fragment: Some((64, false)), ..gre };
        let mut frame = later.to_vec();
        let headers = parse(&frame);
        let mut rewrite = Rewrite::new(&mut frame, &headers).unwrap();
        assert_eq!(rewrite.set_destination_port(1), Err(RewriteError::NoPorts(TCP)));

        let error = Built::Icmp { kind: 3, code: 1, rest: 0 };
        let mut frame = FrameBuilder { transport: error, ..gre }.to_vec();
        let headers = parse(&frame);
        let mut rewrite = Rewrite::new(&mut frame, &headers).unwrap();
        assert_eq!(rewrite.set_source_port(1), Err(RewriteError::NoPorts(ICMPV4)));

        let headers = Headers { network: Network::Arp, ..headers };
        assert_eq!(Rewrite::new(&mut frame, &headers).unwrap_err(), RewriteError::NotIp);
        let headers = Headers { network: Network::Ipv4, protocol: DCCP, ..headers };
        assert_eq!(Rewrite::new(&mut frame, &headers).unwrap_err(), RewriteError::Checksum(DCCP));
    }
}
