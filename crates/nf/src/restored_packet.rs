//! A packet that is presented again, as it arrived.

use rheostat_packet::wire::protocol;

use crate::packet::Packet;

/// Gives a packet the addresses and ports back that it arrived with, and its checksums.
#[cold]
pub(crate) fn restore_endpoints(packet: &mut Packet<'_>) {
    let (was, is) = (packet.arrival_key(), packet.key());
    let (was, is) = if packet.is_forward() { (was, is) } else { (was.reversed(), is.reversed()) };
    let has_ports = !packet.is_later_fragment();
    // Queries of ICMP have one identifier, which stands for both ports.
    let is_query = matches!(was.protocol(), protocol::ICMPV4 | protocol::ICMPV6);
    // What could be rewritten can be rewritten back.
    let Ok(mut rewrite) = packet.rewrite() else { return };
    if was.first() != is.first() {
        let _ = rewrite.set_source(was.first());
    }
    if was.second() != is.second() {
        let _ = rewrite.set_destination(was.second());
    }
    if has_ports && was.first_port() != is.first_port() {
        let _ = rewrite.set_source_port(was.first_port());
    }
    if has_ports && !is_query && was.second_port() != is.second_port() {
        let _ = rewrite.set_destination_port(was.second_port());
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use rheostat_packet::build::{FrameBuilder, Payload, Transport};
    use rheostat_packet::{FlowKey, Mempool, MempoolConfig, PoolCache, Tuple};

    use super::*;
    use crate::fixture::usual_info;

    /// The key of a packet of IP, its sender first.
    fn key_of(bytes: &[u8]) -> FlowKey {
        let link = rheostat_packet::LinkType::Raw;
        let headers = rheostat_packet::Headers::parse_bytes(bytes, bytes.len(), link).unwrap();
        match Tuple::of_bytes(bytes, &headers) {
            Tuple::Flow(key) => key,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_packet_whose_ends_were_replaced_becomes_byte_for_byte_what_it_was() {
        let mut pool = PoolCache::new(
            Mempool::new(&MempoolConfig { buffers: 4, ..Default::default() }).unwrap(),
        );
        let v4: [IpAddr; 3] = ["10.0.0.1", "192.0.2.7", "203.0.113.9"].map(|a| a.parse().unwrap());
        let v6: [IpAddr; 3] = ["fd00::1", "2001:db8::7", "2001:db8::9"].map(|a| a.parse().unwrap());
        let udp = Transport::Udp { ports: (4_000, 53) };
        let echo = Transport::Icmp { kind: 8, code: 0, rest: 77 << 16 | 1 };
        for ([source, destination, other], transport) in [(v4, udp), (v6, udp), (v4, echo)] {
            let bytes =
                FrameBuilder::new(source, destination, transport, Payload::Pattern(40)).to_vec();
            for (outbound, replaces_source) in [(true, true), (false, false), (true, false)] {
                let key = key_of(&bytes);
                let key = if outbound { key } else { key.reversed() };
                let info = usual_info(&bytes, key, outbound);
                let mut mbuf = pool.alloc_from(&bytes).unwrap();
                let mut packet = Packet::new(&mut mbuf, &info);
                let mut rewrite = packet.rewrite().unwrap();
                if replaces_source {
                    rewrite.set_source(other).unwrap();
                    rewrite.set_source_port(61_000).unwrap();
                } else {
                    rewrite.set_destination(other).unwrap();
                    rewrite.set_destination_port(61_000).unwrap();
                }
                assert_ne!(packet.data(), bytes);
                restore_endpoints(&mut packet);
                assert_eq!(
                    packet.data(),
                    bytes,
                    "{source} {transport:?} {outbound} {replaces_source}"
                );
                pool.free(mbuf);
            }
        }
    }
}
