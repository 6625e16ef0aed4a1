//! Handshakes.

use rheostat_tcp::{
    CloseReason, Config, Connection, Event, Header, Initial, Segment, SequenceNumber, State,
};

use crate::script::{OURS, Script, THEIRS, plain};

#[test]
fn a_handshake_takes_three_segments() {
    let mut script = Script::connecting(plain());
    let syn = script.sent_one();
    assert!(syn.header.syn && syn.header.ack.is_none());
    let answer = Header { syn: true, ..script.header(0, Some(1)) };
    script.receive_header(answer, b"");
    let ack = script.sent_one();
    assert_eq!((ack.at(), ack.acks(), ack.header.syn), (1, Some(1), false));
    assert_eq!(script.events(), [Event::Established]);
}

#[test]
fn both_may_open_at_the_same_time() {
    let mut script = Script::connecting(plain());
    script.sent_one();
    let syn = Header { syn: true, ..script.header(0, None) };
    script.receive_header(syn, b"");
    assert_eq!(script.state(), State::SynReceived);
    let answer = script.sent_one();
    assert_eq!((answer.at(), answer.acks(), answer.header.syn), (0, Some(1), true));
    let theirs = Header { syn: true, ..script.header(0, Some(1)) };
    script.receive_header(theirs, b"");
    assert_eq!(script.state(), State::Established);
    assert_eq!(script.sent_one().acks(), Some(1));
}

#[test]
fn options_are_offered_and_used_only_if_both_offer_them() {
    let mut script = Script::connecting(Config::default());
    let options = script.sent_one().header.options;
    assert_eq!(
        (options.mss, options.window_scale, options.sack_permitted),
        (Some(1_460), Some(7), true)
    );
    assert!(options.timestamps.is_some());
    // The peer offers nothing.
    let answer = Header { syn: true, options: Default::default(), ..script.header(0, Some(1)) };
    script.receive_header(answer, b"");
    let ack = script.sent_one();
    assert!(ack.header.options.is_empty(), "{:?}", ack.header.options);
    // Without scale the window is what sixteen bits hold.
    assert_eq!(ack.header.window, u16::MAX);
}

#[test]
fn an_answer_offers_only_what_was_offered() {
    let header = Header { seq: SequenceNumber(THEIRS), syn: true, ..Header::default() };
    let initial = Initial { sequence: SequenceNumber(OURS), stamp_offset: 0 };
    let now = rheostat_base::Time::ZERO;
    let syn = Segment { header, payload: &[] };
    let mut connection = Connection::accept(Config::default().into(), initial, &syn, now).unwrap();
    let answer = connection.poll_transmit(now).unwrap().header.options;
    assert_eq!((answer.mss, answer.len()), (Some(1_460), 4));
}

#[test]
fn a_peer_that_names_no_segment_size_gets_the_default() {
    let mut script = Script::connecting(plain());
    script.sent_one();
    let answer = Header { syn: true, ..script.header(0, Some(1)) };
    script.receive_header(answer, b"");
    script.sent_one();
    script.write(2_000);
    assert_eq!(script.sent_ranges()[0], (1, 536));
}

#[test]
fn options_make_room_in_segments_of_the_agreed_size() {
    let mut script = Script::established(Config { timestamps: true, ..plain() });
    script.write(3_000);
    assert_eq!(script.sent_ranges()[0], (1, 988));
}

#[test]
fn a_lost_syn_is_sent_again_with_growing_pauses_until_the_timeout() {
    let mut script = Script::connecting(plain());
    let mut pauses = Vec::new();
    while script.closed().is_none() {
        if script.connection.next_deadline().is_some() {
            for sent in script.sent() {
                assert!(sent.header.syn);
            }
            pauses.push(script.expire() / 1_000);
        }
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 57]);
    assert_eq!(script.state(), State::Closed);
}

#[test]
fn after_a_lost_syn_sending_starts_with_one_segment_and_three_seconds() {
    let mut script = Script::connecting(plain());
    script.sent_one();
    script.expire();
    script.sent_one();
    let answer = Header { syn: true, ..script.header(0, Some(1)) };
    script.receive_header(answer, b"");
    script.sent_one();
    let info = script.connection.info();
    assert_eq!(info.congestion_window, 536);
    assert_eq!(info.retransmission_timeout.as_secs(), 3);
}

#[test]
fn a_refused_connection_says_so() {
    let mut script = Script::connecting(plain());
    script.sent_one();
    let reset = Header { rst: true, ..script.header(0, Some(1)) };
    script.receive_header(reset, b"");
    assert_eq!(script.closed(), Some(CloseReason::Refused));
}

#[test]
fn a_reset_without_the_right_acknowledgement_refuses_nothing() {
    let mut script = Script::connecting(plain());
    script.sent_one();
    for ack in [None, Some(0), Some(2)] {
        let reset = Header { rst: true, ..script.header(0, ack) };
        script.receive_header(reset, b"");
    }
    assert_eq!((script.state(), script.closed()), (State::SynSent, None));
    script.sent_nothing();
}

#[test]
fn an_old_acknowledgement_in_the_handshake_is_reset() {
    let mut script = Script::connecting(plain());
    script.sent_one();
    let old = Header { syn: true, ..script.header(0, Some(77)) };
    script.receive_header(old, b"");
    let reset = script.sent_one();
    assert!(reset.header.rst);
    assert_eq!(reset.at(), 77);
    assert_eq!(script.state(), State::SynSent);
}

#[test]
fn a_peer_that_has_forgotten_its_connection_finds_out_and_resets_it() {
    let mut script = Script::established(plain());
    // It starts again, with another number, and is told where the old connection is.
    let syn = Header { syn: true, ..script.header(900_000, None) };
    script.receive_header(syn, b"");
    let told = script.sent_one();
    assert_eq!((told.at(), told.acks(), told.header.syn), (1, Some(1), false));
    // That acknowledges nothing of its new connection: it resets what it was told of.
    let reset = Header { seq: told.header.ack.unwrap(), rst: true, ..Header::default() };
    script.receive_header(reset, b"");
    assert_eq!(script.closed(), Some(CloseReason::Reset));
}

#[test]
fn after_forgetting_a_connection_we_reset_what_the_peer_still_has_of_it() {
    let mut script = Script::connecting(plain());
    script.sent_one();
    // Our SYN is challenged by one that has the old connection.
    script.receive(500, Some(77), b"");
    let reset = script.sent_one();
    assert!(reset.header.rst && reset.header.ack.is_none());
    assert_eq!((reset.at(), script.state()), (77, State::SynSent));
    // The next SYN may open.
    script.expire();
    assert!(script.sent_one().header.syn);
}

#[test]
fn a_repeated_syn_is_answered_again() {
    let mut script = Script::accepting(plain());
    let first = script.sent_one();
    let again = Header { syn: true, ..script.header(0, None) };
    script.receive_header(again, b"");
    assert_eq!(script.sent_one(), first);
}

#[test]
fn what_is_no_syn_opens_nothing() {
    let initial = Initial { sequence: SequenceNumber(OURS), stamp_offset: 0 };
    let base = Header { syn: true, ..Header::default() };
    let wrong = [
        Header { fin: true, ..base.clone() },
        Header { rst: true, ..base.clone() },
        Header { ack: Some(SequenceNumber(1)), ..base.clone() },
        Header { syn: false, ..base },
    ];
    for header in wrong {
        let segment = Segment { header, payload: &[] };
        let now = rheostat_base::Time::ZERO;
        assert!(Connection::accept(plain().into(), initial, &segment, now).is_none());
    }
}

#[test]
fn what_is_written_before_the_connection_is_established_is_sent_afterwards() {
    let mut script = Script::accepting(plain());
    script.write(10);
    assert!(script.sent_one().payload.is_empty());
    script.receive(1, Some(1), b"");
    assert_eq!(script.sent_ranges(), [(1, 10)]);
}
