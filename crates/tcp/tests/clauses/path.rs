//! Packets that were too big for the path (RFC 1191; RFC 8201; RFC 5927).

use rheostat_tcp::{MIN_PATH_MSS, PathReport, SequenceNumber};

use crate::script::{OURS, Script, plain};

fn report(script: &mut Script, quoted: u32, mss: u16) -> PathReport {
    script.connection.handle_too_big(SequenceNumber(OURS) + quoted, mss)
}

#[test]
fn what_was_too_big_is_sent_again_at_once_in_smaller_segments() {
    let mut script = Script::established(plain());
    script.write(3_000);
    assert_eq!(script.sent_ranges(), [(1, 1_000), (1_001, 1_000), (2_001, 1_000)]);
    let window = script.connection.info().congestion_window;
    assert_eq!(report(&mut script, 1, 600), PathReport::Lowered);
    let again = [(1, 600), (601, 600), (1_201, 600), (1_801, 600), (2_401, 600)];
    assert_eq!(script.sent_ranges(), again);
    // A dropped packet that was too big says nothing about congestion.
    assert_eq!(script.connection.info().congestion_window, window);
    script.receive(1, Some(3_001), b"");
    script.write(1_000);
    assert_eq!(script.sent_ranges(), [(3_001, 600), (3_601, 400)]);
}

#[test]
fn what_was_sent_before_the_quoted_segment_is_not_sent_again() {
    let mut script = Script::established(plain());
    script.write(3_000);
    script.sent();
    assert_eq!(report(&mut script, 2_001, 700), PathReport::Lowered);
    assert_eq!(script.sent_ranges(), [(2_001, 700), (2_701, 300)]);
}

#[test]
fn a_report_that_quotes_nothing_in_flight_is_not_believed() {
    let mut script = Script::established(plain());
    script.write(2_000);
    script.sent();
    script.receive(1, Some(1_001), b"");
    for quoted in [0, 1_000, 2_001, 500_000, 1 << 31] {
        assert_eq!(report(&mut script, quoted, 600), PathReport::Implausible, "{quoted}");
    }
    script.sent_nothing();
    assert_eq!(script.connection.info().mss, 1_000);
    assert_eq!(report(&mut script, 1_001, 600), PathReport::Lowered);
}

#[test]
fn reports_neither_raise_the_size_nor_lower_it_without_end() {
    let mut script = Script::established(plain());
    script.write(1_000);
    script.sent();
    assert_eq!(report(&mut script, 1, 1_000), PathReport::Unchanged);
    assert_eq!(report(&mut script, 1, 68), PathReport::Lowered);
    assert_eq!(script.connection.info().mss, u32::from(MIN_PATH_MSS));
    assert_eq!(report(&mut script, 1, 0), PathReport::Unchanged);
}

#[test]
fn the_size_may_rise_again_up_to_what_was_agreed_on() {
    let mut script = Script::established(plain());
    script.connection.set_path_mss(600);
    script.write(600);
    assert_eq!(script.sent_ranges(), [(1, 600)]);
    script.connection.set_path_mss(9_000);
    script.write(2_000);
    assert_eq!(script.sent_ranges(), [(601, 1_000), (1_601, 1_000)]);
}

#[test]
fn a_path_that_is_known_before_the_handshake_counts_after_it() {
    let mut script = Script::accepting(plain());
    script.connection.set_path_mss(600);
    script.sent_one();
    script.receive(1, Some(1), b"");
    script.write(700);
    assert_eq!(script.sent_ranges(), [(1, 600), (601, 100)]);
}
