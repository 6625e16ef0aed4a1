//! Data that arrives.

use std::time::Duration;

use rheostat_tcp::{Config, Header, KeepAlive, Options, Segment, State, Timestamps};

use crate::script::{Script, plain};

fn with_sack() -> Config {
    Config { sack: true, ..plain() }
}

#[test]
fn data_in_order_is_acknowledged_after_the_delay_or_with_the_second_full_segment() {
    let mut script = Script::established(plain());
    script.receive(1, Some(1), &[0; 1_000]);
    script.sent_nothing();
    assert_eq!(script.expire(), 40);
    assert_eq!(script.sent_one().acks(), Some(1_001));
    script.receive(1_001, Some(1), &[0; 1_000]);
    script.sent_nothing();
    script.receive(2_001, Some(1), &[0; 1_000]);
    assert_eq!(script.sent_one().acks(), Some(3_001));
}

#[test]
fn an_acknowledgement_goes_with_data_if_there_is_any() {
    let mut script = Script::established(plain());
    script.receive(1, Some(1), b"ping");
    script.write(4);
    let sent = script.sent_one();
    assert_eq!((sent.acks(), sent.payload.len()), (Some(5), 4));
    script.sent_nothing();
}

#[test]
fn data_beyond_a_gap_is_acknowledged_at_once_and_so_is_what_fills_the_gap() {
    let mut script = Script::established(plain());
    script.receive(11, Some(1), b"klm");
    assert_eq!(script.sent_one().acks(), Some(1));
    script.receive(1, Some(1), b"abcdefghij");
    assert_eq!(script.sent_one().acks(), Some(14));
    let mut out = [0; 20];
    assert_eq!(script.connection.read(&mut out), Ok(13));
    assert_eq!(&out[..13], b"abcdefghijklm");
}

#[test]
fn the_first_block_is_about_the_latest_segment() {
    let mut script = Script::established(with_sack());
    script.receive(101, Some(1), &[0; 10]);
    assert_eq!(script.sent_one().blocks(), [(101, 111)]);
    script.receive(301, Some(1), &[0; 10]);
    assert_eq!(script.sent_one().blocks(), [(301, 311), (101, 111)]);
    script.receive(201, Some(1), &[0; 10]);
    assert_eq!(script.sent_one().blocks(), [(201, 211), (301, 311), (101, 111)]);
}

#[test]
fn as_many_blocks_are_sent_as_there_is_room_for() {
    for (timestamps, blocks) in [(false, 4), (true, 3)] {
        let mut script = Script::established(Config { timestamps, ..with_sack() });
        for gap in 1..=6 {
            script.receive(100 * gap, Some(1), &[0; 10]);
        }
        let latest: Vec<_> = (1..=6).rev().map(|gap| (100 * gap, 100 * gap + 10)).collect();
        assert_eq!(script.sent().last().unwrap().blocks(), latest[..blocks]);
    }
}

#[test]
fn blocks_go_with_data_too() {
    let mut script = Script::established(with_sack());
    script.receive(101, Some(1), &[0; 10]);
    script.write(5_000);
    let sent = script.sent();
    assert_eq!((sent[0].blocks(), sent[0].payload.len()), (vec![(101, 111)], 988));
}

#[test]
fn without_sack_there_are_no_blocks() {
    let mut script = Script::established(plain());
    script.receive(101, Some(1), &[0; 10]);
    assert_eq!(script.sent_one().blocks(), []);
}

#[test]
fn a_segment_received_twice_is_reported_once() {
    let mut script = Script::established(with_sack());
    script.receive(1, Some(1), &[0; 100]);
    script.receive(1, Some(1), &[0; 100]);
    assert_eq!(script.sent_one().blocks(), [(1, 101)]);
    script.receive(201, Some(1), &[0; 100]);
    assert_eq!(script.sent_one().blocks(), [(201, 301)]);
}

#[test]
fn what_lies_before_the_first_byte_is_not_reported_as_received_twice() {
    let mut script = Script::established(with_sack());
    script.receive(1, Some(1), &[0; 100]);
    script.receive(1_u32.wrapping_sub(300), Some(1), &[0; 200]);
    assert_eq!(script.sent_one().blocks(), []);
}

#[test]
fn a_duplicate_beyond_a_gap_is_reported_before_the_range_it_lies_in() {
    let mut script = Script::established(with_sack());
    script.receive(201, Some(1), &[0; 300]);
    script.sent_one();
    script.receive(301, Some(1), &[0; 100]);
    assert_eq!(script.sent_one().blocks(), [(301, 401), (201, 501)]);
}

#[test]
fn what_lies_beyond_the_window_is_cut_off() {
    let mut script = Script::established(Config { receive_buffer: 1_000, ..plain() });
    script.receive(1, Some(1), &[0; 1_500]);
    let ack = script.sent_one();
    assert_eq!((ack.acks(), ack.header.window), (Some(1_001), 0));
    assert_eq!(script.read(2_000), 1_000);
}

#[test]
fn the_window_opens_by_no_less_than_a_segment_or_half_of_the_buffer() {
    let mut script = Script::established(Config { receive_buffer: 4_000, ..plain() });
    for segment in 0..4 {
        script.receive(1 + segment * 1_000, Some(1), &[0; 1_000]);
    }
    assert_eq!(script.sent().last().unwrap().header.window, 0);
    script.read(999);
    script.sent_nothing();
    script.read(1);
    assert_eq!(script.sent_one().header.window, 1_000);
}

#[test]
fn a_probe_of_a_closed_window_is_answered_at_once() {
    let mut script = Script::established(Config { receive_buffer: 1_000, ..plain() });
    script.receive(1, Some(1), &[0; 1_000]);
    script.expire();
    script.sent();
    for _ in 0..3 {
        script.receive(1_001, Some(1), b"p");
        let ack = script.sent_one();
        assert_eq!((ack.acks(), ack.header.window), (Some(1_001), 0));
    }
}

/// A peer whose probe was not taken numbers its acknowledgements behind it.
#[test]
fn behind_a_probe_of_a_closed_window_acknowledgements_count() {
    let mut script = Script::established(Config { receive_buffer: 1_000, ..plain() });
    script.write(5);
    script.sent();
    script.receive(1, Some(1), &[0; 1_000]);
    script.receive(1_001, Some(1), b"p");
    script.sent();
    assert_eq!(script.connection.info().unacknowledged, 5);
    script.receive(1_002, Some(6), b"");
    assert_eq!(script.connection.info().unacknowledged, 0);
}

#[test]
fn reassembly_is_bounded_by_the_buffer() {
    let mut script = Script::established(Config { receive_buffer: 3_000, ..plain() });
    for at in (2..20_000).step_by(2) {
        script.receive(at, Some(1), b"x");
        script.sent();
        let info = script.connection.info();
        assert!(info.allocated <= 63_000 && info.unread == 0);
    }
}

#[test]
fn a_segment_with_an_older_stamp_is_dropped_and_acknowledged() {
    let mut script = Script::established(Config { timestamps: true, ..plain() });
    script.wait(1_000);
    script.receive(1, Some(1), b"new");
    let mut old = script.header(4, Some(1));
    old.options.timestamps = Some(Timestamps { value: 1_500, echo: 0 });
    script.receive_header(old, b"old");
    assert_eq!(script.sent_one().acks(), Some(4));
    assert_eq!(script.read(10), 3);
}

#[test]
fn a_segment_without_stamp_is_dropped_when_stamps_are_used() {
    let mut script = Script::established(Config { timestamps: true, ..plain() });
    let bare = Header { options: Options::default(), ..script.header(1, Some(1)) };
    script.receive_header(bare, b"bare");
    script.sent_nothing();
    assert_eq!(script.connection.info().unread, 0);
}

#[test]
fn every_segment_behind_the_handshake_carries_a_stamp() {
    let idle = Duration::from_secs(100);
    let keep_alive = Some(KeepAlive { idle, interval: idle, probes: 3 });
    let config = Config { timestamps: true, sack: true, keep_alive, ..plain() };
    let mut script = Script::established(config);
    let mut sent = Vec::new();
    script.receive(11, Some(1), b"beyond a gap");
    sent.push(script.sent_one());
    script.write(10);
    sent.push(script.sent_one());
    script.expire();
    sent.push(script.sent_one());
    script.receive(1, Some(11), b"");
    script.expire();
    let probe = script.sent_one();
    assert_eq!((probe.at(), probe.payload.len()), (10, 0));
    sent.push(probe);
    script.connection.finish(script.now);
    sent.push(script.sent_one());
    script.receive_fin(1, 12);
    assert_eq!(script.state(), State::FinWait2, "bytes are missing before FIN");
    script.receive(1, Some(12), &[0; 10]);
    sent.extend(script.sent());
    assert!(sent.len() > 5 && sent.iter().all(|sent| sent.header.options.timestamps.is_some()));
}

#[test]
fn the_stamp_of_the_segment_at_the_last_acknowledgement_is_echoed() {
    let mut script = Script::established(Config { timestamps: true, ..plain() });
    script.wait(10);
    script.receive(1, Some(1), &[0; 1_000]);
    script.wait(10);
    // Delayed acknowledgements echo the first of the segments that they cover (RFC 7323, 4.3, case A).
    script.receive(1_001, Some(1), &[0; 1_000]);
    assert_eq!(script.sent_one().header.options.timestamps.unwrap().echo, 1_010);
}

#[test]
fn bytes_read_where_they_lie_take_no_memory_and_are_the_same_whatever_comes_first() {
    let mut script = Script::established(plain());
    let mut read = Vec::new();
    let receive = |script: &mut Script, seq: u32, payload: &[u8], read: &mut Vec<u8>| {
        let segment = Segment { header: script.header(seq, Some(1)), payload };
        script.connection.handle_segment_reading(&segment, read, script.now);
    };
    let before = script.connection.allocated();
    receive(&mut script, 1, b"abcde", &mut read);
    assert_eq!((&read[..], script.connection.unread()), (&b"abcde"[..], 0));
    assert_eq!(script.connection.allocated(), before);
    assert_eq!(script.expire(), 40, "it is acknowledged as other data");
    assert_eq!(script.sent_one().acks(), Some(6));
    // What comes again does not count; nor does what lies beyond a gap, which waits.
    receive(&mut script, 1, b"abcdefg", &mut read);
    assert_eq!((&read[..], script.sent_one().acks()), (&b"abcdefg"[..], Some(8)));
    receive(&mut script, 11, b"klm", &mut read);
    assert_eq!((read.len(), script.sent_one().acks()), (7, Some(8)));
    receive(&mut script, 8, b"hij", &mut read);
    assert_eq!((read.len(), script.connection.unread()), (7, 6), "in order behind the held");
    // As long as something is unread, it comes first.
    receive(&mut script, 14, b"nop", &mut read);
    let mut rest = [0; 20];
    assert_eq!((read.len(), script.connection.read(&mut rest)), (7, Ok(9)));
    assert_eq!(&rest[..9], b"hijklmnop");
    script.sent();
    receive(&mut script, 17, b"q", &mut read);
    assert_eq!(read, b"abcdefgq");
    assert_eq!(script.connection.broken_invariant(), None);
}
