//! What the load balancer sends itself: to clients whose packets are too big for a tunnel or whose backend is down, and to
//! hosts that send echo requests to a service's address.

use rheostat_ip::{Unreachable, unreachable};
use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_packet::checksum::Delta;
use rheostat_packet::wire::{icmpv4, icmpv6, ipv4, ipv6, protocol};
use rheostat_packet::{Headers, LinkType, Mbuf, Network, tuple};

use super::Lb;
use super::shard::LbShard;
use rheostat_nf::Cx;
use rheostat_nf::Outcome;
use rheostat_nf::Packet;

/// Bytes of the shortest Ethernet frame.
pub(super) const LEAST_FRAME: usize = 60;

impl Lb {
    /// Tells the sender of a packet how long it may be: `mtu` bytes.
    pub(super) fn too_big(
        &self,
        cx: &mut Cx<'_, LbShard>,
        packet: &Packet<'_>,
        mtu: u32,
    ) -> Outcome<()> {
        let now = cx.now();
        if !cx.shard().may_report(now) {
            return Ok(());
        }
        let (mbuf, headers) = (packet.mbuf(), packet.headers());
        cx.originate_like(packet, rheostat_ip::LONGEST_ANSWER, |out| {
            too_big(mbuf, headers, mtu, out)
        })
    }

    /// Resets a client's connection.
    pub(super) fn reset(&self, cx: &mut Cx<'_, LbShard>, packet: &Packet<'_>) -> Outcome<()> {
        let now = cx.now();
        if !cx.shard().may_report(now) {
            return Ok(());
        }
        let (mbuf, headers) = (packet.mbuf(), packet.headers());
        cx.originate_like(packet, 256, |out| rheostat_ip::tcp_reset(mbuf.into(), headers, out))
    }

    /// Answers an echo request to a service's address.
    pub(super) fn echo(&self, cx: &mut Cx<'_, LbShard>, packet: &Packet<'_>) -> Outcome<()> {
        let now = cx.now();
        // An answer has to fit into one buffer, as the request does.
        if packet.mbuf().is_chained() || !cx.shard().may_echo(now) {
            return Ok(());
        }
        cx.shard().counts.echoes += 1;
        let (mbuf, headers) = (packet.mbuf(), packet.headers());
        let capacity = packet.len().max(rheostat_ip::LONGEST_ANSWER);
        cx.originate_like(packet, capacity, |out| echo_reply(mbuf, headers, out))
    }
}

/// Whether a packet asks for an echo (RFC 792; RFC 4443, section 4.1). A fragment does not.
pub(super) fn is_echo_request(packet: &Packet<'_>) -> bool {
    let headers = packet.headers();
    let kind = packet.data().get(usize::from(headers.l4)).copied();
    let wanted = match (headers.network, headers.protocol) {
        (Network::Ipv4, protocol::ICMPV4) => icmpv4::ECHO_REQUEST,
        (Network::Ipv6, protocol::ICMPV6) => icmpv6::ECHO_REQUEST,
        _ => return false,
    };
    headers.fragment.is_none() && kind == Some(wanted)
}

/// Writes "fragmentation needed and DF set" with the MTU (RFC 792; RFC 1191, section 4), or "packet too
/// big" (RFC 4443, section 3.2), in answer to `packet` to `out` and returns its length. `None` when there
/// must be no answer.
fn too_big(packet: &Mbuf, headers: &Headers, mtu: u32, out: &mut [u8]) -> Option<usize> {
    // The receivers, limits and quotes of errors are the same for all; only this one's first words differ.
    let len = unreachable(packet.into(), headers, Unreachable::Prohibited, out)?;
    let (header, kind) = match headers.network {
        Network::Ipv4 => (ipv4::MIN_HEADER, [icmpv4::UNREACHABLE, 4]),
        _ => (ipv6::HEADER, [icmpv6::PACKET_TOO_BIG, 0]),
    };
    let message: &mut [u8; 8] =
        out.get_mut(usize::from(headers.l3) + header..)?.first_chunk_mut()?;
    let [a, b, c, d, ..] = *message;
    let change = Delta::of_u16(u16::from_be_bytes([a, b]), u16::from_be_bytes(kind))
        .and(Delta::of_u32(0, mtu));
    message[..2].copy_from_slice(&kind);
    message[2..4].copy_from_slice(&change.apply(u16::from_be_bytes([c, d])).to_be_bytes());
    message[4..].copy_from_slice(&mtu.to_be_bytes());
    Some(len)
}

/// Writes the reply to an echo request to `out` and returns its length; `None` when there must be none,
/// or no room for it.
fn echo_reply(packet: &Mbuf, headers: &Headers, out: &mut [u8]) -> Option<usize> {
    let (l3, l4) = (usize::from(headers.l3), usize::from(headers.l4));
    let ends = tuple::addresses(packet.data(), headers)?;
    let message = packet.data().get(l4..headers.end as usize)?;
    let (header, data) = message.split_first_chunk::<8>()?;
    let [.., a, b, c, d] = *header;
    let kind = match headers.network {
        Network::Ipv4 => icmpv4::ECHO_REPLY,
        _ => icmpv6::ECHO_REPLY,
    };
    let transport = Transport::Icmp { kind, code: 0, rest: u32::from_be_bytes([a, b, c, d]) };
    let (from, to) = (ends.second(), ends.first());
    let reply = FrameBuilder::new(from, to, transport, Payload::Bytes(data));
    // The link header of the reply is that of an error to the same sender, and there is none where no
    // error may be sent.
    unreachable(packet.into(), headers, Unreachable::Prohibited, out)?;
    let body = out.get_mut(l3..).filter(|body| body.len() >= reply.len())?;
    let len = l3 + reply.write(body);
    Some(padded(packet, out, len))
}

/// Pads an Ethernet frame of `len` bytes to the least length.
pub(super) fn padded(packet: &Mbuf, out: &mut [u8], len: usize) -> usize {
    if packet.link() != LinkType::Ethernet || len >= LEAST_FRAME || out.len() < LEAST_FRAME {
        return len;
    }
    out[len..LEAST_FRAME].fill(0);
    LEAST_FRAME
}
