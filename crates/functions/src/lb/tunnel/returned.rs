//! ICMP errors about packets in a tunnel, which come from routers between here and the backend. That an
//! outer packet was too big concerns the client: it is told what it may send (RFC 2003, section 4;
//! RFC 2473, section 8.1). Everything needed is in what the error quotes, so no state is kept.

use std::net::IpAddr;

use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_packet::wire::{icmpv4, icmpv6, protocol, udp};
use rheostat_packet::{Headers, LinkType, Network, tuple};

use super::{IPIP, IPV6};
use crate::lb::config::TunnelConfig;

/// An error that is to be sent on to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooBig<'a> {
    /// The service's address, to which the client's packet went.
    pub(crate) vip: IpAddr,
    client: IpAddr,
    /// Bytes of the longest packet that the client may send.
    mtu: u32,
    /// The client's packet, as far as it was quoted.
    quoted: &'a [u8],
}

impl<'a> TooBig<'a> {
    /// What an ICMP error about a tunnelled packet means for the client; `None` when it is another
    /// error, or quotes too little to tell.
    pub(crate) fn of(
        data: &'a [u8],
        headers: &Headers,
        config: &TunnelConfig,
    ) -> Option<TooBig<'a>> {
        let end = data.len().min(headers.end as usize);
        let message = data.get(usize::from(headers.l4)..end)?;
        let rest = u32::from_be_bytes(*message.get(4..)?.first_chunk()?);
        let (reported, outer) = match (headers.network, message.get(..2)?) {
            // The MTU is the second half of the word (RFC 1191, section 4).
            (Network::Ipv4, [icmpv4::UNREACHABLE, 4]) => {
                (rest & 0xffff, icmpv4::embedded(message)?)
            }
            (Network::Ipv6, [icmpv6::PACKET_TOO_BIG, _]) => (rest, icmpv6::embedded(message)?),
            _ => return None,
        };
        let inner = unwrapped(outer, config)?;
        let overhead = (outer.len() - inner.len()) as u32;
        let quoted = parse(inner)?;
        let ends = tuple::addresses(inner, &quoted)?;
        // Never more than a router would have said without the tunnel, and no less than what every path
        // carries (RFC 791, section 3.2; RFC 8200, section 5).
        let least = if quoted.network == Network::Ipv6 { 1_280 } else { 68 };
        let mtu = reported.min(config.mtu.into()).saturating_sub(overhead).max(least);
        Some(TooBig { vip: ends.second(), client: ends.first(), mtu, quoted: inner })
    }

    /// Writes the error to the client, from the IP header on, to the start of `out` and returns its
    /// length; `None` without room.
    pub(crate) fn write(&self, out: &mut [u8]) -> Option<usize> {
        let (kind, code, most) = match self.client {
            IpAddr::V4(_) => (icmpv4::UNREACHABLE, 4, 576 - 28),
            IpAddr::V6(_) => (icmpv6::PACKET_TOO_BIG, 0, 1_280 - 48),
        };
        let quoted = &self.quoted[..self.quoted.len().min(most)];
        let transport = Transport::Icmp { kind, code, rest: self.mtu };
        let error = FrameBuilder::new(self.vip, self.client, transport, Payload::Bytes(quoted));
        let out = out.get_mut(..error.len())?;
        Some(error.write(out))
    }
}

/// The packet inside an outer one that was quoted.
fn unwrapped<'a>(outer: &'a [u8], config: &TunnelConfig) -> Option<&'a [u8]> {
    let headers = parse(outer)?;
    let l4 = usize::from(headers.l4);
    match headers.protocol {
        IPIP | IPV6 => outer.get(l4..),
        protocol::UDP => {
            let port = u16::from_be_bytes(*outer.get(l4 + 2..)?.first_chunk()?);
            if port != config.gue_port {
                return None;
            }
            outer.get(l4 + udp::HEADER..)
        }
        _ => None,
    }
}

/// The headers of a quoted packet, which was longer than what is quoted of it.
fn parse(packet: &[u8]) -> Option<Headers> {
    Headers::parse_bytes(packet, u16::MAX.into(), LinkType::Raw).ok()
}
