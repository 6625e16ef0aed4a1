use proptest::prelude::*;
use rheostat_packet::LinkType;
use rheostat_packet::build::{FrameBuilder, Payload, Transport};

use super::*;

/// A protocol that nothing looks into (RFC 3692).
const EXPERIMENT: u8 = 253;
const NOW: Time = Time::from_secs(100);

fn ends(v6: bool) -> (IpAddr, IpAddr) {
    if v6 {
        ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap())
    } else {
        ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap())
    }
}

fn data(len: usize, salt: u8) -> Vec<u8> {
    (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8 ^ salt).collect()
}

/// A fragment as it arrives.
fn fragment(v6: bool, id: u32, part: &[u8], offset: usize, more: bool) -> Vec<u8> {
    let (from, to) = ends(v6);
    let mut builder =
        FrameBuilder::new(from, to, Transport::Protocol(EXPERIMENT), Payload::Bytes(part));
    builder.id = id;
    builder.fragment = Some((offset as u16, more));
    builder.to_vec()
}

/// The packet that was never in fragments.
fn whole(v6: bool, id: u32, data: &[u8]) -> Vec<u8> {
    let (from, to) = ends(v6);
    let mut builder =
        FrameBuilder::new(from, to, Transport::Protocol(EXPERIMENT), Payload::Bytes(data));
    builder.dont_fragment = false;
    builder.id = id;
    builder.to_vec()
}

fn take(reassembler: &mut Reassembler, packet: &[u8], now: Time) -> Reassembled {
    let headers = Headers::parse_bytes(packet, packet.len(), LinkType::Raw).expect("a fragment");
    reassembler.take(packet, &headers, DeviceId(0), now)
}

/// Cuts data at multiples of eight.
fn cut(v6: bool, id: u32, all: &[u8], sizes: &[usize]) -> Vec<Vec<u8>> {
    let mut made = Vec::new();
    let mut at = 0;
    for size in [1].iter().chain(sizes).map(|size| size * 8).chain(std::iter::repeat(1_480)) {
        let end = (at + size).min(all.len());
        made.push(fragment(v6, id, &all[at..end], at, end < all.len()));
        at = end;
        if at == all.len() {
            return made;
        }
    }
    made
}

proptest! {
    #[test]
    fn a_datagram_comes_out_as_it_was_whatever_the_order_and_however_often(
        v6: bool,
        len in 17_usize..9_000,
        sizes in prop::collection::vec(1_usize..80, 0..12),
        order in prop::collection::vec(any::<prop::sample::Index>(), 60..200),
        lengths in prop::collection::vec(17_usize..3_000, 1..4),
    ) {
        let mut reassembler = Reassembler::new(ReassemblyConfig::default());
        let mut missing = Vec::new();
        let mut originals = Vec::new();
        for (id, len) in std::iter::once(len).chain(lengths).enumerate() {
            let all = data(len, id as u8);
            missing.extend(cut(v6, id as u32, &all, &sizes).into_iter().map(|f| (id, f)));
            originals.push(whole(v6, id as u32, &all));
        }
        let every = missing.clone();
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let mut done = vec![false; originals.len()];
        let in_random_order: Vec<_> = order.iter().map(|index| index.get(&every).clone()).collect();
        for (id, packet) in in_random_order.into_iter().chain(every) {
            let is_again = seen.contains(&packet);
            if done[id] {
                continue;
            }
            match take(&mut reassembler, &packet, NOW) {
                Reassembled::Whole(found) => {
                    prop_assert_eq!(&found, &originals[id]);
                    done[id] = true;
                }
                Reassembled::Held => {}
                Reassembled::Refused(reason) => prop_assert!(false, "{reason:?} {is_again}"),
            }
            seen.push(packet);
        }
        prop_assert!(done.iter().all(|done| *done));
        let counts = reassembler.counts();
        prop_assert_eq!(counts.whole, originals.len() as u64);
        prop_assert_eq!((counts.invalid, counts.evicted, reassembler.allocated()), (0, 0, 0));
    }
}

#[test]
fn fragments_that_contradict_each_other_take_their_datagram_with_them() {
    let all = data(48, 0);
    for v6 in [false, true] {
        let faults = [
            // Other bytes at the same place, part of it again, past the end, another end.
            fragment(v6, 1, &data(16, 1), 0, true),
            fragment(v6, 1, &all[8..24], 8, true),
            fragment(v6, 1, &all[..16], 48, true),
            fragment(v6, 1, &all[32..40], 32, false),
            fragment(v6, 1, &all[..16], 56, false),
        ];
        for fault in faults {
            let mut reassembler = Reassembler::new(ReassemblyConfig::default());
            let first = fragment(v6, 1, &all[..16], 0, true);
            let last = fragment(v6, 1, &all[32..], 32, false);
            assert_eq!(take(&mut reassembler, &first, NOW), Reassembled::Held);
            assert_eq!(take(&mut reassembler, &last, NOW), Reassembled::Held);
            let refused = Reassembled::Refused(DropReason::FragmentInvalid);
            assert_eq!(take(&mut reassembler, &fault, NOW), refused);
            let middle = fragment(v6, 1, &all[16..32], 16, true);
            assert_eq!(take(&mut reassembler, &middle, NOW), refused, "the datagram is gone");
            assert_eq!((reassembler.counts().invalid, reassembler.allocated()), (1, 0));
        }
    }
}

#[test]
fn a_fragment_before_the_end_has_a_length_that_is_a_multiple_of_eight() {
    let mut reassembler = Reassembler::new(ReassemblyConfig::default());
    let odd = fragment(false, 1, &data(17, 0), 0, true);
    let refused = Reassembled::Refused(DropReason::FragmentInvalid);
    assert_eq!(take(&mut reassembler, &odd, NOW), refused);
}

#[test]
fn a_datagram_longer_than_any_is_refused() {
    let mut reassembler = Reassembler::new(ReassemblyConfig::default());
    let beyond = fragment(false, 1, &data(80, 0), 65_456, false);
    let refused = Reassembled::Refused(DropReason::FragmentInvalid);
    assert_eq!(take(&mut reassembler, &beyond, NOW), refused);
}

#[test]
fn what_is_missing_for_too_long_is_given_up() {
    let mut reassembler = Reassembler::new(ReassemblyConfig::default());
    let all = data(32, 0);
    let parts = cut(false, 1, &all, &[1, 2]);
    assert_eq!(take(&mut reassembler, &parts[0], NOW), Reassembled::Held);
    let deadline = NOW + Duration::from_secs(60);
    assert_eq!(reassembler.next_deadline(), Some(deadline));
    reassembler.expire(deadline - Duration::from_nanos(1));
    assert_eq!(reassembler.len(), 1);
    for part in &parts[1..] {
        assert_eq!(take(&mut reassembler, part, deadline), Reassembled::Held);
    }
    assert_eq!(reassembler.counts().timed_out, 1);
    assert!(matches!(take(&mut reassembler, &parts[0], deadline), Reassembled::Whole(_)));
}

#[test]
fn datagrams_and_bytes_are_bounded_and_the_oldest_go() {
    let config = ReassemblyConfig { datagrams: 4, bytes: 20_000, ..ReassemblyConfig::default() };
    let mut reassembler = Reassembler::new(config);
    for id in 0..50 {
        let offset = [0, 8_000, 16_000][id as usize % 3];
        let flood = fragment(id % 2 == 0, id, &data(64, 0), offset, true);
        assert_eq!(take(&mut reassembler, &flood, NOW), Reassembled::Held);
        assert!(reassembler.len() <= 4 && reassembler.allocated() <= 20_000);
    }
    assert!(reassembler.counts().evicted >= 46);
    // What would not fit beside nothing is refused.
    let huge = fragment(false, 99, &data(64, 0), 40_000, true);
    let full = Reassembled::Refused(DropReason::FragmentsFull);
    assert_eq!(take(&mut reassembler, &huge, NOW), full);
}

#[test]
fn pieces_are_bounded() {
    let config = ReassemblyConfig { pieces: 3, ..ReassemblyConfig::default() };
    let mut reassembler = Reassembler::new(config);
    let piece = |n: usize| fragment(false, 1, &data(8, 0), 16 * n, true);
    for n in 0..3 {
        assert_eq!(take(&mut reassembler, &piece(n), NOW), Reassembled::Held);
    }
    let full = Reassembled::Refused(DropReason::FragmentsFull);
    assert_eq!(take(&mut reassembler, &piece(3), NOW), full);
}

#[test]
fn what_is_overdue_is_quoted_as_its_first_fragment_arrived() {
    for v6 in [false, true] {
        let mut reassembler = Reassembler::new(ReassemblyConfig::default());
        let parts = cut(v6, 5, &data(3_000, 1), &[]);
        for part in [&parts[1], &parts[0]] {
            assert_eq!(take(&mut reassembler, part, NOW), Reassembled::Held);
        }
        reassembler.expire(NOW + Duration::from_secs(60));
        let overdue = Overdue { device: DeviceId(0), first: parts[0].clone() };
        assert_eq!(reassembler.poll_overdue(), Some(overdue));
        assert_eq!(reassembler.poll_overdue(), None);
    }
}
