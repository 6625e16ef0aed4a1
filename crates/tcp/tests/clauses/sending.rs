//! Data that is sent.

use std::time::Duration;

use rheostat_tcp::{Config, Event, Header, WriteError};

use crate::script::{Script, plain};

#[test]
fn the_initial_window_is_ten_segments() {
    let mut script = Script::established(plain());
    script.write(30_000);
    assert_eq!(script.sent().len(), 10);
}

#[test]
fn slow_start_doubles_the_window_in_a_round_trip() {
    let mut script = Script::established(plain());
    script.write(50_000);
    assert_eq!(script.sent().len(), 10);
    let mut sent = 0;
    for segment in 1..=10 {
        script.receive(1, Some(1 + segment * 1_000), b"");
        sent += script.sent().len();
    }
    assert_eq!(sent, 20);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut script = Script::established(plain());
    for exchange in 0..50 {
        script.write(10);
        script.sent_one();
        script.receive(1, Some(11 + 10 * exchange), b"");
    }
    assert_eq!(script.connection.info().congestion_window, 10_000);
}

#[test]
fn after_idling_the_window_is_the_initial_one() {
    let mut script = Script::established(plain());
    script.write(50_000);
    script.sent();
    for segment in 1..=50 {
        script.receive(1, Some(1 + segment * 1_000), b"");
        script.sent();
    }
    assert!(script.connection.info().congestion_window > 20_000);
    script.wait(60_000);
    script.write(50_000);
    assert_eq!(script.sent().len(), 10);
}

#[test]
fn small_writes_wait_while_data_is_unacknowledged() {
    let mut script = Script::established(Config { nagle: true, ..plain() });
    script.write(10);
    assert_eq!(script.sent_ranges(), [(1, 10)]);
    script.write(10);
    script.write(10);
    script.sent_nothing();
    script.receive(1, Some(11), b"");
    assert_eq!(script.sent_ranges(), [(11, 20)]);
}

#[test]
fn full_segments_and_the_last_one_do_not_wait() {
    let mut script = Script::established(Config { nagle: true, ..plain() });
    script.write(10);
    script.sent_one();
    script.write(1_010);
    assert_eq!(script.sent_ranges(), [(11, 1_000)]);
    script.connection.finish(script.now);
    let last = script.sent_one();
    assert!(last.header.fin);
    assert_eq!((last.at(), last.payload.len()), (1_011, 10));
}

#[test]
fn without_nagle_small_writes_leave_at_once() {
    let mut script = Script::established(plain());
    script.write(10);
    script.sent_one();
    script.write(10);
    assert_eq!(script.sent_ranges(), [(11, 10)]);
}

#[test]
fn the_segment_that_empties_the_buffer_is_pushed() {
    let mut script = Script::established(plain());
    script.write(1_500);
    let pushed: Vec<bool> = script.sent().iter().map(|sent| sent.header.psh).collect();
    assert_eq!(pushed, [false, true]);
}

#[test]
fn nothing_is_sent_beyond_the_window() {
    let mut script = Script::established(plain());
    script.receive_window(1, 2_500);
    script.write(10_000);
    // The last 500 bytes of the window are less than a segment and than half of the largest window.
    assert_eq!(script.sent_ranges(), [(1, 1_000), (1_001, 1_000)]);
}

#[test]
fn a_small_window_is_used_when_nothing_else_happens() {
    let mut script = Script::established(plain());
    script.receive_window(1, 300);
    script.write(10_000);
    script.sent_nothing();
    assert_eq!(script.expire(), 200);
    assert_eq!(script.sent_ranges(), [(1, 300)]);
}

#[test]
fn half_of_the_largest_window_is_sent_though_it_is_no_full_segment() {
    // A peer whose window has never been larger than 1,600 bytes.
    let mut script = Script::connecting(plain());
    script.sent_one();
    let mut answer = Header { syn: true, window: 1_600, ..script.header(0, Some(1)) };
    answer.options.mss = Some(1_000);
    script.receive_header(answer, b"");
    script.sent_one();
    script.write(10_000);
    assert_eq!(script.sent_ranges(), [(1, 1_000)]);
    script.receive_window(1_001, 799);
    script.sent_nothing();
    script.receive_window(1_001, 800);
    assert_eq!(script.sent_ranges(), [(1_001, 800)]);
}

#[test]
fn a_closed_window_is_probed_with_a_byte_at_growing_intervals_for_as_long_as_probes_are_answered() {
    let mut script = Script::established(plain());
    script.receive_window(1, 0);
    script.write(100);
    script.sent_nothing();
    let mut intervals = Vec::new();
    for _ in 0..20 {
        intervals.push(script.expire());
        assert_eq!(script.sent_ranges(), [(1, 1)]);
        script.receive_window(1, 0);
    }
    assert_eq!(intervals[..9], [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200]);
    assert_eq!(intervals[9..], [60_000; 11]);
    let passed = Duration::from_millis(intervals.iter().sum());
    assert!(passed > 2 * plain().user_timeout, "{passed:?}");
    script.receive_window(2, 5_000);
    assert_eq!(script.sent_ranges(), [(2, 99)]);
}

#[test]
fn while_a_closed_window_is_probed_acknowledgements_begin_at_it() {
    let mut script = Script::established(plain());
    script.receive_window(1, 0);
    script.write(100);
    script.expire();
    assert_eq!(script.sent_ranges(), [(1, 1)]);
    // The probe was not taken. Data comes; a peer whose window is closed takes an acknowledgement at its start alone.
    for seq in [1, 1_001] {
        let header = Header { window: 0, ..script.header(seq, Some(1)) };
        script.receive_header(header, &[0; 1_000]);
    }
    let sent = script.sent_one();
    assert_eq!((sent.at(), sent.acks()), (1, Some(2_001)));
}

#[test]
fn a_window_that_shrinks_is_borne() {
    let mut script = Script::established(plain());
    script.write(5_000);
    assert_eq!(script.sent().len(), 5);
    script.receive_window(1, 0);
    script.expire();
    assert_eq!(script.sent_ranges(), [(1, 1)]);
    script.receive_window(5_001, 5_000);
    script.write(10);
    assert_eq!(script.sent_ranges(), [(5_001, 10)]);
}

#[test]
fn while_a_window_has_shrunk_nothing_new_is_sent_and_what_was_is_sent_again() {
    let mut script = Script::established(plain());
    script.receive_window(1, 5_000);
    script.write(8_000);
    assert_eq!(script.sent().len(), 5);
    script.receive_window(1_001, 2_000);
    script.sent_nothing();
    script.expire();
    assert_eq!(script.sent_ranges(), [(1_001, 1_000)]);
    script.receive_window(5_001, 3_000);
    assert_eq!(script.sent_ranges()[0], (5_001, 1_000));
}

/// A connection to a peer that counts its window in eight bytes.
fn scaled() -> Script {
    let mut script = Script::connecting(Config { window_scaling: true, ..plain() });
    script.sent_one();
    let mut answer = Header { syn: true, ..script.header(0, Some(1)) };
    (answer.options.window_scale, answer.options.mss) = (Some(3), Some(1_000));
    script.receive_header(answer, b"");
    script.sent_one();
    script
}

#[test]
fn an_acknowledgement_is_not_numbered_before_what_a_rounded_window_has_taken() {
    let mut script = scaled();
    script.receive_window(1, 125);
    script.write(1_000);
    assert_eq!(script.sent_ranges(), [(1, 1_000)]);
    // 500 of 1,000 bytes are left, and told as 62 times 8.
    let mut header = script.header(1, Some(501));
    header.window = 62;
    script.receive_header(header.clone(), &[0; 1_000]);
    header.seq += 1_000;
    script.receive_header(header, &[0; 1_000]);
    assert_eq!(script.sent().last().map(|ack| (ack.at(), ack.acks())), Some((1_001, Some(2_001))));
}

#[test]
fn an_acknowledgement_is_not_numbered_behind_a_probe() {
    let mut script = scaled();
    script.receive_window(1, 0);
    script.write(1_000);
    script.sent_nothing();
    script.expire();
    assert_eq!(script.sent_ranges(), [(1, 1)]);
    let mut header = script.header(1, Some(1));
    header.window = 0;
    script.receive_header(header.clone(), &[0; 1_000]);
    header.seq += 1_000;
    script.receive_header(header, &[0; 1_000]);
    assert_eq!(script.sent().last().map(|ack| (ack.at(), ack.acks())), Some((1, Some(2_001))));
}

#[test]
fn an_older_segment_does_not_change_the_window() {
    let mut script = Script::established(plain());
    // The second of two segments overtakes the first, which is in the window, and has the smaller number.
    script.receive(4, Some(1), b"def");
    script.sent();
    let older = Header { window: 0, ..script.header(1, Some(1)) };
    script.receive_header(older, b"abc");
    assert_eq!(script.read(10), 6);
    script.sent();
    script.write(10);
    assert_eq!(script.sent_ranges(), [(1, 10)]);
}

#[test]
fn the_send_buffer_is_bounded_and_room_is_reported() {
    let mut script = Script::established(Config { send_buffer: 40_000, ..plain() });
    assert_eq!(script.connection.write(&[0; 90_000], script.now), Ok(40_000));
    assert_eq!(script.connection.write(&[0; 1], script.now), Err(WriteError::Blocked));
    script.sent();
    script.receive(1, Some(10_001), b"");
    assert_eq!(script.events(), []);
    script.sent();
    script.receive(1, Some(20_001), b"");
    assert_eq!(script.events(), [Event::Writable]);
    assert_eq!(script.connection.info().allocated, 40_000);
}

#[test]
fn room_is_reported_early_where_more_than_half_of_the_buffer_may_be_in_flight() {
    let mut script = Script::established(Config { send_buffer: 8_000, ..plain() });
    assert_eq!(script.connection.write(&[0; 9_000], script.now), Ok(8_000));
    script.sent();
    script.receive(1, Some(1_001), b"");
    assert_eq!(script.events(), []);
    script.receive(1, Some(2_001), b"");
    assert_eq!(script.events(), [Event::Writable]);
}
