//! Fragments for this machine.

use rheostat_base::{DeviceId, DropReason, Time};
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
use rheostat_packet::checksum;

use super::bench::{Bench, LAN, PEER, known, s};

/// A datagram of UDP or an echo request from a neighbour, in fragments of so many bytes of data.
fn fragments(message: &[u8], protocol: u8, size: usize) -> Vec<Vec<u8>> {
    let ends = ("10.0.0.2".parse().unwrap(), "10.0.0.1".parse().unwrap());
    let mut made = Vec::new();
    for (n, part) in message.chunks(size).enumerate() {
        let mut builder =
            FrameBuilder::new(ends.0, ends.1, Transport::Protocol(protocol), Payload::Bytes(part));
        builder.id = 7;
        builder.fragment = Some(((n * size) as u16, (n + 1) * size < message.len()));
        let link = Ethernet { source: PEER, destination: LAN, vlan: None };
        made.push(builder.with_ethernet(link).to_vec());
    }
    made
}

fn echo_request(len: usize) -> Vec<u8> {
    let mut message = vec![8, 0, 0, 0, 0, 5, 0, 9];
    message.extend((0..len).map(|i| i as u8));
    let sum = checksum::of(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

#[test]
fn an_echo_request_in_fragments_is_answered_whole() {
    let mut bench = Bench::new(known(), 1);
    let request = echo_request(1_000);
    let mut parts = fragments(&request, 1, 400);
    parts.reverse();
    let (last, first) = parts.split_last().unwrap();
    for part in first {
        assert!(bench.receive(0, 0, part, Time::ZERO).is_empty());
    }
    let sent = bench.receive(0, 0, last, Time::ZERO);
    assert_eq!(sent.len(), 1);
    let reply = &sent[0].1[34..];
    assert_eq!((reply[0], checksum::of(reply), &reply[8..]), (0, 0, &request[8..]));
    let counts = bench.lanes[0].0.reassembly();
    assert_eq!((counts.fragments, counts.whole), (3, 1));
    assert_eq!(bench.lanes[0].1.counters().consumed.get(), 3);
    bench.finish();
}

#[test]
fn a_datagram_with_a_wrong_checksum_is_dropped_when_it_is_whole() {
    let mut bench = Bench::new(known(), 1);
    let mut request = echo_request(1_000);
    request[500] ^= 1;
    for part in fragments(&request, 1, 400) {
        assert!(bench.receive(0, 0, &part, Time::ZERO).is_empty());
    }
    assert_eq!(bench.dropped(DropReason::Malformed), 1);
    bench.finish();
}

#[test]
fn fragments_that_overlap_are_dropped_by_reason() {
    let mut bench = Bench::new(known(), 1);
    let parts = fragments(&echo_request(1_000), 1, 400);
    let others = fragments(&echo_request(900), 1, 304);
    assert!(bench.receive(0, 0, &parts[0], Time::ZERO).is_empty());
    for part in [&others[1], &parts[1], &parts[2]] {
        assert!(bench.receive(0, 0, part, Time::ZERO).is_empty());
    }
    assert_eq!(bench.dropped(DropReason::FragmentInvalid), 3);
    assert_eq!(bench.lanes[0].0.reassembly().invalid, 1);
    bench.finish();
}

#[test]
fn the_sender_is_told_when_fragments_have_not_come_in_time() {
    let mut bench = Bench::new(known(), 1);
    let parts = fragments(&echo_request(1_000), 17, 400);
    assert!(bench.receive(0, 0, &parts[0], s(0)).is_empty());
    assert!(bench.receive(0, 0, &parts[2], s(1)).is_empty());
    assert_eq!(bench.lanes[0].0.next_deadline(), s(60));
    assert!(bench.tick(0, s(59)).is_empty());
    let sent = bench.tick(0, s(60));
    assert_eq!((sent.len(), sent[0].0), (1, DeviceId(0)));
    // Time exceeded, in reassembly; it quotes the first fragment as it was.
    let message = &sent[0].1[34..];
    assert_eq!((&message[..2], checksum::of(message)), (&[11, 1][..], 0));
    assert_eq!(&message[8..], &parts[0][14..]);
    assert_eq!(bench.lanes[0].0.reassembly().timed_out, 1);
    assert_eq!(bench.lanes[0].0.next_deadline(), Time::NEVER);
    bench.finish();
}

#[test]
fn nobody_is_told_of_a_datagram_whose_first_fragment_never_came_or_that_was_refused() {
    let mut bench = Bench::new(known(), 1);
    let parts = fragments(&echo_request(1_000), 17, 400);
    assert!(bench.receive(0, 0, &parts[1], s(0)).is_empty());
    assert!(bench.tick(0, s(60)).is_empty());
    let others = fragments(&echo_request(900), 17, 304);
    for part in [&parts[0], &others[1]] {
        assert!(bench.receive(0, 0, part, s(61)).is_empty());
    }
    assert!(bench.tick(0, s(200)).is_empty());
    let counts = bench.lanes[0].0.reassembly();
    assert_eq!((counts.timed_out, counts.invalid), (1, 1));
    bench.finish();
}
