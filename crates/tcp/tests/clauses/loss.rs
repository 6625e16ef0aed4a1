//! Losses and their repair.

use rheostat_tcp::Config;
use rheostat_tcp::congestion::Algorithm;

use crate::script::{Script, plain};

/// Ten segments in flight.
fn ten_in_flight(sack: bool) -> Script {
    let mut script =
        Script::established(Config { sack, congestion: Algorithm::NewReno, ..plain() });
    script.write(50_000);
    assert_eq!(script.sent().len(), 10);
    script
}

#[test]
fn three_duplicates_send_the_first_segment_again_and_two_do_not() {
    let mut script = ten_in_flight(false);
    for _ in 0..2 {
        script.receive(1, Some(1), b"");
        // Limited transmit: a segment has left the network.
        assert_eq!(script.sent().iter().filter(|sent| sent.at() == 1).count(), 0);
    }
    script.receive(1, Some(1), b"");
    assert_eq!(script.sent_ranges()[0], (1, 1_000));
}

#[test]
fn each_of_the_first_two_duplicates_lets_one_new_segment_leave() {
    let mut script = ten_in_flight(false);
    script.receive(1, Some(1), b"");
    assert_eq!(script.sent_ranges(), [(10_001, 1_000)]);
    script.receive(1, Some(1), b"");
    assert_eq!(script.sent_ranges(), [(11_001, 1_000)]);
}

#[test]
fn a_fast_recovery_halves_the_window() {
    let mut script = ten_in_flight(false);
    for _ in 0..3 {
        script.receive(1, Some(1), b"");
    }
    let info = script.connection.info();
    assert_eq!((info.congestion_window, info.threshold), (5_000, 5_000));
}

#[test]
fn segments_with_data_or_another_window_are_no_duplicates() {
    let mut with_data = ten_in_flight(false);
    let mut with_windows = ten_in_flight(false);
    for i in 0..5 {
        // All with the window of the handshake.
        with_data.receive(1 + i, Some(1), b"x");
        with_windows.receive_window(1, 50_000 + i as u16);
    }
    for mut script in [with_data, with_windows] {
        assert!(script.sent().iter().all(|sent| sent.at() != 1));
        assert_eq!(script.connection.info().congestion_window, 10_000);
    }
}

#[test]
fn a_partial_acknowledgement_sends_the_next_segment_again_and_a_full_one_ends_the_recovery() {
    let mut script = ten_in_flight(false);
    for _ in 0..3 {
        script.receive(1, Some(1), b"");
    }
    script.sent();
    script.receive(1, Some(3_001), b"");
    assert_eq!(script.sent_ranges()[0], (3_001, 1_000));
    script.receive(1, Some(10_001), b"");
    assert!(script.sent().iter().all(|sent| sent.at() >= 10_001));
    assert_eq!(script.connection.info().congestion_window, 5_000);
}

#[test]
fn with_sack_what_is_missing_is_sent_again_and_nothing_else() {
    let mut script = ten_in_flight(true);
    // The first and the fourth are lost.
    script.receive_sack(1, &[(1_001, 2_001)]);
    script.receive_sack(1, &[(1_001, 3_001)]);
    script.sent();
    script.receive_sack(1, &[(4_001, 5_001), (1_001, 3_001)]);
    assert_eq!(script.sent_ranges()[0], (1, 1_000));
    script.receive_sack(1, &[(4_001, 8_001), (1_001, 3_001)]);
    script.receive_sack(1, &[(4_001, 10_001), (1_001, 3_001)]);
    let again: Vec<_> = script.sent_ranges().into_iter().filter(|(at, _)| *at < 10_001).collect();
    assert_eq!(again, [(3_001, 1_000)]);
}

#[test]
fn with_sack_acknowledgements_that_tell_nothing_new_are_no_duplicates() {
    let mut script = ten_in_flight(true);
    for _ in 0..5 {
        script.receive_sack(1, &[(1_001, 2_001)]);
    }
    assert!(script.sent().iter().all(|sent| sent.at() != 1));
}

#[test]
fn reports_of_duplicates_are_not_taken_for_losses() {
    let mut script = ten_in_flight(true);
    script.receive_sack(2_001, &[]);
    script.sent();
    for _ in 0..5 {
        script.receive_sack(2_001, &[(1, 1_001)]);
    }
    assert!(script.sent().iter().all(|sent| sent.at() > 10_000));
    assert_eq!(script.connection.info().retransmitted, 0);
}

#[test]
fn in_a_recovery_no_more_is_in_flight_than_the_window_allows() {
    let mut script = ten_in_flight(true);
    for sacked in 1..=3 {
        script.receive_sack(1, &[(1_001, 1_001 + 1_000 * sacked)]);
    }
    // 10 to 12 segments, of which 3 have arrived and 1 is lost; at most 6 or so may be in flight.
    let ranges = script.sent_ranges();
    assert_eq!(ranges.iter().filter(|(at, _)| *at == 1).count(), 1);
    assert!(ranges.len() <= 4, "{ranges:?}");
    script.receive_sack(1, &[(1_001, 5_001)]);
    script.sent_nothing();
}

#[test]
fn a_timeout_sends_one_segment_and_then_starts_slowly() {
    let mut script = ten_in_flight(false);
    script.expire();
    assert_eq!(script.sent_ranges(), [(1, 1_000)]);
    assert_eq!(script.connection.info().congestion_window, 1_000);
    script.receive(1, Some(1_001), b"");
    assert_eq!(script.sent_ranges(), [(1_001, 1_000), (2_001, 1_000)]);
}

#[test]
fn after_a_timeout_what_the_peer_has_reported_is_not_relied_upon() {
    let mut script = ten_in_flight(true);
    script.receive_sack(1, &[(1_001, 2_001)]);
    script.sent();
    script.expire();
    script.sent();
    script.receive_sack(1_001, &[]);
    assert_eq!(script.sent_ranges()[0], (1_001, 1_000));
}

#[test]
fn after_a_timeout_what_is_reported_again_is_not_sent_again() {
    let mut script = ten_in_flight(true);
    script.expire();
    script.sent();
    script.receive_sack(1_001, &[(2_001, 10_001)]);
    let ranges = script.sent_ranges();
    assert_eq!(ranges[..2], [(1_001, 1_000), (10_001, 1_000)]);
}

#[test]
fn what_is_sent_again_is_what_was_sent() {
    let mut script = Script::established(plain());
    let bytes: Vec<u8> = (0..3_000_u32).map(|i| (i % 251) as u8).collect();
    script.connection.write(&bytes, script.now).unwrap();
    script.sent();
    script.expire();
    assert_eq!(script.sent_one().payload, &bytes[..1_000]);
    // The peer has got half of it, which is sent from the middle of what was a segment.
    script.receive(1, Some(1_501), b"");
    assert_eq!(script.sent()[0].payload, &bytes[1_500..2_500]);
}

/// Ten segments in flight, and nothing more to send.
fn last_ten_in_flight(sack: bool) -> Script {
    let mut script =
        Script::established(Config { sack, congestion: Algorithm::NewReno, ..plain() });
    script.write(10_000);
    assert_eq!(script.sent().len(), 10);
    script
}

#[test]
fn a_loss_at_the_end_is_repaired_by_a_rescue_once() {
    let mut script = last_ten_in_flight(true);
    // The first and the last segment are lost.
    script.receive_sack(1, &[(1_001, 9_001)]);
    assert_eq!(script.sent_ranges(), [(1, 1_000), (9_001, 1_000)]);
    script.receive_sack(1, &[(1_001, 9_001)]);
    script.sent_nothing();
    script.receive(1, Some(10_001), b"");
    assert_eq!(script.connection.info().retransmitted, 2);
}

#[test]
fn a_hole_that_is_not_known_to_be_lost_is_sent_again_before_a_rescue() {
    let mut script = last_ten_in_flight(true);
    // The first is lost. Of what is missing from 4,001 on, too little above it has arrived.
    script.receive_sack(1, &[(1_001, 4_001), (6_001, 8_001)]);
    assert_eq!(script.sent_ranges(), [(1, 1_000)]);
    // The window of 5,000 bytes has room for one more than the four that are in flight.
    script.receive_sack(4_001, &[(6_001, 8_001)]);
    assert_eq!(script.sent_ranges(), [(4_001, 1_000)]);
}

#[test]
fn an_end_that_was_sent_again_needs_no_rescue() {
    let mut script = last_ten_in_flight(true);
    // The first is the only one that is missing.
    script.receive_sack(1, &[(1_001, 10_001)]);
    assert_eq!(script.sent_ranges(), [(1, 1_000)]);
    script.receive_sack(1, &[(1_001, 10_001)]);
    script.sent_nothing();
}

#[test]
fn without_sack_there_is_no_rescue() {
    let mut script = last_ten_in_flight(false);
    for _ in 0..9 {
        script.receive(1, Some(1), b"");
    }
    assert_eq!(script.sent_ranges(), [(1, 1_000)]);
}

#[test]
fn new_data_goes_before_a_rescue() {
    let mut script = last_ten_in_flight(true);
    script.receive_sack(1, &[(1_001, 9_001)]);
    script.write(500);
    assert_eq!(script.sent_ranges(), [(1, 1_000), (10_001, 500), (9_501, 1_000)]);
}
