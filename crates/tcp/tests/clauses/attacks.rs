//! Segments of others, and of peers that misbehave.

use rheostat_tcp::{
    CloseReason, Config, Event, Header, Options, SequenceNumber, State, Timestamps,
};

use crate::script::{OURS, Script, plain};

fn reset_at(script: &mut Script, seq: u32) {
    let reset = Header { rst: true, ..script.header(seq, None) };
    script.receive_header(reset, b"");
}

#[test]
fn a_reset_at_the_expected_number_resets() {
    let mut script = Script::established(plain());
    reset_at(&mut script, 1);
    assert_eq!(script.events(), [Event::Closed(CloseReason::Reset)]);
    script.sent_nothing();
}

#[test]
fn a_reset_elsewhere_in_the_window_is_challenged_and_outside_ignored() {
    let mut script = Script::established(plain());
    reset_at(&mut script, 100);
    assert_eq!(script.sent_one().acks(), Some(1));
    script.wait(1_000);
    reset_at(&mut script, 20_000);
    script.sent_nothing();
    assert_eq!(script.state(), State::Established);
}

#[test]
fn a_syn_in_a_connection_is_challenged() {
    let mut script = Script::established(plain());
    // Expected, elsewhere in the window, behind it, before it, and with an acknowledgement.
    for (seq, ack) in [(1, None), (500, None), (40_000, None), (0, None), (1, Some(1))] {
        let syn = Header { syn: true, ..script.header(seq, ack) };
        script.receive_header(syn, b"");
        assert_eq!((script.sent_one().acks(), script.state()), (Some(1), State::Established));
        script.wait(1_000);
    }
}

#[test]
fn a_syn_without_a_stamp_is_challenged_on_a_connection_that_uses_stamps() {
    let mut script = Script::established(Config { timestamps: true, ..plain() });
    for seq in [0, 1, 500, 40_000] {
        let bare = Options::default();
        let syn = Header { syn: true, options: bare, ..script.header(seq, None) };
        script.receive_header(syn, b"");
        assert_eq!((script.sent_one().acks(), script.state()), (Some(1), State::Established));
        script.wait(1_000);
    }
}

#[test]
fn a_segment_whose_acknowledgement_is_not_acceptable_sets_no_stamp() {
    let config = Config { timestamps: true, ..plain() };
    let header = |ack: Option<SequenceNumber>| {
        let mut header = Script::established(config.clone()).header(1, None);
        header.ack = ack;
        header.options.timestamps = Some(Timestamps { value: 1_000 + (1 << 30), echo: 0 });
        header
    };
    let future = Some(SequenceNumber(OURS) + 1_000_000);
    let past = Some(SequenceNumber(OURS) - 1_000_000);
    for forged in [
        header(None),
        Header { syn: true, ..header(None) },
        Header { syn: true, ..header(future) },
        header(future),
        header(past),
        Header { fin: true, ..header(future) },
    ] {
        let mut script = Script::established(config.clone());
        script.receive_header(forged.clone(), b"evil");
        script.sent();
        script.wait(1_000);
        script.receive(1, Some(1), b"peer");
        assert_eq!(script.connection.info().unread, 4, "{forged:?}");
    }
}

#[test]
fn a_handshake_that_acknowledges_another_syn_sets_no_stamp() {
    let mut script = Script::accepting(Config { timestamps: true, ..plain() });
    script.sent_one();
    let mut forged = script.header(1, Some(77));
    forged.options.timestamps = Some(Timestamps { value: 1_000 + (1 << 30), echo: 0 });
    script.receive_header(forged, b"");
    assert!(script.sent_one().header.rst);
    script.receive(1, Some(1), b"");
    assert_eq!(script.state(), State::Established);
}

#[test]
fn acknowledgements_of_the_future_and_the_distant_past_are_challenged_and_their_data_dropped() {
    let mut script = Script::established(plain());
    script.write(100);
    script.sent_one();
    script.receive(1, Some(102), b"evil");
    assert_eq!(script.sent_one().acks(), Some(1));
    script.wait(1_000);
    let past = Header {
        ack: Some(script.header(0, Some(1)).ack.unwrap() - 70_000),
        ..script.header(1, Some(1))
    };
    script.receive_header(past, b"evil");
    assert_eq!(script.sent_one().acks(), Some(1));
    assert_eq!(script.connection.info().unread, 0);
}

#[test]
fn bytes_that_were_never_sent_cannot_be_acknowledged() {
    for sent in [0, 100] {
        let mut script = Script::established(plain());
        if sent > 0 {
            script.write(sent);
            script.sent();
            script.receive(1, Some(1 + sent as u32), b"");
        }
        // Within a window of the peer behind what is acknowledged, but before the first byte.
        let forged = Header { ack: Some(SequenceNumber(OURS)), ..script.header(1, None) };
        script.receive_header(forged, b"evil");
        assert_eq!((script.sent_one().acks(), script.connection.info().unread), (Some(1), 0));
        script.receive(1, Some(1), b"peer");
        assert_eq!(script.read(10), 4, "the oldest that may be");
    }
}

#[test]
fn challenges_are_limited_to_two_a_second() {
    let mut script = Script::established(plain());
    let mut times = Vec::new();
    for ms in 0..10_000 {
        reset_at(&mut script, 100);
        times.extend(script.sent().iter().map(|_| ms));
        script.wait(1);
    }
    let pauses: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(times.len() >= 10, "{times:?}");
    assert!(pauses.iter().all(|ms| (500..=1_000).contains(ms)), "{pauses:?}");
    assert!(pauses.iter().any(|ms| *ms != pauses[0]), "they vary: {pauses:?}");
}

#[test]
fn two_ends_that_disagree_do_not_acknowledge_each_other_without_end() {
    let mut script = Script::established(plain());
    let mut answers = 0;
    for _ in 0..100 {
        script.receive(30_000, Some(1), b"");
        answers += script.sent().len();
    }
    assert_eq!(answers, 1);
}

#[test]
fn a_segment_without_acknowledgement_changes_nothing() {
    let mut script = Script::established(plain());
    script.receive(1, None, b"data");
    script.sent_nothing();
    assert_eq!(script.connection.info().unread, 0);
}

#[test]
fn blocks_about_what_was_never_sent_change_nothing() {
    let mut script = Script::established(Config { sack: true, ..plain() });
    script.write(5_000);
    script.sent();
    for i in 0..50 {
        script.receive_sack(1, &[(5_001 + i, 9_000), (60_000, 60_001)]);
    }
    script.sent_nothing();
    assert_eq!(script.connection.info().retransmitted, 0);
}

#[test]
fn segments_and_blocks_half_the_numbers_away_change_nothing() {
    let mut script = Script::established(Config { sack: true, ..plain() });
    script.write(5_000);
    script.sent();
    // Found by fuzzing: comparisons do not hold across so much.
    script.receive((1 << 31) - 10, Some(1), &[0; 1_000]);
    script.receive_sack(1, &[(1 << 31, u32::MAX - 1_100)]);
    assert_eq!(script.sent_one().acks(), Some(1));
    assert_eq!(script.connection.info().unread, 0);
}

#[test]
fn data_beyond_the_end_that_the_peer_has_named_is_dropped() {
    let mut script = Script::established(plain());
    script.receive_fin(5, 1);
    script.sent();
    script.receive(5, Some(1), b"beyond");
    script.sent();
    script.receive(1, Some(1), b"abcd");
    assert_eq!(script.state(), State::CloseWait);
    assert_eq!(script.read(100), 4);
}

#[test]
fn an_end_before_data_that_has_arrived_is_ignored() {
    let mut script = Script::established(plain());
    script.receive(11, Some(1), b"beyond");
    script.receive_fin(5, 1);
    script.receive(1, Some(1), b"abcdefghij");
    assert_eq!((script.state(), script.read(100)), (State::Established, 16));
}

#[test]
fn a_tiny_segment_size_is_raised_to_what_leaves_room_for_options() {
    let mut script = Script::connecting(plain());
    script.sent_one();
    let mut answer = Header { syn: true, ..script.header(0, Some(1)) };
    answer.options.mss = Some(1);
    script.receive_header(answer, b"");
    script.sent();
    script.write(500);
    assert_eq!(script.sent_ranges()[0], (1, 88));
}
