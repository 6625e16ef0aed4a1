//! Packets for this machine itself.

use std::net::IpAddr;

use rheostat_base::DropReason;
use rheostat_packet::checksum::{Delta, Validity, evaluate_packet};
use rheostat_packet::wire::protocol::{ICMPV4, ICMPV6, TCP, UDP};
use rheostat_packet::wire::{Ipv4PacketMut, Ipv6PacketMut, icmpv4, icmpv6};
use rheostat_packet::{Headers, LinkType, Mbuf, Network, Tuple};

use rheostat_run::Output;

use super::{Admission, Origin, Path, Stack};

use crate::icmp_error::Problem;
use crate::link::Received;
use crate::local_service::LocalPacket;

/// The time to live of what this machine sends (RFC 1700).
const TTL: u8 = 64;
/// The longest reset.
const RESET: usize = 128;

impl Stack {
    /// Handles a packet for `to`, an address of this machine: answers echo requests, offers the rest to the local services, and
    /// sends an error to the sender when none takes it.
    #[cold]
    #[inline(never)]
    pub(super) fn take_own(
        &mut self,
        packet: &mut Mbuf,
        l3: u8,
        to: IpAddr,
        out: &mut Output,
    ) -> Admission {
        if self.has_tcp && is_plain_tcp(packet, l3, to) {
            return Admission::Transport;
        }
        if to.is_ipv6()
            && let Some(taken) = self.take_discovery(packet, l3, out)
        {
            return taken;
        }
        let Ok(mut headers) = Headers::parse(packet) else {
            return Admission::Drop(DropReason::Malformed);
        };
        if headers.fragment.is_some() {
            if let Some(kept) = self.reassemble(packet, &headers, l3, out) {
                return kept;
            }
            let Ok(of_datagram) = Headers::parse(packet) else {
                return Admission::Drop(DropReason::Malformed);
            };
            headers = of_datagram;
        }
        if self.has_tcp && headers.protocol == TCP {
            return Admission::Transport;
        }
        if matches!(evaluate_packet(packet, &headers), Some(Validity::Invalid)) {
            return Admission::Drop(DropReason::Malformed);
        }
        if self.has_tcp && quotes_tcp(packet, &headers) {
            return Admission::TransportError;
        }
        if is_echo_request(packet, &headers) {
            turn_into_reply(packet, &headers);
            return Admission::Back(Path::unknown(l3, Origin::Own));
        }
        let bytes = packet.to_vec();
        let end = (headers.end as usize).min(bytes.len());
        let (ip, payload) =
            (bytes.get(usize::from(l3)..end), bytes.get(usize::from(headers.l4)..end));
        let (Some(ip), Some(payload)) = (ip, payload) else {
            return Admission::Drop(DropReason::Malformed);
        };
        let Some(hosts) = rheostat_packet::tuple::addresses(&bytes, &headers) else {
            return Admission::Drop(DropReason::Malformed);
        };
        let local = LocalPacket {
            device: packet.device(),
            source: hosts.first(),
            destination: to,
            protocol: headers.protocol,
            packet: ip,
            payload,
        };
        let mut outbox = std::mem::take(&mut self.outbox);
        let is_taken = self.network.deliver(&local, out.now(), &mut outbox);
        self.send_outbox(&mut outbox, out);
        self.outbox = outbox;
        if is_taken {
            return Admission::Consume;
        }
        self.refuse_own(packet, l3, ip, headers.protocol, out);
        Admission::Drop(DropReason::NoListener)
    }

    /// Reports to the sender that its packet has no listener (RFC 1122, section 3.2.2.1; RFC 9293, section 3.10.7.1; RFC 4443,
    /// sections
    /// 3.1 and 3.4).
    fn refuse_own(&mut self, packet: &Mbuf, l3: u8, ip: &[u8], protocol: u8, out: &mut Output) {
        match protocol {
            UDP => self.complain(packet, l3, Problem::NoPort, out),
            // What is not understood of ICMP is ignored (RFC 1122, section 3.2.2).
            ICMPV4 | ICMPV6 => {}
            TCP => {
                let mut reply = [0; RESET];
                let headers = Headers::parse_bytes(ip, ip.len(), LinkType::Raw);
                let received = Received { data: ip, link: LinkType::Raw };
                let reset =
                    headers.ok().and_then(|h| crate::reset::tcp_reset(received, &h, &mut reply));
                if let Some(len) = reset
                    && self.errors.allow(packet.hash(), out.now())
                {
                    self.send_own(packet.device(), &reply[..len], out);
                }
            }
            _ => self.complain(packet, l3, Problem::NoProtocol, out),
        }
    }
}

/// Whether a packet for `to` whose IP header is sound is a whole segment of TCP, without a look beyond that header. Behind
/// extension headers, one is found later.
fn is_plain_tcp(packet: &Mbuf, l3: u8, to: IpAddr) -> bool {
    /// All but the bit that forbids fragments: none of them is set in a whole packet.
    const FRAGMENT: u16 = 0xbfff;
    let header = packet.data().get(usize::from(l3)..).unwrap_or_default();
    match (to, header) {
        (IpAddr::V4(_), [_, _, _, _, _, _, high, low, _, protocol, ..]) => {
            *protocol == TCP && u16::from_be_bytes([*high, *low]) & FRAGMENT == 0
        }
        (IpAddr::V6(_), [_, _, _, _, _, _, next, ..]) => *next == TCP,
        _ => false,
    }
}

/// Whether a packet is an ICMP error about a segment of TCP whose ports it quotes.
fn quotes_tcp(packet: &Mbuf, headers: &Headers) -> bool {
    matches!(Tuple::of(packet, headers), Tuple::IcmpError(key) if key.protocol() == TCP)
}

fn is_echo_request(packet: &Mbuf, headers: &Headers) -> bool {
    let kind = packet.data().get(usize::from(headers.l4)).copied();
    match (headers.network, headers.protocol) {
        (Network::Ipv4, ICMPV4) => kind == Some(icmpv4::ECHO_REQUEST),
        (Network::Ipv6, ICMPV6) => kind == Some(icmpv6::ECHO_REQUEST),
        _ => false,
    }
}

/// Makes of an echo request its reply (RFC 1122, section 3.2.2.6; RFC 4443, section 4.2). Both addresses
/// change places, so that no checksum minds.
fn turn_into_reply(packet: &mut Mbuf, headers: &Headers) {
    let (l3, l4) = (usize::from(headers.l3), usize::from(headers.l4));
    let reply = match headers.network {
        Network::Ipv4 => icmpv4::ECHO_REPLY,
        _ => icmpv6::ECHO_REPLY,
    };
    let data = packet.data_mut();
    let (addresses, len) = match headers.network {
        Network::Ipv4 => (l3 + 12, 4),
        _ => (l3 + 8, 16),
    };
    let Some(pair) = data.get_mut(addresses..addresses + 2 * len) else { return };
    let (from, to) = pair.split_at_mut(len);
    from.swap_with_slice(to);
    if let Some([kind, code, high, low]) = data.get_mut(l4..l4 + 4) {
        let word = |kind: u8| u16::from_be_bytes([kind, *code]);
        let sum = Delta::of_u16(word(*kind), word(reply)).apply(u16::from_be_bytes([*high, *low]));
        *kind = reply;
        [*high, *low] = sum.to_be_bytes();
    }
    let header = data.get_mut(l3..).unwrap_or_default();
    match headers.network {
        Network::Ipv4 => {
            if let Ok(mut ip) = Ipv4PacketMut::new(header) {
                ip.set_ttl(TTL);
            }
        }
        _ => {
            if let Ok(mut ip) = Ipv6PacketMut::new(header) {
                ip.set_hop_limit(TTL);
            }
        }
    }
}
