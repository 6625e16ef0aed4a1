//! How connections end.

use std::time::Duration;

use rheostat_tcp::{CloseReason, Config, Event, Header, ReadError, State, WriteError};

use crate::script::{Script, plain};

/// We finish, and the peer acknowledges that.
fn finished() -> Script {
    let mut script = Script::established(plain());
    script.connection.finish(script.now);
    let fin = script.sent_one();
    assert!(fin.header.fin && fin.at() == 1);
    assert_eq!(script.state(), State::FinWait1);
    script.receive(1, Some(2), b"");
    assert_eq!(script.state(), State::FinWait2);
    script
}

#[test]
fn we_may_finish_first() {
    let mut script = finished();
    script.receive_fin(1, 2);
    assert_eq!(script.state(), State::TimeWait);
    assert_eq!(script.sent_one().acks(), Some(2));
    assert_eq!(script.events(), [Event::PeerFinished, Event::Closed(CloseReason::Finished)]);
    assert_eq!(script.expire(), 60_000);
    assert_eq!((script.state(), script.connection.next_deadline()), (State::Closed, None));
}

#[test]
fn the_peer_may_finish_first() {
    let mut script = Script::established(plain());
    script.receive_fin(1, 1);
    assert_eq!((script.state(), script.sent_one().acks()), (State::CloseWait, Some(2)));
    script.write(5);
    assert_eq!(script.sent_ranges(), [(1, 5)]);
    script.connection.finish(script.now);
    assert!(script.sent_one().header.fin);
    assert_eq!(script.state(), State::LastAck);
    script.receive(2, Some(7), b"");
    assert_eq!((script.state(), script.closed()), (State::Closed, Some(CloseReason::Finished)));
    assert_eq!(script.connection.next_deadline(), None);
}

#[test]
fn both_may_finish_at_the_same_time() {
    let mut script = Script::established(plain());
    script.connection.finish(script.now);
    script.sent_one();
    script.receive_fin(1, 1);
    assert_eq!((script.state(), script.sent_one().acks()), (State::Closing, Some(2)));
    script.receive(2, Some(2), b"");
    assert_eq!(script.state(), State::TimeWait);
    script.sent_nothing();
}

#[test]
fn an_acknowledgement_of_our_fin_may_come_with_the_peers() {
    let mut script = Script::established(plain());
    script.connection.finish(script.now);
    script.sent_one();
    script.receive_fin(1, 2);
    assert_eq!((script.state(), script.sent_one().acks()), (State::TimeWait, Some(2)));
}

#[test]
fn after_finishing_data_still_arrives() {
    let mut script = finished();
    script.receive(1, Some(2), b"more");
    assert_eq!(script.read(10), 4);
    assert_eq!(script.connection.write(b"x", script.now), Err(WriteError::Closed));
}

#[test]
fn a_fin_counts_when_everything_before_it_has_arrived() {
    let mut script = Script::established(plain());
    script.receive_fin(5, 1);
    assert_eq!((script.state(), script.sent_one().acks()), (State::Established, Some(1)));
    script.receive(1, Some(1), b"abcd");
    assert_eq!((script.state(), script.sent_one().acks()), (State::CloseWait, Some(6)));
    assert_eq!((script.read(10), script.read(10)), (4, 0));
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut script = Script::established(plain());
    script.connection.finish(script.now);
    let fin = script.sent_one();
    script.expire();
    assert_eq!(script.sent_one(), fin);
}

#[test]
fn time_wait_answers_a_repeated_fin_and_ignores_resets() {
    let mut script = finished();
    script.receive_fin(1, 2);
    script.sent_one();
    let reset = Header { rst: true, ..script.header(2, None) };
    script.receive_header(reset, b"");
    assert_eq!(script.state(), State::TimeWait);
    script.wait(10_000);
    script.receive_fin(1, 2);
    assert_eq!((script.sent_one().at(), script.expire()), (2, 60_000));
}

#[test]
fn closing_with_unread_bytes_resets() {
    let mut script = Script::established(plain());
    script.receive(1, Some(1), b"unread");
    script.connection.close(script.now);
    let reset = script.sent_one();
    assert!(reset.header.rst && reset.at() == 1);
    assert_eq!(script.closed(), Some(CloseReason::Aborted));
}

#[test]
fn data_after_closing_is_answered_with_a_reset() {
    let mut script = Script::established(plain());
    script.connection.close(script.now);
    script.sent_one();
    script.receive(1, Some(2), b"late");
    assert!(script.sent_one().header.rst);
    assert_eq!(script.closed(), Some(CloseReason::DataAfterClose));
}

#[test]
fn a_peer_that_never_closes_is_given_up_after_closing() {
    let mut script = Script::established(plain());
    script.connection.close(script.now);
    script.sent_one();
    script.receive(1, Some(2), b"");
    assert_eq!(script.expire(), 60_000);
    assert_eq!(script.closed(), Some(CloseReason::FinWaitTimeout));
    assert!(script.sent_one().header.rst);
}

#[test]
fn a_peer_may_keep_its_direction_open_for_ever_after_finishing() {
    let script = finished();
    assert_eq!(script.connection.next_deadline(), None);
}

#[test]
fn aborting_resets_and_ends_reading_and_writing() {
    let mut script = Script::established(Config { ..plain() });
    script.connection.abort();
    assert!(script.sent_one().header.rst);
    assert_eq!(script.connection.read(&mut [0]), Err(ReadError::Closed));
    assert_eq!(script.connection.write(b"x", script.now), Err(WriteError::Closed));
    assert_eq!(script.connection.next_deadline(), None);
}

#[test]
fn with_linger_the_connection_is_reset_when_the_peer_does_not_acknowledge_in_time() {
    let mut script = Script::established(plain());
    script.write(100);
    script.connection.close_within(Duration::from_millis(150), script.now);
    assert_eq!(script.sent_ranges(), [(1, 100)]);
    assert_eq!(script.expire(), 150);
    assert!(script.sent_one().header.rst);
    assert_eq!(script.closed(), Some(CloseReason::LingerTimeout));
}

#[test]
fn with_linger_a_peer_that_acknowledges_in_time_closes_as_ever() {
    let mut script = Script::established(plain());
    script.write(100);
    script.connection.close_within(Duration::from_millis(150), script.now);
    script.sent();
    script.receive(1, Some(102), b"");
    assert_eq!(script.state(), State::FinWait2);
    assert!(script.expire() > 150);
}

#[test]
fn without_time_to_linger_closing_resets() {
    let mut script = Script::established(plain());
    script.write(100);
    script.connection.close_within(Duration::ZERO, script.now);
    assert!(script.sent_one().header.rst);
    assert_eq!(script.closed(), Some(CloseReason::Aborted));
}
