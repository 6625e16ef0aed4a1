//! The usual packet: TCP or UDP over IPv4 without options or IPv6 without extension headers, whole, in
//! Ethernet without tags or with one. Most packets are, and for them layers and key come out of one look at
//! fixed places, with no intermediate result that would have to be stored.
//!
//! Whatever is odd about a packet makes it not usual; [`Headers::parse`] and [`Tuple::of`] then say
//! what it is. Where a packet is usual, they say the same.
//!
//! [`Tuple::of`]: crate::Tuple::of

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::wire::protocol::{TCP, UDP};
use crate::wire::{ethernet, ipv4, ipv6, tcp, udp, vlan};
use crate::{FlowKey, Headers, Mbuf, Network};

const V4: usize = ethernet::HEADER + ipv4::MIN_HEADER;
const V6: usize = ethernet::HEADER + ipv6::HEADER;

/// Which usual packet one with this Ethertype may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsualKind {
    /// Of IPv4 without a tag, or not usual at all.
    V4,
    /// Of any kind, with a tag.
    Tagged,
    /// Of IPv6 without a tag.
    V6,
}

/// Which kind a packet is of, if it is usual, by its Ethertype alone.
#[inline]
pub fn kind_of(packet: &Mbuf) -> UsualKind {
    match packet.data().get(12..ethernet::HEADER) {
        Some(&[high, low]) => match u16::from_be_bytes([high, low]) {
            ethernet::IPV6 => UsualKind::V6,
            ethernet::VLAN => UsualKind::Tagged,
            _ => UsualKind::V4,
        },
        _ => UsualKind::V4,
    }
}

/// The part of a frame that begins so far before the network layer as a frame without tags does, and what lies before that part.
#[derive(Clone, Copy)]
struct Untagged<'a> {
    data: &'a [u8],
    /// Bytes on the wire.
    len: usize,
    /// Bytes of tags.
    tags: usize,
    zone: u32,
}

impl<'a> Untagged<'a> {
    /// A frame without tags.
    #[inline(always)]
    fn of(packet: &'a Mbuf) -> Option<Untagged<'a>> {
        let untagged = Untagged { data: packet.data(), len: on_wire(packet), tags: 0, zone: 0 };
        packet.is_ethernet().then_some(untagged)
    }

    /// A frame with one tag.
    #[inline(always)]
    fn behind_tag(packet: &'a Mbuf) -> Option<Untagged<'a>> {
        let Untagged { data, len, .. } = Untagged::of(packet)?;
        let start: &[u8; ethernet::HEADER + vlan::TAG] = data.first_chunk()?;
        let zone = u32::from(u16::from_be_bytes([start[14], start[15]]) & 0xfff);
        let is_tagged = start[12..14] == ethernet::VLAN.to_be_bytes();
        let tags = vlan::TAG;
        is_tagged.then(|| Untagged { data: &data[tags..], len: len - tags, tags, zone })
    }
}

/// Layers and key, source first, of a usual packet of IPv4 without a tag.
#[inline(always)]
pub fn v4(packet: &Mbuf) -> Option<(Headers, FlowKey)> {
    v4_in(Untagged::of(packet)?)
}

/// Layers and key, source first, of a usual packet of IPv6 without a tag.
#[inline(always)]
pub fn v6(packet: &Mbuf) -> Option<(Headers, FlowKey)> {
    v6_in(Untagged::of(packet)?)
}

/// Layers and key, source first, of a usual packet of IPv4 with a tag.
#[inline(always)]
pub fn tagged_v4(packet: &Mbuf) -> Option<(Headers, FlowKey)> {
    v4_in(Untagged::behind_tag(packet)?)
}

/// Layers and key, source first, of a usual packet of IPv6 with a tag.
#[inline(always)]
fn tagged_v6(packet: &Mbuf) -> Option<(Headers, FlowKey)> {
    v6_in(Untagged::behind_tag(packet)?)
}

/// Layers and key, source first, of a usual packet with a tag.
#[inline(always)]
pub fn tagged(packet: &Mbuf) -> Option<(Headers, FlowKey)> {
    tagged_v4(packet).or_else(|| tagged_v6(packet))
}

/// Layers and key, source first, of a usual packet of any kind.
#[inline(always)]
pub fn parse(packet: &Mbuf) -> Option<(Headers, FlowKey)> {
    v4(packet).or_else(|| v6(packet)).or_else(|| tagged(packet))
}

#[inline(always)]
fn v4_in(frame: Untagged<'_>) -> Option<(Headers, FlowKey)> {
    let fixed: &[u8; V4 + udp::HEADER] = frame.data.first_chunk()?;
    let u16_at = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    // Ethertype, version and header length, which is that without options, in one look. No fragment: neither offset nor flag.
    let start = u32::from_be_bytes([fixed[12], fixed[13], fixed[14], 0]);
    if start != u32::from(ethernet::IPV4) << 16 | 0x4500 || u16_at(20) & 0x3fff != 0 {
        return None;
    }
    let (end, protocol) = (ethernet::HEADER + usize::from(u16_at(16)), fixed[23]);
    if end > frame.len || !holds_transport(frame.data, V4, end, protocol) {
        return None;
    }
    let address = |at: usize| Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]);
    let from = (address(26), u16_at(V4));
    let to = (address(30), u16_at(V4 + 2));
    let headers = headers(frame, Network::Ipv4, ethernet::IPV4, V4, end, protocol);
    Some((headers, FlowKey::v4(from, to, protocol, frame.zone)))
}

#[inline(always)]
fn v6_in(frame: Untagged<'_>) -> Option<(Headers, FlowKey)> {
    let fixed: &[u8; V6 + udp::HEADER] = frame.data.first_chunk()?;
    let u16_at = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    if u16_at(12) != ethernet::IPV6 || fixed[14] >> 4 != 6 || u16_at(18) == 0 {
        return None;
    }
    let (end, protocol) = (V6 + usize::from(u16_at(18)), fixed[20]);
    if end > frame.len || !holds_transport(frame.data, V6, end, protocol) {
        return None;
    }
    // A whole address at once: gathered byte by byte, addresses took longer than all else that is done here.
    let address = |at: usize| fixed[at..].first_chunk::<16>().copied().map(Ipv6Addr::from);
    let from = (address(22)?, u16_at(V6));
    let to = (address(38)?, u16_at(V6 + 2));
    let headers = headers(frame, Network::Ipv6, ethernet::IPV6, V6, end, protocol);
    Some((headers, FlowKey::v6(from, to, protocol, frame.zone)))
}

/// Whether the transport header of a packet of TCP or UDP with these headers lies whole in its first segment, as it does in
/// usual packets.
pub fn has_whole_transport(packet: &Mbuf, headers: &Headers) -> bool {
    headers.fragment.is_none()
        && matches!(headers.network, Network::Ipv4 | Network::Ipv6)
        && holds_transport(packet.data(), headers.l4.into(), headers.end as usize, headers.protocol)
}

/// Bytes the frame had on the wire.
#[inline(always)]
fn on_wire(packet: &Mbuf) -> usize {
    packet.len().max(packet.wire_len() as usize)
}

/// Whether a TCP or UDP header lies whole between `at` and `end`, with possible lengths.
#[inline(always)]
fn holds_transport(data: &[u8], at: usize, end: usize, protocol: u8) -> bool {
    let Some(len) = end.checked_sub(at) else { return false };
    match protocol {
        TCP => data.get(at..at + tcp::MIN_HEADER).is_some_and(|header| {
            let header_len = usize::from(header[12] >> 4) * 4;
            header_len >= tcp::MIN_HEADER && header_len <= len
        }),
        UDP => data.get(at..at + udp::HEADER).is_some_and(|header| {
            let stated = usize::from(u16::from_be_bytes([header[4], header[5]]));
            stated >= udp::HEADER && stated <= len
        }),
        _ => false,
    }
}

/// The layers of a frame, whose transport layer starts and ends there in its untagged part.
#[inline(always)]
fn headers(
    frame: Untagged<'_>,
    network: Network,
    ethertype: u16,
    l4: usize,
    end: usize,
    protocol: u8,
) -> Headers {
    let Untagged { tags, zone, .. } = frame;
    Headers {
        network,
        protocol,
        fragment: None,
        ethertype,
        zone,
        l3: (ethernet::HEADER + tags) as u16,
        l4: (l4 + tags) as u16,
        end: (end + tags) as u32,
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use proptest::prelude::*;

    use super::*;
    use crate::build::{Ethernet, FrameBuilder, Payload, TcpHeader, Transport};
    use crate::{Mempool, MempoolConfig, PoolCache, Tuple};

    type Found = Option<(Headers, Tuple)>;

    /// What the two functions say, and what the general way states.
    fn both(frame: &[u8], wire_len: u32) -> (Found, Found) {
        let pool = Mempool::new(&MempoolConfig { buffers: 2, ..MempoolConfig::default() });
        let mut cache = PoolCache::new(pool.expect("memory for two buffers"));
        let mut packet = cache.alloc_from(frame).expect("a buffer");
        packet.set_wire_len(wire_len);
        let usual = parse(&packet).map(|(headers, key)| (headers, Tuple::Flow(key)));
        let general = Headers::parse(&packet).ok();
        let general = general.map(|headers| (headers, Tuple::of(&packet, &headers)));
        cache.free(packet);
        (usual, general)
    }

    fn frame(is_v6: bool, is_udp: bool, vlan: Option<u16>, payload: usize) -> Vec<u8> {
        let address = |host: u8| -> IpAddr {
            if is_v6 {
                Ipv6Addr::from([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]).into()
            } else {
                Ipv4Addr::new(192, 0, 2, host).into()
            }
        };
        let transport = if is_udp {
            Transport::Udp { ports: (1_000, 53) }
        } else {
            Transport::Tcp(TcpHeader { ports: (1_000, 443), ..TcpHeader::default() })
        };
        let payload = vec![0x5a; payload];
        FrameBuilder::new(address(1), address(2), transport, Payload::Bytes(&payload))
            .with_ethernet(Ethernet { source: [2; 6], destination: [4; 6], vlan })
            .to_vec()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 16 } else { 2_000 }))]

        /// A few bytes changed, or the end cut off: whatever is still usual means the same.
        #[test]
        fn what_is_usual_means_the_same(
            is_v6: bool,
            is_udp: bool,
            vlan in proptest::option::of(0_u16..4_096),
            payload in 0_usize..80,
            changes in proptest::collection::vec((0_usize..80, any::<u8>()), 0..3),
            cut in 0_usize..40,
            beyond in 0_u32..40,
        ) {
            let mut frame = frame(is_v6, is_udp, vlan, payload);
            for (at, value) in changes {
                let at = at % frame.len();
                frame[at] = value;
            }
            frame.truncate(frame.len() - cut.min(frame.len() - 1));
            let wire_len = frame.len() as u32 + beyond;
            let (usual, general) = both(&frame, wire_len);
            if usual.is_some() {
                prop_assert_eq!(usual, general);
            }
        }
    }

    #[test]
    fn whole_packets_are_usual() {
        for (is_v6, is_udp) in [(false, false), (false, true), (true, false), (true, true)] {
            for vlan in [None, Some(7)] {
                let frame = frame(is_v6, is_udp, vlan, 30);
                let (usual, general) = both(&frame, frame.len() as u32);
                assert!(usual.is_some());
                assert_eq!(usual, general);
            }
        }
    }
}
