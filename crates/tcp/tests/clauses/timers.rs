//! Timeouts.

use std::time::Duration;

use rheostat_tcp::{CloseReason, Config, KeepAlive};

use crate::script::{Script, plain};

#[test]
fn the_retransmission_timeout_doubles_and_the_user_timeout_ends_it() {
    let mut script =
        Script::established(Config { user_timeout: Duration::from_secs(20), ..plain() });
    script.write(10);
    let mut pauses = Vec::new();
    let reason = loop {
        script.sent();
        pauses.push(script.expire());
        if let Some(reason) = script.closed() {
            break reason;
        }
    };
    assert_eq!(pauses, [200, 400, 800, 1_600, 3_200, 6_400, 7_400]);
    assert_eq!(reason, CloseReason::UserTimeout);
    assert!(script.sent_one().header.rst);
}

#[test]
fn unanswered_probes_end_with_the_user_timeout() {
    let mut script =
        Script::established(Config { user_timeout: Duration::from_secs(20), ..plain() });
    script.receive_window(1, 0);
    script.write(10);
    let mut passed = 0;
    let reason = loop {
        script.sent();
        passed += script.expire();
        if let Some(reason) = script.closed() {
            break reason;
        }
    };
    assert_eq!((reason, passed), (CloseReason::UserTimeout, 20_000));
}

#[test]
fn an_acknowledgement_of_new_data_starts_the_timer_anew_and_of_all_data_stops_it() {
    let mut script = Script::established(plain());
    script.write(2_000);
    script.sent();
    script.wait(150);
    script.receive(1, Some(1_001), b"");
    let timeout = script.connection.info().retransmission_timeout;
    assert_eq!(script.connection.next_deadline(), Some(script.now + timeout));
    script.receive(1, Some(2_001), b"");
    assert_eq!(script.connection.next_deadline(), None);
}

#[test]
fn round_trips_are_measured_and_retransmissions_are_not() {
    let mut script = Script::established(plain());
    script.write(10);
    script.sent();
    script.wait(80);
    script.receive(1, Some(11), b"");
    // The handshake took no time: 7/8 * 0 + 1/8 * 80 ms.
    assert_eq!(script.connection.info().round_trip, Some(Duration::from_millis(10)));
    script.write(10);
    script.sent();
    script.expire();
    script.sent();
    script.wait(5);
    script.receive(1, Some(21), b"");
    assert_eq!(script.connection.info().round_trip, Some(Duration::from_millis(10)));
}

fn with_keep_alive() -> Script {
    let keep_alive =
        KeepAlive { idle: Duration::from_secs(100), interval: Duration::from_secs(10), probes: 3 };
    Script::established(Config { keep_alive: Some(keep_alive), ..plain() })
}

#[test]
fn an_idle_peer_is_probed_and_given_up_when_it_does_not_answer() {
    let mut script = with_keep_alive();
    let mut pauses = Vec::new();
    for _ in 0..3 {
        pauses.push(script.expire());
        let probe = script.sent_one();
        assert_eq!((probe.at(), probe.payload.len()), (0, 0));
    }
    pauses.push(script.expire());
    assert_eq!(pauses, [100_000, 10_000, 10_000, 10_000]);
    assert_eq!(script.closed(), Some(CloseReason::KeepAliveTimeout));
}

#[test]
fn a_peer_that_answers_probes_is_kept() {
    let mut script = with_keep_alive();
    for _ in 0..20 {
        assert_eq!(script.expire(), 100_000);
        script.sent_one();
        script.receive(1, Some(1), b"");
    }
    assert_eq!(script.closed(), None);
}

#[test]
fn what_the_peer_sends_puts_probes_off_and_so_does_data_in_flight() {
    let mut script = with_keep_alive();
    script.wait(60_000);
    script.receive(1, Some(1), b"");
    assert_eq!(script.expire(), 100_000);
    script.sent_one();
    script.receive(1, Some(1), b"");
    script.wait(99_900);
    script.write(10);
    assert_eq!(script.sent_ranges(), [(1, 10)]);
    // The retransmission timer runs, and no probe comes at 100 s.
    assert_eq!(script.expire(), 200);
    assert_eq!(script.sent_ranges(), [(1, 10)]);
}

#[test]
fn unless_set_otherwise_timeouts_are_those_of_the_rfcs() {
    let config = Config::default();
    // RFC 9293, 3.8.3: R2 is at least 100 s, and 3 min for a SYN.
    assert!(config.user_timeout >= Duration::from_secs(100));
    assert!(config.connect_timeout >= Duration::from_secs(180));
    // 3.8.4: keep-alive is off. 3.8.6.3: less than half a second. RFC 6298, 2.1 and 2.5.
    assert!(config.keep_alive.is_none());
    assert!(config.ack_delay < Duration::from_millis(500));
    assert_eq!(config.initial_rto, Duration::from_secs(1));
    assert!(config.max_rto >= Duration::from_secs(60));
    // 3.7.4: Nagle's algorithm is on. 3.7.1: what a peer takes that does not say.
    assert!(config.nagle);
    assert_eq!(config.default_mss, 536);
}

#[test]
fn without_keep_alive_an_idle_connection_has_no_deadline() {
    assert_eq!(Script::established(plain()).connection.next_deadline(), None);
}

#[test]
fn a_probe_of_our_presence_is_answered() {
    let mut script = Script::established(plain());
    script.receive(0, Some(1), b"");
    assert_eq!(script.sent_one().acks(), Some(1));
}
