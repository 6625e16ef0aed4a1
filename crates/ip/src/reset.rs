//! The TCP reset that answers a segment no one takes (RFC 9293, section 3.10.7.1).

use rheostat_packet::build::{FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_packet::wire::tcp::{TcpFlags, TcpSegment};
use rheostat_packet::{Headers, Tuple};

use crate::link::{self, Received};

/// Writes the reset that answers `packet` to `out` and returns its length. `None` when there must be no
/// answer: to a reset, to what is no whole TCP segment, or to what was sent to many.
pub fn tcp_reset(packet: Received<'_>, headers: &Headers, out: &mut [u8]) -> Option<usize> {
    let Tuple::Flow(key) = Tuple::of_bytes(packet.data, headers) else { return None };
    let end = packet.data.len().min(headers.end as usize);
    let segment = TcpSegment::new(packet.data.get(usize::from(headers.l4)..end)?).ok()?;
    let flags = segment.flags().0;
    if headers.protocol != 6
        || flags & TcpFlags::RST != 0
        || !is_host(key.first())
        || !is_host(key.second())
    {
        return None;
    }
    let (seq, ack, flags) = if flags & TcpFlags::ACK != 0 {
        (segment.ack(), 0, TcpFlags::RST)
    } else {
        let start = usize::from(headers.l4) + segment.header_len();
        let payload = (headers.end as usize).saturating_sub(start) as u32;
        let control = (flags & (TcpFlags::SYN | TcpFlags::FIN)).count_ones();
        let ack = segment.seq().wrapping_add(payload).wrapping_add(control);
        (0, ack, TcpFlags::RST | TcpFlags::ACK)
    };
    let ports = (key.second_port(), key.first_port());
    let header = TcpHeader { ports, seq, ack, flags, window: 0, urgent: 0, options: &[] };
    let answer =
        FrameBuilder::new(key.second(), key.first(), Transport::Tcp(header), Payload::Bytes(&[]));
    let l3 = link::write_reversed(packet, headers, out)?;
    let body = out.get_mut(l3..).filter(|body| body.len() >= answer.len())?;
    let len = l3 + answer.write(body);
    Some(link::padded(packet, out, len))
}

/// Whether an address names one host.
pub fn is_host(address: std::net::IpAddr) -> bool {
    match address {
        std::net::IpAddr::V4(v4) => {
            !(v4.is_unspecified() || v4.is_multicast() || v4.is_broadcast())
        }
        std::net::IpAddr::V6(v6) => !(v6.is_unspecified() || v6.is_multicast()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rheostat_packet::build::Ethernet;
    use rheostat_packet::{Mempool, MempoolConfig, PoolCache, checksum};

    fn answer(flags: u8, ethernet: Ethernet) -> Option<Vec<u8>> {
        let header = TcpHeader {
            ports: (40_000, 22),
            seq: 100,
            ack: 900,
            flags,
            window: 10,
            urgent: 0,
            options: &[],
        };
        let frame = FrameBuilder::new(
            "198.51.100.1".parse().unwrap(),
            "10.0.0.5".parse().unwrap(),
            Transport::Tcp(header),
            Payload::Pattern(7),
        )
        .with_ethernet(ethernet);
        let pool = Mempool::new(&MempoolConfig { buffers: 8, ..MempoolConfig::default() }).unwrap();
        let packet = PoolCache::new(pool).alloc_from(&frame.to_vec()).unwrap();
        let headers = Headers::parse(&packet).unwrap();
        let mut out = [0; 128];
        tcp_reset((&packet).into(), &headers, &mut out).map(|len| out[..len].to_vec())
    }

    #[test]
    fn resets_carry_the_numbers_the_sender_waits_for() {
        let ethernet = Ethernet { source: [2; 6], destination: [4; 6], vlan: Some(9) };
        let frame = answer(TcpFlags::SYN, ethernet).unwrap();
        assert_eq!((&frame[..6], &frame[6..12]), (&[2; 6][..], &[4; 6][..]));
        let tcp = TcpSegment::new(&frame[38..58]).unwrap();
        assert_eq!((tcp.seq(), tcp.ack(), tcp.flags().0), (0, 108, TcpFlags::RST | TcpFlags::ACK));
        assert_eq!((tcp.source_port(), tcp.destination_port()), (22, 40_000));
        let (from, to) = ("10.0.0.5".parse().unwrap(), "198.51.100.1".parse().unwrap());
        let validity = checksum::evaluate(from, to, 6, tcp.checksum(), [&frame[38..58]]);
        assert_eq!(validity, checksum::Validity::Valid);
        let frame = answer(TcpFlags::ACK, ethernet).unwrap();
        let tcp = TcpSegment::new(&frame[38..58]).unwrap();
        assert_eq!((tcp.seq(), tcp.flags().0), (900, TcpFlags::RST));
    }

    #[test]
    fn resets_and_broadcasts_are_not_answered() {
        let ethernet = Ethernet { source: [2; 6], destination: [4; 6], vlan: None };
        assert_eq!(answer(TcpFlags::RST, ethernet), None);
        assert_eq!(answer(TcpFlags::SYN, Ethernet { destination: [0xff; 6], ..ethernet }), None);
    }
}
