//! The packet that an ICMP error quotes, to be given other endpoints.
//!
//! A translator that changes a flow's endpoints must change them in the errors about its packets, too,
//! or the receiver would not know what they are about (RFC 5508, section 4.2). Every checksum is kept:
//! those of the quoted packet, as far as they were quoted, and the error's own, which covers them.

use std::net::IpAddr;

use super::field::{put_u16, u16_at};
use super::ipv6_extension::{self, Extensions};
use super::protocol::{ICMPV4, ICMPV6, TCP, UDP, UDP_LITE};
use super::rewrite::RewriteError;
use super::{Ipv4Packet, Ipv6Packet, icmpv4, icmpv6, ipv6};
use crate::checksum::Delta;
use crate::{Headers, Network};

/// Bytes of the error before the packet it quotes.
const QUOTE: usize = 8;
const CHECKSUM: usize = 2;

/// The packet quoted in an ICMP error.
#[derive(Debug)]
pub struct Quoted<'a> {
    /// The whole error from its type on, as far as it was captured.
    message: &'a mut [u8],
    is_v6: bool,
    protocol: u8,
    /// Where the quoted transport header starts, if it is there.
    transport: Option<usize>,
}

#[derive(Clone, Copy)]
enum QuotedEnd {
    Source,
    Destination,
}

impl<'a> Quoted<'a> {
    /// The packet quoted in the ICMP error that starts with `data` and has these headers.
    ///
    /// # Errors
    /// [`RewriteError::Quote`] when it is no such error, or the packet's IP header was not quoted.
    pub fn new(data: &'a mut [u8], headers: &Headers) -> Result<Quoted<'a>, RewriteError> {
        let end = data.len().min(headers.end as usize);
        let message = data.get_mut(usize::from(headers.l4)..end).ok_or(RewriteError::Quote)?;
        let is_v6 = match (headers.network, headers.protocol) {
            (Network::Ipv4, ICMPV4) => false,
            (Network::Ipv6, ICMPV6) => true,
            _ => return Err(RewriteError::Quote),
        };
        let found = match is_v6 {
            false => icmpv4::embedded(message).and_then(transport_v4),
            true => icmpv6::embedded(message).and_then(transport_v6),
        };
        let (protocol, transport) = found.ok_or(RewriteError::Quote)?;
        Ok(Quoted { message, is_v6, protocol, transport })
    }

    /// Sets the endpoint that the packet came from.
    ///
    /// # Errors
    /// [`RewriteError::Family`] when the address is of the other version of IP.
    pub fn set_source(&mut self, address: IpAddr, port: u16) -> Result<(), RewriteError> {
        self.set(QuotedEnd::Source, address, port)
    }

    /// Sets the endpoint that the packet went to.
    ///
    /// # Errors
    /// [`RewriteError::Family`] when the address is of the other version of IP.
    pub fn set_destination(&mut self, address: IpAddr, port: u16) -> Result<(), RewriteError> {
        self.set(QuotedEnd::Destination, address, port)
    }

    fn set(&mut self, end: QuotedEnd, address: IpAddr, port: u16) -> Result<(), RewriteError> {
        let addresses = self.set_address(end, address)?;
        let ports = self.set_port(end, port);
        let of_checksum = self.adjust_transport(addresses, ports);
        // What changed in the quote changes the checksum of the error.
        let old = u16_at(self.message, CHECKSUM);
        let new = addresses.and(ports).and(of_checksum).and(self.adjust_header(addresses));
        put_u16(self.message, CHECKSUM, new.apply(old));
        Ok(())
    }

    /// Sets an address of the quoted packet, and nothing else.
    fn set_address(&mut self, end: QuotedEnd, address: IpAddr) -> Result<Delta, RewriteError> {
        match (self.is_v6, address) {
            (false, IpAddr::V4(address)) => {
                let at = QUOTE + if matches!(end, QuotedEnd::Source) { 12 } else { 16 };
                let field = &mut self.message[at..at + 4];
                let old = field.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
                field.copy_from_slice(&address.octets());
                Ok(Delta::of_u32(old, address.to_bits()))
            }
            (true, IpAddr::V6(address)) => {
                let at = QUOTE + if matches!(end, QuotedEnd::Source) { 8 } else { 24 };
                let field = &mut self.message[at..at + 16];
                let old = field.iter().fold(0, |word, byte| word << 8 | u128::from(*byte));
                field.copy_from_slice(&address.octets());
                Ok(Delta::of_u128(old, address.to_bits()))
            }
            _ => Err(RewriteError::Family),
        }
    }

    /// Sets a port of the quoted packet, or the identifier of a quoted query, and nothing else.
    fn set_port(&mut self, end: QuotedEnd, port: u16) -> Delta {
        let Some(transport) = self.transport else { return Delta::default() };
        let at = match (self.protocol, end) {
            (TCP | UDP | UDP_LITE, QuotedEnd::Source) => transport,
            (TCP | UDP | UDP_LITE, QuotedEnd::Destination) => transport + 2,
            (ICMPV4 | ICMPV6, _) => transport + 4,
            _ => return Delta::default(),
        };
        if at + 2 > self.message.len() {
            return Delta::default();
        }
        let old = u16_at(self.message, at);
        put_u16(self.message, at, port);
        Delta::of_u16(old, port)
    }

    /// Keeps the quoted IPv4 header's checksum; what that changes in turn.
    fn adjust_header(&mut self, addresses: Delta) -> Delta {
        if self.is_v6 {
            return Delta::default();
        }
        let at = QUOTE + 10;
        let old = u16_at(self.message, at);
        let new = addresses.apply(old);
        put_u16(self.message, at, new);
        Delta::of_u16(old, new)
    }

    /// Keeps the quoted transport checksum, if it was quoted; what that changes in turn.
    fn adjust_transport(&mut self, addresses: Delta, ports: Delta) -> Delta {
        let Some(transport) = self.transport else { return Delta::default() };
        let (at, delta) = match self.protocol {
            TCP => (transport + 16, addresses.and(ports)),
            UDP | UDP_LITE => (transport + 6, addresses.and(ports)),
            ICMPV4 => (transport + 2, ports),
            ICMPV6 => (transport + 2, addresses.and(ports)),
            _ => return Delta::default(),
        };
        if at + 2 > self.message.len() {
            return Delta::default();
        }
        let old = u16_at(self.message, at);
        let is_udp = matches!(self.protocol, UDP | UDP_LITE);
        let new = if is_udp { delta.apply_udp(old) } else { delta.apply(old) };
        put_u16(self.message, at, new);
        Delta::of_u16(old, new)
    }
}

/// The protocol of a quoted packet, and where in the error its transport header starts, if it does.
fn transport_v4(packet: &[u8]) -> Option<(u8, Option<usize>)> {
    let ip = Ipv4Packet::new(packet).ok()?;
    let starts = ip.fragment_offset() == 0;
    Some((ip.protocol(), starts.then_some(QUOTE + ip.header_len())))
}

fn transport_v6(packet: &[u8]) -> Option<(u8, Option<usize>)> {
    let ip = Ipv6Packet::new(packet).ok()?;
    let mut protocol = ip.next_header();
    let mut rest = packet.get(ipv6::HEADER..)?;
    if ipv6_extension::is_extension(protocol) {
        let mut extensions = Extensions::new(protocol, rest);
        for extension in extensions.by_ref() {
            if extension.ok()?.fragment().is_some_and(|fragment| fragment.offset > 0) {
                return Some((protocol, None));
            }
        }
        protocol = extensions.protocol();
        rest = extensions.rest();
    }
    Some((protocol, Some(QUOTE + packet.len() - rest.len())))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;
    use crate::build::{FrameBuilder, Payload, TcpHeader, Transport};
    use crate::{LinkType, Tuple};

    fn address(v6: bool, bits: u128) -> IpAddr {
        if v6 { Ipv6Addr::from_bits(bits).into() } else { Ipv4Addr::from_bits(bits as u32).into() }
    }

    /// A packet between these ends.
    fn packet(kind: usize, from: (IpAddr, u16), to: (IpAddr, u16), payload: usize) -> Vec<u8> {
        let ports = (from.1, to.1);
        let v6 = from.0.is_ipv6();
        let transport = match kind {
            0 => Transport::Tcp(TcpHeader { ports, seq: 99, ..TcpHeader::default() }),
            1 => Transport::Udp { ports },
            _ => {
                let kind = if v6 { 128 } else { 8 };
                Transport::Icmp { kind, code: 0, rest: u32::from(from.1) << 16 | 5 }
            }
        };
        FrameBuilder::new(from.0, to.0, transport, Payload::Pattern(payload)).to_vec()
    }

    fn error(v6: bool, quote: &[u8]) -> Vec<u8> {
        let (router, host) = (address(v6, 77), address(v6, 78));
        let kind = if v6 { 1 } else { 3 };
        let transport = Transport::Icmp { kind, code: 1, rest: 0 };
        FrameBuilder::new(router, host, transport, Payload::Bytes(quote)).to_vec()
    }

    proptest! {
        #![proptest_config(crate::cases::config())]

        /// An error whose quote is rewritten is the error about the packet that would have been built
        /// with the new endpoints.
        #[test]
        fn a_rewritten_quote_is_that_of_the_other_packet(
            v6: bool,
            kind in 0_usize..3,
            ends in any::<[(u128, u16); 2]>(),
            new in any::<(u128, u16)>(),
            source: bool,
            payload in 0_usize..40,
            // Past the ports, but not always as far as the checksum.
            shown in 8_usize..70,
        ) {
            // Half a quoted checksum stays as it is: without the other half, its new value is not known.
            prop_assume!(kind != 0 || shown != 17);
            let end = |(bits, port)| (address(v6, bits), port);
            let [from, mut to] = ends.map(end);
            let new = end(new);
            if kind == 2 {
                to.1 = from.1;
            }
            let cut = |packet: Vec<u8>| {
                let header = if v6 { 40 } else { 20 };
                packet[..packet.len().min(header + shown)].to_vec()
            };
            let mut frame = error(v6, &cut(packet(kind, from, to, payload)));
            let headers = Headers::parse_bytes(&frame, frame.len(), LinkType::Raw).unwrap();
            let mut quoted = Quoted::new(&mut frame, &headers).unwrap();
            let expected = if source {
                quoted.set_source(new.0, new.1).unwrap();
                let other = if kind == 2 { (to.0, new.1) } else { to };
                packet(kind, new, other, payload)
            } else {
                quoted.set_destination(new.0, new.1).unwrap();
                let other = if kind == 2 { (from.0, new.1) } else { from };
                packet(kind, other, new, payload)
            };
            prop_assert_eq!(&frame, &error(v6, &cut(expected)));
            let Tuple::IcmpError(key) = Tuple::of_bytes(&frame, &headers) else {
                return Err(TestCaseError::fail("an error"));
            };
            prop_assert_eq!(if source { key.second() } else { key.first() }, new.0);
        }
    }

    #[test]
    fn what_quotes_nothing_is_refused() {
        let mut frame = error(false, &[0x45; 12]);
        let headers = Headers::parse_bytes(&frame, frame.len(), LinkType::Raw).unwrap();
        assert_eq!(Quoted::new(&mut frame, &headers).unwrap_err(), RewriteError::Quote);
        let (from, to) = ((address(false, 1), 5), (address(false, 2), 6));
        let mut frame = packet(1, from, to, 9);
        let headers = Headers::parse_bytes(&frame, frame.len(), LinkType::Raw).unwrap();
        assert_eq!(Quoted::new(&mut frame, &headers).unwrap_err(), RewriteError::Quote);
        let mut frame = error(false, &packet(1, from, to, 9));
        let headers = Headers::parse_bytes(&frame, frame.len(), LinkType::Raw).unwrap();
        let mut quoted = Quoted::new(&mut frame, &headers).unwrap();
        assert_eq!(quoted.set_source(address(true, 1), 5), Err(RewriteError::Family));
    }
}
