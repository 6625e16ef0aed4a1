//! Floods of SYNs and of other segments that open nothing (RFC 4987): clients connect all the same, at once.

use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

use rheostat_base::DropReason;
use rheostat_packet::wire::TcpSegment;
use rheostat_packet::{Headers, LinkType};
use rheostat_serve::echo::Echo;
use rheostat_serve::{ListenerConfig, ServeConfig, SynCookieMode};
use rheostat_tcp::{Header, Options, Segment, SequenceNumber, State, Timestamps};

use crate::rig::{Client, LOCAL_V4, LOCAL_V6, PORT, Plan, Rig, each_way};

const SECOND: Duration = Duration::from_secs(1);
/// A connection and an echo take so long without a loss: what waits for a retransmission takes a second.
const AT_ONCE: Duration = Duration::from_millis(20);
const ISN: u32 = 5_000;

fn limits(half_open: usize, syn_cookies: SynCookieMode) -> ServeConfig {
    ServeConfig { half_open, syn_cookies, ..ServeConfig::default() }
}

/// The source of the flood's segment `number`.
fn source(local: &str, number: u32) -> IpAddr {
    let [.., a, b] = number.to_be_bytes();
    match local.contains(':') {
        false => IpAddr::from([10, 0, 0, 100 + b % 100]),
        true => IpAddr::from([0xfd00, 0, 0, 0, 0, 9, a.into(), b.into()]),
    }
}

/// Sends segments with these flags, each from an end of its own that answers nothing.
fn flood(rig: &mut Rig, local: &str, numbers: Range<u32>, flags: &Header) {
    for number in numbers {
        let source = source(local, number).to_string();
        let port = 2_000 + (number % 50_000) as u16;
        let frames = Client::connect(local, &source, port, None, rig.now);
        let header = Header { seq: SequenceNumber(number << 8), window: 1_000, ..flags.clone() };
        rig.inject(frames.frame(&header, b""), port.into());
        if number % 100 == 99 {
            rig.step(&mut []);
        }
    }
    rig.step(&mut []);
    rig.stray.clear();
}

fn syns(rig: &mut Rig, local: &str, numbers: Range<u32>) {
    flood(rig, local, numbers, &Header { syn: true, ..Header::default() });
}

/// A client connects, and what it sends comes back, without a retransmission.
fn serve_one(rig: &mut Rig, local: &str, own: &str, port: u16) -> Client {
    let mut client = Client::connect(local, own, port, None, rig.now);
    client.outgoing = vec![b'x'; 5_000];
    let mut clients = [client];
    rig.run_until(&mut clients, AT_ONCE, |all| all[0].received.len() == 5_000);
    let [client] = clients;
    assert_eq!(client.tcp.info().retransmitted, 0);
    client
}

#[test]
fn behind_a_flood_of_syns_clients_connect_at_once_by_cookies_however_requests_are_handled() {
    for (local, own) in [(LOCAL_V4, "10.0.0.2"), (LOCAL_V6, "fd00::2")] {
        each_way(|plan| {
            let limits = limits(32, SynCookieMode::OnPressure);
            let mut rig = Rig::new(Echo, Plan { limits, ..plan() });
            let mut before = serve_one(&mut rig, local, own, 1_000);
            syns(&mut rig, local, 0..500);
            assert_eq!(rig.control.half_open(), 32);
            for port in 1_001..1_011 {
                let client = serve_one(&mut rig, local, own, port);
                let info = client.tcp.info();
                // What both offered is in use: scaled windows, and the agreed size less the stamps' room.
                // A window of a 64 KiB buffer, in units of the scale of one of 6 MiB.
                let (least, unit) = (60_000, 1 << 7);
                assert!(
                    info.send_window > least && info.send_window.is_multiple_of(unit),
                    "{info:?}"
                );
                assert_eq!(info.mss, 1_440);
            }
            let totals = rig.control.totals();
            assert_eq!((totals.syn_cookies_accepted, totals.syn_cookies_sent), (10, 478));
            assert_eq!((totals.half_open_evicted, totals.accepted), (0, 11));
            // The client that was there before goes on.
            before.outgoing = b"on".to_vec();
            let mut clients = [before];
            rig.run_until(&mut clients, AT_ONCE, |all| all[0].received.ends_with(b"on"));
            rig.finish();
        });
    }
}

#[test]
fn entries_that_a_second_has_passed_over_give_their_places_to_later_syns() {
    let mut rig =
        Rig::new(Echo, Plan { limits: limits(64, SynCookieMode::OnPressure), ..Plan::default() });
    syns(&mut rig, LOCAL_V4, 0..64);
    rig.pass(&mut [], 2 * SECOND);
    assert_eq!(rig.control.totals().half_open_evicted, 0);
    syns(&mut rig, LOCAL_V4, 64..128);
    let totals = rig.control.totals();
    // A shard without one that is old enough answers with a cookie.
    assert!(totals.half_open_evicted > 20, "{totals:?}");
    assert_eq!(
        (totals.half_open_evicted + totals.syn_cookies_sent, rig.control.half_open()),
        (64, 64)
    );
    serve_one(&mut rig, LOCAL_V4, "10.0.0.2", 1_000);
    rig.finish();
}

#[test]
fn without_cookies_a_syn_takes_the_place_of_the_oldest() {
    for (local, own) in [(LOCAL_V4, "10.0.0.2"), (LOCAL_V6, "fd00::2")] {
        let limits = limits(32, SynCookieMode::Off);
        let mut rig = Rig::new(Echo, Plan { limits, ..Plan::default() });
        syns(&mut rig, local, 0..1_000);
        let totals = rig.control.totals();
        let half_open = rig.control.half_open() as u64;
        assert_eq!(totals.half_open_evicted, 1_000 - half_open);
        // One more for each of the 16 shards at most.
        assert!((32..=48).contains(&half_open), "{half_open}");
        for port in 1_000..1_010 {
            serve_one(&mut rig, local, own, port);
        }
        assert_eq!(rig.control.totals().syn_cookies_sent, 0);
        rig.finish();
    }
}

#[test]
fn with_cookies_for_all_no_handshake_is_kept() {
    let limits = limits(32, SynCookieMode::Always);
    let mut rig = Rig::new(Echo, Plan { limits, ..Plan::default() });
    syns(&mut rig, LOCAL_V4, 0..500);
    assert_eq!((rig.control.half_open(), rig.control.connections()), (0, 0));
    serve_one(&mut rig, LOCAL_V4, "10.0.0.2", 1_000);
    let totals = rig.control.totals();
    assert_eq!((totals.syn_cookies_sent, totals.syn_cookies_accepted), (501, 1));
    // A bound of connections holds for cookies, too.
    rig.finish();
}

#[test]
fn a_silent_peer_gets_five_syns_with_ack_and_is_forgotten_after_the_handshake_timeout() {
    for (timeout, syns) in [(ListenerConfig::new(PORT).handshake_timeout, 5), (4 * SECOND, 3)] {
        let listener = ListenerConfig { handshake_timeout: timeout, ..ListenerConfig::new(PORT) };
        let mut rig = Rig::new(Echo, Plan { listener, ..Plan::default() });
        let mut client = rig.connect(1_000);
        let syn = client.poll_frame(rig.now).expect("a SYN");
        rig.inject(syn, 0);
        rig.pass(&mut [], timeout - SECOND / 10);
        assert_eq!((rig.control.half_open(), rig.control.connections()), (1, 1));
        rig.pass(&mut [], SECOND);
        assert_eq!((rig.control.half_open(), rig.control.connections()), (0, 0));
        assert_eq!((rig.control.totals().handshake_failed, rig.stray.len()), (1, syns));
        rig.finish();
    }
    assert_eq!(ListenerConfig::new(PORT).handshake_timeout, 60 * SECOND);
}

/// A SYN with ACK among frames that no client took.
fn answer_of(rig: &mut Rig) -> Header {
    let frame = rig.stray.pop().expect("an answer");
    let headers = Headers::parse_bytes(&frame, frame.len(), LinkType::Ethernet).expect("IP");
    let transport = &frame[usize::from(headers.l4)..headers.end as usize];
    let view = TcpSegment::new(transport).expect("a segment");
    Segment::parse(&view, &[]).header
}

/// A peer's SYN that was answered with a cookie, and the acknowledgement of it.
fn cookie(rig: &mut Rig, port: u16) -> (Client, Header) {
    let frames = rig.connect(port);
    let timestamps = Some(Timestamps { value: 10, echo: 0 });
    let options = Options { mss: Some(1_000), timestamps, ..Options::default() };
    let (seq, window) = (SequenceNumber(ISN), 60_000);
    let syn = Header { seq, syn: true, window, options, ..Header::default() };
    rig.inject(frames.frame(&syn, b""), port.into());
    rig.step(&mut []);
    let answer = answer_of(rig);
    let echo = answer.options.timestamps.expect("stamps").value;
    let timestamps = Some(Timestamps { value: 11, echo });
    let options = Options { timestamps, ..Options::default() };
    let ack = Some(answer.seq + 1);
    (frames, Header { seq: seq + 1, ack, window, options, ..Header::default() })
}

fn always() -> Plan {
    Plan { limits: limits(32, SynCookieMode::Always), ..Plan::default() }
}

#[test]
fn acknowledgements_that_come_twice_and_data_in_place_of_a_lost_one_open_one_connection() {
    let mut rig = Rig::new(Echo, always());
    let (frames, ack) = cookie(&mut rig, 1_000);
    for payload in [&b""[..], b"", b"data", b"data"] {
        rig.inject(frames.frame(&ack, payload), 0);
        rig.step(&mut []);
    }
    let (frames, ack) = cookie(&mut rig, 1_001);
    rig.inject(frames.frame(&ack, b"lost its acknowledgement"), 1);
    rig.step(&mut []);
    let totals = rig.control.totals();
    assert_eq!((totals.syn_cookies_accepted, totals.accepted, totals.requests), (2, 2, 2));
    assert_eq!((totals.syn_cookies_refused, totals.resets_sent), (0, 0));
    assert_eq!(rig.control.connections(), 2);
    rig.finish();
}

#[test]
fn wrong_and_old_cookies_are_answered_with_resets_at_the_rate_of_errors() {
    let mut rig = Rig::new(Echo, always());
    // Before the first cookie none is looked for.
    let frames = rig.connect(999);
    let stray = Header { ack: Some(SequenceNumber(77)), ..Header::default() };
    rig.inject(frames.frame(&stray, b""), 0);
    rig.step(&mut []);
    assert_eq!(rig.control.totals().syn_cookies_refused, 0);
    let (frames, good) = cookie(&mut rig, 1_000);
    for number in 0..5_000_u32 {
        let ack = Some(SequenceNumber(number.wrapping_mul(0x9e37_79b9)));
        rig.inject(frames.frame(&Header { ack, ..good.clone() }, b""), number as usize);
        if number % 100 == 99 {
            rig.step(&mut []);
        }
    }
    rig.step(&mut []);
    let totals = rig.control.totals();
    assert_eq!((totals.syn_cookies_refused, rig.control.connections()), (5_000, 0));
    assert!((1..1_500).contains(&totals.resets_sent), "{}", totals.resets_sent);
    // The good one is good for a minute at least, and for two at most.
    rig.pass(&mut [], 121 * SECOND);
    rig.inject(frames.frame(&good, b""), 0);
    rig.step(&mut []);
    let totals = rig.control.totals();
    assert_eq!((totals.syn_cookies_accepted, rig.control.connections()), (0, 0));
    rig.finish();
}

#[test]
fn a_cookie_finds_no_place_beyond_the_bound_of_connections() {
    let limits = ServeConfig { connections: 1, ..limits(1, SynCookieMode::Always) };
    let mut rig = Rig::new(Echo, Plan { limits, ..Plan::default() });
    let (first, ack) = cookie(&mut rig, 1_000);
    let (second, other) = cookie(&mut rig, 1_001);
    rig.inject(first.frame(&ack, b""), 0);
    rig.inject(second.frame(&other, b""), 1);
    rig.step(&mut []);
    assert_eq!((rig.control.totals().accepted, rig.control.connections()), (1, 1));
    assert_eq!(rig.sample().dropped[DropReason::ConnectionLimit as usize], 1);
    rig.finish();
}

#[test]
fn under_a_flood_of_fins_clients_are_served_and_resets_are_limited() {
    let mut rig = Rig::new(Echo, Plan::default());
    let fin = Header { fin: true, ack: Some(SequenceNumber(1)), ..Header::default() };
    for round in 0..5 {
        flood(&mut rig, LOCAL_V4, 0..2_000, &fin);
        let client = serve_one(&mut rig, LOCAL_V4, "10.0.0.2", 1_000 + round);
        assert_eq!(client.tcp.state(), State::Established);
    }
    let totals = rig.control.totals();
    assert!((1..3_000).contains(&totals.resets_sent), "{}", totals.resets_sent);
    assert_eq!(rig.sample().dropped[DropReason::NoConnection as usize], 10_000);
    rig.finish();
}
