//! Cutting packets of IPv4 into fragments (RFC 791, section 3.2; RFC 1812, section 4.2.2.7).

use rheostat_packet::checksum;
use rheostat_packet::wire::{Ipv4Packet, ipv4};

const MORE_FRAGMENTS: u16 = 0x2000;
/// An option of this bit is in every fragment, others in the first alone (RFC 791, section 3.1).
const COPIED: u8 = 0x80;
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;

/// The fragments of a whole packet, or of a fragment, none longer than `mtu` bytes. `None` when the bytes
/// are no packet of IPv4, or `mtu` leaves no room for data.
pub(crate) fn fragments(packet: &[u8], mtu: u16) -> Option<Vec<Vec<u8>>> {
    let ip = Ipv4Packet::new(packet).ok()?;
    let data = ip.payload();
    let later_options = copied_options(ip.options());
    let mut made = Vec::new();
    let mut at = 0;
    while at < data.len() {
        let options = if at == 0 { ip.options() } else { &later_options };
        let header_len = ipv4::MIN_HEADER + options.len();
        let room = usize::from(mtu).checked_sub(header_len)? & !7;
        if room == 0 {
            return None;
        }
        let end = data.len().min(at + room);
        let more = end < data.len() || ip.more_fragments();
        let offset = (ip.fragment_offset() / 8).checked_add(u16::try_from(at / 8).ok()?)?;
        let mut fragment = packet[..ipv4::MIN_HEADER].to_vec();
        fragment.extend_from_slice(options);
        fragment[0] = 0x40 | (header_len / 4) as u8;
        let total = (header_len + end - at) as u16;
        fragment[2..4].copy_from_slice(&total.to_be_bytes());
        let word = offset | if more { MORE_FRAGMENTS } else { 0 };
        fragment[6..8].copy_from_slice(&word.to_be_bytes());
        fragment[10..12].fill(0);
        let sum = checksum::of(&fragment);
        fragment[10..12].copy_from_slice(&sum.to_be_bytes());
        fragment.extend_from_slice(&data[at..end]);
        made.push(fragment);
        at = end;
    }
    Some(made)
}

/// Those of the options that are in every fragment, padded to words.
fn copied_options(mut options: &[u8]) -> Vec<u8> {
    let mut copied = Vec::new();
    while let [kind, rest @ ..] = options {
        let len = match *kind {
            END_OF_OPTIONS => break,
            NO_OPERATION => 1,
            _ => rest.first().map_or(0, |len| usize::from(*len)),
        };
        // An option that is no option ends them: there is no telling what follows.
        let Some(option) = options.get(..len).filter(|_| len > 0) else { break };
        if kind & COPIED != 0 {
            copied.extend_from_slice(option);
        }
        options = &options[len..];
    }
    copied.resize(copied.len().next_multiple_of(4), END_OF_OPTIONS);
    copied
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use rheostat_packet::build::{FrameBuilder, Payload, Transport};

    fn packet(len: usize, options: &[u8]) -> Vec<u8> {
        let (from, to) = ("10.0.0.1".parse().unwrap(), "198.51.100.1".parse().unwrap());
        let udp = Transport::Udp { ports: (1, 2) };
        let whole = FrameBuilder::new(from, to, udp, Payload::Pattern(len));
        FrameBuilder { id: 77, dont_fragment: false, options, ..whole }.to_vec()
    }

    /// Puts fragments together again, in any order.
    fn reassemble(fragments: &[Vec<u8>]) -> Vec<u8> {
        let mut data = Vec::new();
        for fragment in fragments {
            let ip = Ipv4Packet::new(fragment).unwrap();
            assert!(ip.is_checksum_valid());
            assert_eq!((usize::from(ip.total_len()), ip.id()), (fragment.len(), 77));
            let (at, piece) = (usize::from(ip.fragment_offset()), ip.payload());
            data.resize(data.len().max(at + piece.len()), 0);
            data[at..at + piece.len()].copy_from_slice(piece);
        }
        data
    }

    proptest! {
        /// Cut, and cut again by a narrower link, the pieces are the packet.
        #[test]
        fn pieces_are_the_packet(len in 1_usize..4_000, mtu in 68_u16..1_500, narrower in 68_u16..1_500) {
            let packet = packet(len, &[]);
            let pieces = fragments(&packet, mtu).unwrap();
            prop_assert!(pieces.iter().all(|piece| piece.len() <= usize::from(mtu)));
            let smaller: Vec<_> =
                pieces.iter().flat_map(|piece| fragments(piece, narrower).unwrap()).collect();
            prop_assert!(smaller.iter().all(|piece| piece.len() <= usize::from(narrower)));
            for set in [pieces, smaller] {
                prop_assert_eq!(reassemble(&set), &packet[20..]);
                let more = set.iter().filter(|f| Ipv4Packet::new(f).unwrap().more_fragments());
                prop_assert_eq!(more.count(), set.len() - 1);
            }
        }

        #[test]
        fn no_bytes_are_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..200), mtu: u16) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = 0x40 | *first & 0xf;
            }
            let _ = fragments(&bytes, mtu);
        }
    }

    #[test]
    fn only_some_options_are_in_every_fragment() {
        // A loose source route (copied), and a record of the route (not).
        let options = [1, 131, 3, 4, 7, 3, 4, 0];
        let pieces = fragments(&packet(100, &options), 68).unwrap();
        let options_of = |at: usize| Ipv4Packet::new(&pieces[at]).unwrap().options().to_vec();
        assert_eq!(options_of(0), options);
        assert_eq!(options_of(1), [131, 3, 4, 0]);
        assert_eq!(reassemble(&pieces).len(), 108);
    }
}
