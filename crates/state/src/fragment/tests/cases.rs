//! Attacks and limits by name.

use super::*;

fn tracker() -> FragmentTracker {
    FragmentTracker::new(FragmentConfig::default())
}

const INVALID: Fate = Fate::Drop(DropReason::FragmentInvalid);

#[test]
fn fragments_in_reverse_order_wait_for_the_first_and_keep_their_order() {
    let (mut source, mut tracker) = (Source::new(), tracker());
    let mut feed =
        |fragment, key| feed(&mut tracker, &mut source, v4(1), fragment, key, Time::ZERO);
    assert_eq!(feed(part(16, 5, false), None).fate, Fate::Hold);
    assert_eq!(feed(part(8, 8, true), None).fate, Fate::Hold);
    let first = feed(part(0, 8, true), Some(flow(1)));
    assert_eq!(first.fate, Fate::Release(flow(1)));
    assert_eq!(first.released, [(flow(1), 0), (flow(1), 1)]);
    assert_eq!((tracker.held(), tracker.datagrams()), (0, 0), "complete, so forgotten");
    assert_eq!(source.outside(), 0);
}

#[test]
fn an_identification_serves_again_once_its_datagram_is_complete() {
    let (mut source, mut tracker) = (Source::new(), tracker());
    for port in 0..3 {
        let mut feed =
            |fragment, key| feed(&mut tracker, &mut source, v6(9), fragment, key, Time::ZERO).fate;
        assert_eq!(feed(part(0, 1_232, true), Some(flow(port))), Fate::Release(flow(port)));
        assert_eq!(feed(part(1_232, 8, true), None), Fate::Release(flow(port)));
        assert_eq!(
            feed(part(0, 1_232, true), Some(flow(port))),
            Fate::Release(flow(port)),
            "again"
        );
        assert_eq!(feed(part(1_240, 1, false), None), Fate::Release(flow(port)));
    }
    assert_eq!(tracker.datagrams(), 0);
}

#[test]
fn teardrop_poisons_the_datagram() {
    let (mut source, mut tracker) = (Source::new(), tracker());
    let mut feed =
        |fragment, key| feed(&mut tracker, &mut source, v4(1), fragment, key, Time::ZERO);
    assert_eq!(feed(part(24, 8, false), None).fate, Fate::Hold);
    assert_eq!(feed(part(0, 16, true), Some(flow(1))).released, [(flow(1), 0)]);
    assert_eq!(feed(part(8, 4, false), None).fate, INVALID, "ends inside the first fragment");
    assert_eq!(feed(part(16, 8, true), None).fate, INVALID, "what fits comes too late");
    assert_eq!(feed(part(0, 16, true), Some(flow(1))).fate, INVALID);
}

#[test]
fn the_ping_of_death_is_refused_and_the_longest_datagram_is_not() {
    let (mut source, mut tracker) = (Source::new(), tracker());
    let mut last = |id, offset, len| {
        feed(&mut tracker, &mut source, id, part(offset, len, false), None, Time::ZERO).fate
    };
    assert_eq!(last(v4(1), 65_512, 3), Fate::Hold);
    assert_eq!(last(v4(2), 65_512, 4), INVALID);
    assert_eq!(last(v4(3), 65_528, 65_535), INVALID);
    assert_eq!(last(v6(1), 65_528, 7), Fate::Hold);
    assert_eq!(last(v6(2), 65_528, 8), INVALID);
}

#[test]
fn ends_that_disagree_poison_the_datagram() {
    for second in [part(32, 8, true), part(32, 8, false), part(8, 8, false)] {
        let (mut source, mut tracker) = (Source::new(), tracker());
        let mut feed =
            |fragment| feed(&mut tracker, &mut source, v4(1), fragment, None, Time::ZERO);
        assert_eq!(feed(part(16, 16, false)).fate, Fate::Hold);
        let outcome = feed(second);
        assert_eq!(outcome.fate, INVALID, "{second:?}");
        assert_eq!(outcome.dropped, [(DropReason::FragmentInvalid, 0)]);
    }
    // The same bytes, once the last and once not.
    for last in [false, true] {
        let (mut source, mut tracker) = (Source::new(), tracker());
        let mut feed =
            |fragment| feed(&mut tracker, &mut source, v4(1), fragment, None, Time::ZERO).fate;
        assert_eq!(feed(part(16, 16, last)), Fate::Hold);
        assert_eq!(feed(part(16, 16, !last)), INVALID);
    }
}

#[test]
fn a_first_fragment_without_a_transport_header_poisons_the_datagram() {
    let (mut source, mut tracker) = (Source::new(), tracker());
    let mut feed =
        |fragment, key| feed(&mut tracker, &mut source, v4(1), fragment, key, Time::ZERO);
    assert_eq!(feed(part(8, 8, true), None).fate, Fate::Hold);
    let tiny = feed(part(0, 8, true), None);
    assert_eq!(tiny.fate, INVALID);
    assert_eq!(tiny.dropped, [(DropReason::FragmentInvalid, 0)]);
    assert_eq!(feed(part(16, 8, true), None).fate, INVALID);
}

#[test]
fn a_second_first_fragment_must_have_the_same_key() {
    let (mut source, mut tracker) = (Source::new(), tracker());
    let mut feed = |port| {
        let first = part(0, 24, true);
        feed(&mut tracker, &mut source, v4(1), first, Some(flow(port)), Time::ZERO).fate
    };
    assert_eq!(feed(1), Fate::Release(flow(1)));
    assert_eq!(feed(1), Fate::Release(flow(1)));
    assert_eq!(feed(2), INVALID);
}

#[test]
fn fragments_that_cannot_be_part_of_a_datagram_leave_no_trace() {
    let (mut source, mut tracker) = (Source::new(), tracker());
    for fragment in [part(8, 0, true), part(8, 0, false), part(8, 9, true), part(3, 8, false)] {
        let fate = feed(&mut tracker, &mut source, v4(1), fragment, None, Time::ZERO).fate;
        assert_eq!(fate, INVALID);
    }
    assert_eq!(tracker.datagrams(), 0);
}

#[test]
fn held_fragments_are_given_up_in_time() {
    let (mut source, mut tracker) = (Source::new(), tracker());
    let start = Time::from_secs(5);
    feed(&mut tracker, &mut source, v6(1), part(8, 8, true), None, start);
    feed(&mut tracker, &mut source, v4(1), part(8, 8, true), None, start);
    assert_eq!(tracker.next_due(), Some(Time::from_secs(35)));
    tracker.expire(Time::from_millis(34_999));
    assert!(tracker.next_dropped().is_none());
    // The next fragment of the same identification is of another datagram.
    let late = feed(&mut tracker, &mut source, v4(1), part(8, 8, true), None, Time::from_secs(35));
    assert_eq!(late.fate, Fate::Hold);
    assert_eq!(late.dropped, [(DropReason::FragmentIncomplete, 1)]);
    tracker.expire(Time::from_secs(65));
    assert_eq!(tracker.held(), 2, "dropped packets are held until they are collected");
    let dropped: Vec<u32> =
        std::iter::from_fn(|| tracker.next_dropped()).map(|(_, packet)| packet.stamp()).collect();
    assert_eq!(dropped, [0, 2]);
    assert_eq!((tracker.held(), tracker.datagrams(), tracker.next_due()), (0, 0, None));
}

#[test]
fn the_oldest_datagram_gives_way() {
    let config = FragmentConfig { datagrams: 3, ..FragmentConfig::default() };
    let (mut source, mut tracker) = (Source::new(), FragmentTracker::new(config));
    for id in 0..4 {
        let outcome = feed(&mut tracker, &mut source, v4(id), part(8, 8, true), None, Time::ZERO);
        assert_eq!(outcome.fate, Fate::Hold);
        let expected: &[_] = if id == 3 { &[(DropReason::FragmentsFull, 0)] } else { &[] };
        assert_eq!(outcome.dropped, expected);
    }
    assert_eq!((tracker.datagrams(), tracker.held()), (3, 3));
}

#[test]
fn what_is_held_is_bounded_per_datagram_and_in_all() {
    let config = FragmentConfig { pieces: 4, held: 6, ..FragmentConfig::default() };
    let (mut source, mut tracker) = (Source::new(), FragmentTracker::new(config));
    let mut feed = |id, nth: u16| {
        feed(&mut tracker, &mut source, v4(id), part(8 * nth, 8, true), None, Time::ZERO)
    };
    for nth in 1..=4 {
        assert_eq!(feed(1, nth).fate, Fate::Hold);
    }
    assert_eq!(feed(1, 5).fate, Fate::Drop(DropReason::FragmentsFull), "too many pieces");
    assert_eq!(feed(1, 4).fate, Fate::Drop(DropReason::FragmentsFull), "nor more of the same");
    assert_eq!(feed(2, 1).fate, Fate::Hold);
    assert_eq!(feed(2, 2).fate, Fate::Hold);
    let outcome = feed(2, 3);
    assert_eq!(outcome.fate, Fate::Hold);
    let oldest: Vec<u32> = outcome.dropped.iter().map(|&(_, stamp)| stamp).collect();
    assert_eq!(oldest, [0, 1, 2, 3], "the oldest datagram gave way");
    assert_eq!(tracker.held(), 3);
}

#[test]
fn datagrams_are_told_apart_by_all_their_fields() {
    let end = |last, port| (Ipv4Addr::new(192, 0, 2, last), port);
    let key = |a, b, protocol, zone| FlowKey::v4(end(a, 5), end(b, 6), protocol, zone);
    let base = DatagramId::new(&key(1, 2, 17, 0), 7);
    assert_eq!(base, DatagramId::new(&FlowKey::v4(end(1, 8), end(2, 9), 17, 0), 7));
    for other in [key(2, 1, 17, 0), key(1, 2, 6, 0), key(1, 2, 17, 3)] {
        assert_ne!(base, DatagramId::new(&other, 7));
    }
    assert_ne!(base, DatagramId::new(&key(1, 2, 17, 0), 8));
    // RFC 8200, 4.5: the next header of an IPv6 datagram's later fragments does not count.
    let six = |protocol| {
        let end = (Ipv6Addr::LOCALHOST, 0);
        DatagramId::new(&FlowKey::v6(end, end, protocol, 0), 1)
    };
    assert_eq!(six(17), six(44));
}
