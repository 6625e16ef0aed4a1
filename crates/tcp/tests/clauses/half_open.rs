//! Handshakes that a listener keeps in a few bytes (RFC 4987, 3.4).

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::Time;
use rheostat_tcp::{
    Challenge, Config, Event, HalfOpen, HalfOpenOutcome, HalfOpenTimeout, Header, Ignored, Initial,
    Options, Segment, SendReason, SequenceNumber, State, Timestamps,
};

use crate::script::{OURS, THEIRS, plain};

const TIMEOUT: Duration = Duration::from_secs(60);
const INITIAL: Initial = Initial { sequence: SequenceNumber(OURS), stamp_offset: 0 };

fn at(ms: u64) -> Time {
    Time::from_secs(1) + Duration::from_millis(ms)
}

fn header(seq: u32, ack: Option<u32>) -> Header {
    Header {
        seq: SequenceNumber(THEIRS) + seq,
        ack: ack.map(|ack| SequenceNumber(OURS) + ack),
        window: 60_000,
        ..Header::default()
    }
}

fn syn(options: Options) -> Header {
    Header { syn: true, options, ..header(0, None) }
}

fn all_options() -> Options {
    Options {
        mss: Some(1_400),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 500, echo: 0 }),
        ..Options::default()
    }
}

/// A half-open connection that has sent its first SYN with ACK.
fn half_open(config: &Config, options: Options) -> HalfOpen {
    let syn = Segment { header: syn(options), payload: &[] };
    let mut half_open = HalfOpen::accept(config, INITIAL, &syn, TIMEOUT, at(0)).unwrap();
    let (answer, reason) = half_open.answer(config, at(0));
    assert_eq!((answer.seq, answer.ack), (SequenceNumber(OURS), Some(SequenceNumber(THEIRS) + 1)));
    assert!(answer.syn && reason == SendReason::Handshake);
    half_open
}

fn handle(half_open: &mut HalfOpen, header: Header, now: Time) -> HalfOpenOutcome {
    half_open.handle_segment(&Segment { header, payload: &[] }, &plain(), now)
}

#[test]
fn the_acknowledgement_makes_a_connection_with_what_was_agreed_on() {
    let config = Config::default();
    let mut half_open = half_open(&config, all_options());
    let stamps = Some(Timestamps { value: 530, echo: 1_000 });
    let options = Options { timestamps: stamps, ..Options::default() };
    let ack = Header { options, window: 400, ..header(1, Some(1)) };
    let segment = Segment { header: ack, payload: b"hello" };
    let outcome = half_open.handle_segment(&segment, &config, at(30));
    assert_eq!(outcome, HalfOpenOutcome::Completes);
    let mut connection = half_open.establish(Arc::new(config), at(30));
    assert_eq!(connection.state(), State::SynReceived);
    connection.handle_segment(&segment, at(30));
    assert_eq!(connection.state(), State::Established);
    assert_eq!(connection.poll_event(), Some(Event::Established));
    assert_eq!(connection.peek()[0], b"hello");
    let info = connection.info();
    assert_eq!((info.mss, info.send_window), (1_400, 400 << 7));
    assert_eq!(info.round_trip, Some(Duration::from_millis(30)));
    assert_eq!(connection.broken_invariant(), None);
    // The next segment is stamped, and acknowledges what came with the handshake.
    connection.write(b"x", at(30)).unwrap();
    let answer = connection.poll_transmit(at(30)).unwrap().header;
    let expected = (SequenceNumber(OURS) + 1, Some(segment.header.seq + 5));
    assert_eq!((answer.seq, answer.ack), expected);
    assert_eq!(answer.options.timestamps.map(|stamps| stamps.echo), Some(530));
}

#[test]
fn five_syns_with_ack_are_sent_with_growing_pauses_and_the_handshake_ends_after_its_timeout() {
    let config = plain();
    let mut half_open = half_open(&config, Options::default());
    let mut sent = Vec::new();
    let over = loop {
        let due = half_open.next_deadline(&config);
        match half_open.handle_timeout(&config, due) {
            HalfOpenTimeout::Resends(answer) => {
                assert!(answer.syn && answer.ack.is_some());
                sent.push(due.since(at(0)).as_secs());
            }
            HalfOpenTimeout::Expired => break due.since(at(0)),
            HalfOpenTimeout::Nothing => panic!("nothing is due at the deadline"),
        }
    };
    assert_eq!((sent, over), (vec![1, 3, 7, 15], TIMEOUT));
    assert_eq!(half_open.handle_timeout(&config, at(59_999)), HalfOpenTimeout::Nothing);
}

#[test]
fn a_syn_that_arrives_again_is_answered_again() {
    let mut half_open = half_open(&plain(), Options::default());
    assert!(!half_open.was_answered_twice());
    let outcome = handle(&mut half_open, syn(Options::default()), at(10));
    let HalfOpenOutcome::Waits { ignored: None, challenge: None, answer: Some((answer, reason)) } =
        outcome
    else {
        panic!("{outcome:?}");
    };
    assert!(answer.syn && reason == SendReason::HandshakeAgain && half_open.was_answered_twice());
}

#[test]
fn a_reset_at_the_expected_number_ends_the_handshake_and_elsewhere_does_not() {
    let mut half_open = half_open(&plain(), Options::default());
    let reset = |seq| Header { rst: true, ..header(seq, None) };
    let elsewhere = handle(&mut half_open, reset(500), at(1));
    assert!(matches!(
        elsewhere,
        HalfOpenOutcome::Waits {
            ignored: Some(Ignored::ResetElsewhere),
            challenge: Some(Challenge::Sent),
            answer: Some((_, SendReason::Challenge)),
        }
    ));
    let outside = handle(&mut half_open, reset(900_000), at(1));
    assert!(matches!(outside, HalfOpenOutcome::Waits { challenge: None, answer: None, .. }));
    assert_eq!(handle(&mut half_open, reset(1), at(1)), HalfOpenOutcome::Reset);
}

#[test]
fn what_does_not_acknowledge_the_syn_does_not_open() {
    let mut half_open = half_open(&plain(), Options::default());
    for ack in [0, 2, 77_777] {
        assert_eq!(handle(&mut half_open, header(1, Some(ack)), at(1)), HalfOpenOutcome::Refuses);
    }
    let ignored = |outcome: HalfOpenOutcome| match outcome {
        HalfOpenOutcome::Waits { ignored, .. } => ignored,
        other => panic!("{other:?}"),
    };
    let none = handle(&mut half_open, header(1, None), at(1));
    assert_eq!(ignored(none), Some(Ignored::NoAcknowledgement));
    let outside = handle(&mut half_open, header(900_000, Some(1)), at(1));
    assert_eq!(ignored(outside), Some(Ignored::OutsideWindow));
    let other = handle(&mut half_open, Header { syn: true, ..header(9, None) }, at(1));
    assert_eq!(ignored(other), Some(Ignored::StraySyn));
    assert_eq!(handle(&mut half_open, header(1, Some(1)), at(1)), HalfOpenOutcome::Completes);
}

#[test]
fn a_segment_without_a_stamp_or_with_an_older_one_does_not_open() {
    let config = Config::default();
    let mut half_open = half_open(&config, all_options());
    let mut ignored = |stamp: Option<u32>| {
        let timestamps = stamp.map(|value| Timestamps { value, echo: 1_000 });
        let options = Options { timestamps, ..Options::default() };
        let header = Header { options, ..header(1, Some(1)) };
        match half_open.handle_segment(&Segment { header, payload: &[] }, &config, at(1)) {
            HalfOpenOutcome::Waits { ignored, .. } => ignored,
            HalfOpenOutcome::Completes => None,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ignored(None), Some(Ignored::NoStamp));
    assert_eq!(ignored(Some(499)), Some(Ignored::OldStamp));
    assert_eq!(ignored(Some(500)), None);
}

#[test]
fn challenges_of_a_half_open_connection_are_limited() {
    let mut half_open = half_open(&plain(), Options::default());
    let mut challenged = |ms| match handle(&mut half_open, header(900_000, Some(1)), at(ms)) {
        HalfOpenOutcome::Waits { challenge, answer, .. } => (challenge, answer.is_some()),
        other => panic!("{other:?}"),
    };
    assert_eq!(challenged(0), (Some(Challenge::Sent), true));
    assert_eq!(challenged(1), (Some(Challenge::Withheld), false));
    assert_eq!(challenged(2_000), (Some(Challenge::Sent), true));
}
