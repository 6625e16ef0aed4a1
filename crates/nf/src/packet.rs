//! A packet as a handler sees it.

mod change;
#[cfg(test)]
mod tests;

use rheostat_base::{DeviceId, Time};
use rheostat_packet::wire::{Ipv4Packet, Ipv6Packet, TcpSegment, UdpDatagram, protocol, udp};
use rheostat_packet::{FlowKey, Headers, Mbuf, Network, Tuple, tuple};
use rheostat_run::{PacketInfo, PacketKind};
use rheostat_steer::Side;

use crate::packet_log::{LogMark, PacketLog};
use crate::usual_tcp::UsualTcp;

/// One packet with its layers and its flow's key. Headers are read through views, and changed by setters
/// that keep every checksum right; raw bytes cannot be written.
#[derive(Debug)]
pub struct Packet<'a> {
    mbuf: &'a mut Mbuf,
    info: &'a PacketInfo,
    /// Whether a function has changed addresses or ports.
    rewritten: bool,
    /// Where it is kept what the packet was before it is changed, if it may have to be so again.
    log: Option<&'a mut PacketLog>,
}

impl<'a> Packet<'a> {
    /// A packet with the information that the runtime has about it.
    #[inline]
    pub fn new(mbuf: &'a mut Mbuf, info: &'a PacketInfo) -> Packet<'a> {
        Packet { mbuf, info, rewritten: false, log: None }
    }

    /// The same packet behind functions that have changed addresses or ports, if `rewritten`.
    #[inline]
    pub(crate) fn behind(mbuf: &'a mut Mbuf, info: &'a PacketInfo, rewritten: bool) -> Packet<'a> {
        Packet { rewritten, ..Packet::new(mbuf, info) }
    }

    /// Whether a function has changed addresses or ports.
    #[inline]
    pub(crate) fn is_rewritten(&self) -> bool {
        self.rewritten
    }

    /// A packet whose changes can be undone by `log`.
    #[inline]
    pub(crate) fn logged(
        mbuf: &'a mut Mbuf,
        info: &'a PacketInfo,
        log: &'a mut PacketLog,
    ) -> Packet<'a> {
        Packet { mbuf, info, rewritten: false, log: Some(log) }
    }

    /// Lets `change` see the packet with a log by which its changes can be undone.
    pub(crate) fn with_log<T>(
        &mut self,
        log: &mut PacketLog,
        change: impl FnOnce(&mut Packet<'_>) -> T,
    ) -> T {
        let (rewritten, log) = (self.rewritten, Some(log));
        let mut logged = Packet { mbuf: &mut *self.mbuf, info: self.info, rewritten, log };
        let result = change(&mut logged);
        self.rewritten = logged.rewritten;
        result
    }

    /// What the runtime has found out about the packet.
    pub(crate) fn info(&self) -> &'a PacketInfo {
        self.info
    }

    /// Lets `see` have the packet as one that has arrived as it is now, with other information about it.
    pub(crate) fn with_info<T>(
        &mut self,
        info: &PacketInfo,
        see: impl FnOnce(&mut Packet<'_>) -> T,
    ) -> T {
        let log = self.log.as_deref_mut();
        let mut other = Packet { mbuf: &mut *self.mbuf, info, rewritten: false, log };
        let result = see(&mut other);
        self.rewritten |= other.rewritten;
        result
    }

    /// Makes the packet what it was when this much of its changes had been kept in the log.
    pub(crate) fn go_back_to(&mut self, log: &mut PacketLog, mark: LogMark) {
        log.undo_to(mark, std::slice::from_mut(self.mbuf));
    }

    /// Keeps the first `count` bytes, which are about to be changed.
    #[inline]
    fn keep(&mut self, count: usize) {
        if let Some(log) = &mut self.log {
            log.keep(self.mbuf, count);
        }
    }

    /// The key of the flow, inside endpoint first, as the packet is now: once a function has rewritten
    /// it, with its new addresses and ports. (A later fragment then has no ports in it.)
    #[inline]
    pub fn key(&self) -> FlowKey {
        if self.rewritten { self.rewritten_key() } else { self.info.key() }
    }

    /// The key under which the packet arrived, whatever has become of it.
    #[inline]
    pub fn arrival_key(&self) -> FlowKey {
        self.info.key()
    }

    #[cold]
    fn rewritten_key(&self) -> FlowKey {
        let headers = self.headers();
        let fragment = headers.fragment.filter(|fragment| fragment.offset > 0);
        match Tuple::of_bytes(self.mbuf.data(), &Headers { fragment, ..*headers }) {
            Tuple::Flow(key) | Tuple::IcmpError(key) | Tuple::Fragment(key, _) => {
                if self.is_forward() { key } else { key.reversed() }
            }
            Tuple::None => self.info.key(),
        }
    }

    /// The packet's own addresses, source first, without ports: for an ICMP error not those of the
    /// packet it quotes. `None` without IP.
    pub fn addresses(&self) -> Option<FlowKey> {
        tuple::addresses(self.data(), self.headers())
    }

    /// The side the packet came from.
    #[inline]
    pub fn side(&self) -> Side {
        self.info.side()
    }

    /// Whether the packet travels from the key's first endpoint to its second.
    #[inline]
    pub fn is_forward(&self) -> bool {
        self.info.forward()
    }

    /// When the packet arrived, as the run counts time.
    #[inline]
    pub fn arrived(&self) -> Time {
        self.info.now
    }

    /// Bytes that can be put before the packet.
    #[inline]
    pub fn headroom(&self) -> usize {
        self.mbuf.headroom()
    }

    /// The device the packet arrived on.
    #[inline]
    pub fn device(&self) -> DeviceId {
        self.mbuf.device()
    }

    /// Where the headers lie.
    #[inline]
    pub fn headers(&self) -> &Headers {
        &self.info.headers
    }

    /// Bytes of the packet, link header included.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
    pub fn len(&self) -> usize {
        self.mbuf.len()
    }

    /// Bytes the packet had on the wire, link header included; more than [`Packet::len`] when a capture
    /// cut it short.
    #[inline]
    pub fn wire_len(&self) -> u32 {
        (self.mbuf.len() as u32).max(self.mbuf.wire_len())
    }

    /// Bytes above the link layer: those of the IP packet with its header, or of what is carried in its
    /// place, without link padding.
    #[inline]
    pub fn network_len(&self) -> u32 {
        self.headers().end.saturating_sub(self.headers().l3.into())
    }

    /// Time to live of IPv4, or hop limit of IPv6. `None` without IP.
    #[inline]
    pub fn hop_limit(&self) -> Option<u8> {
        let ip = self.data().get(usize::from(self.headers().l3)..)?;
        match self.headers().network {
            Network::Ipv4 => Ipv4Packet::new(ip).ok().map(|ip| ip.ttl()),
            Network::Ipv6 => Ipv6Packet::new(ip).ok().map(|ip| ip.hop_limit()),
            Network::Arp | Network::Other => None,
        }
    }

    /// Type of service of IPv4, or traffic class of IPv6: DSCP (6 bits) and ECN (2 bits). `None`
    /// without IP.
    #[inline]
    pub fn traffic_class(&self) -> Option<u8> {
        let ip = self.data().get(usize::from(self.headers().l3)..)?;
        match self.headers().network {
            Network::Ipv4 => Ipv4Packet::new(ip).ok().map(|ip| ip.tos()),
            Network::Ipv6 => Ipv6Packet::new(ip).ok().map(|ip| ip.traffic_class()),
            Network::Arp | Network::Other => None,
        }
    }

    /// The bytes of the first segment, where all headers lie.
    #[inline]
    pub fn data(&self) -> &[u8] {
        self.mbuf.data()
    }

    /// The buffer, for code that builds a reply to the packet.
    #[inline]
    pub fn mbuf(&self) -> &Mbuf {
        self.mbuf
    }

    /// Whether the packet is followed through the run (see [`rheostat_run::Step`]).
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.mbuf.mark() != 0
    }

    /// Whether this is an ICMP error about a packet of the flow, not one of its own packets.
    #[inline]
    pub fn is_icmp_error(&self) -> bool {
        self.info.kind() == PacketKind::IcmpError
    }

    /// Whether this is a fragment without the transport header.
    #[inline]
    pub fn is_later_fragment(&self) -> bool {
        self.info.headers.fragment.is_some_and(|fragment| fragment.offset > 0)
    }

    /// The TCP header. `None` when the packet is not of TCP, is a fragment other than the first, or has
    /// only a part of the header.
    #[inline]
    pub fn tcp(&self) -> Option<TcpSegment<'_>> {
        TcpSegment::new(self.transport(protocol::TCP)?).ok()
    }

    /// The UDP header. `None` as for [`Packet::tcp`].
    #[inline]
    pub fn udp(&self) -> Option<UdpDatagram<'_>> {
        UdpDatagram::new(self.transport(protocol::UDP)?).ok()
    }

    /// The bytes behind the header of TCP or UDP, without link padding, as far as they lie in the first
    /// segment of the buffer and a capture has them. `None` without a whole header, and for all fragments,
    /// since none of them has the whole payload.
    pub fn payload(&self) -> Option<&[u8]> {
        if self.headers().fragment.is_some() {
            return None;
        }
        if let Some(transport) = self.transport(protocol::TCP) {
            return transport.get(TcpSegment::new(transport).ok()?.header_len()..);
        }
        let transport = self.transport(protocol::UDP)?;
        let stated = match UdpDatagram::new(transport).ok()?.stated_len() {
            // A jumbogram (RFC 2675, section 4).
            0 => transport.len(),
            stated => transport.len().min(stated.into()),
        };
        transport.get(udp::HEADER..stated)
    }

    /// The bytes from the transport header to the end of the packet, if it is of `protocol` and has one.
    #[inline]
    fn transport(&self, protocol: u8) -> Option<&[u8]> {
        if self.headers().protocol != protocol || self.is_later_fragment() || self.is_icmp_error() {
            return None;
        }
        // Not behind the end of the packet, where link padding or an attacker's bytes may lie.
        let end = self.data().len().min(self.headers().end as usize);
        self.data().get(usize::from(self.headers().l4)..end)
    }

    /// The TCP header of a packet on the fast path; `None` when it is of UDP.
    #[inline(always)]
    pub fn usual_tcp(&self) -> Option<UsualTcp<'_>> {
        debug_assert!(self.info.is_usual(), "a packet of another kind is on the fast path");
        let Headers { protocol, l4, end, .. } = self.info.headers;
        if protocol != protocol::TCP {
            return None;
        }
        let header = self.data().get(usize::from(l4)..)?.first_chunk()?;
        Some(UsualTcp::new(header, end.wrapping_sub(l4.into())))
    }

    /// The type of an ICMP or ICMPv6 message, if the packet is one.
    pub fn icmp_type(&self) -> Option<u8> {
        let headers = self.headers();
        let is_icmp =
            matches!((headers.network, headers.protocol), (Network::Ipv4, 1) | (Network::Ipv6, 58));
        if !is_icmp || self.is_later_fragment() {
            return None;
        }
        self.data().get(usize::from(headers.l4)).copied()
    }

    /// Bytes behind the transport header that starts at `l4` and is `header` bytes long.
    #[inline]
    pub fn payload_len(&self, header: usize) -> usize {
        (self.headers().end as usize).saturating_sub(usize::from(self.headers().l4) + header)
    }
}
