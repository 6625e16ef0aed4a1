//! Handshakes of which a listener keeps nothing (RFC 4987, 3.6).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::Time;
use rheostat_tcp::{
    Config, Connection, Event, Header, Options, Segment, SequenceNumber, State, SynCookies,
    Timestamps,
};

use crate::script::THEIRS;

const OFFSET: u32 = 0xffff_f000;

/// A listener that answers with cookies, and one peer.
struct Listener {
    cookies: SynCookies,
    config: Arc<Config>,
    ends: (SocketAddr, SocketAddr),
}

impl Listener {
    fn new(local: &str, remote: &str) -> Listener {
        let ends = (local.parse().unwrap(), remote.parse().unwrap());
        let config = Arc::new(Config { mss: 8_960, ..Config::default() });
        Listener { cookies: SynCookies::new(&[9; 16]), config, ends }
    }

    fn v4() -> Listener {
        Listener::new("10.0.0.1:80", "192.0.2.9:4000")
    }

    fn answer(&mut self, options: &Options, now: Time) -> Header {
        let syn = Header { syn: true, options: options.clone(), ..header(0, None) };
        let answer = self.cookies.answer(&syn, self.ends, OFFSET, &self.config, now);
        assert!(answer.syn && answer.ack == Some(SequenceNumber(THEIRS) + 1));
        answer
    }

    /// The connection that a segment opens, if it does.
    fn open(&mut self, segment: &Segment<'_>, now: Time) -> Option<Connection> {
        let Listener { cookies, config, ends } = self;
        let half_open = cookies.check(segment, *ends, OFFSET, config, now)?;
        let mut connection = half_open.establish(config.clone(), now);
        connection.handle_segment(segment, now);
        assert_eq!(connection.broken_invariant(), None);
        Some(connection)
    }
}

fn header(seq: u32, ack: Option<SequenceNumber>) -> Header {
    Header { seq: SequenceNumber(THEIRS) + seq, ack, window: 500, ..Header::default() }
}

/// The peer's acknowledgement of a SYN with ACK.
fn ack_of(answer: &Header) -> Header {
    let timestamps = answer.options.timestamps;
    let timestamps = timestamps.map(|theirs| Timestamps { value: 700, echo: theirs.value });
    let options = Options { timestamps, ..Options::default() };
    Header { options, ..header(1, Some(answer.seq + 1)) }
}

fn offers(mss: Option<u16>, scale: Option<u8>, sack: bool, stamps: bool) -> Options {
    let timestamps = stamps.then_some(Timestamps { value: 600, echo: 0 });
    Options { mss, window_scale: scale, sack_permitted: sack, timestamps, ..Options::default() }
}

#[test]
fn a_cookie_opens_a_connection_with_the_size_the_windows_and_the_sack_of_the_peer() {
    for (local, remote) in
        [("10.0.0.1:80", "192.0.2.9:4000"), ("[2001:db8::1]:80", "[2001:db8::9]:4000")]
    {
        let mut listener = Listener::new(local, remote);
        for shift in [None, Some(0), Some(7), Some(14)] {
            for sack in [false, true] {
                let now = Time::from_secs(100);
                let answer = listener.answer(&offers(Some(1_460), shift, sack, true), now);
                assert_eq!(answer.options.sack_permitted, sack);
                assert_eq!(answer.options.window_scale.is_some(), shift.is_some());
                let later = now + Duration::from_millis(20);
                let segment = Segment { header: ack_of(&answer), payload: b"hello" };
                let mut connection = listener.open(&segment, later).expect("a cookie");
                assert_eq!(connection.state(), State::Established);
                assert_eq!(connection.poll_event(), Some(Event::Established));
                assert_eq!(connection.peek()[0], b"hello");
                let info = connection.info();
                let window = 500 << shift.unwrap_or(0);
                assert_eq!((info.mss, info.send_window), (1_460, window), "{local} {shift:?}");
                // Ten segments may leave at once, and a lost one is missed after a second at the latest.
                assert_eq!(info.congestion_window, 14_600);
                assert!(info.retransmission_timeout <= Duration::from_secs(1));
                // No stamp is earlier than that of the cookie.
                connection.write(b"x", later).unwrap();
                let stamps = connection.poll_transmit(later).unwrap().header.options.timestamps;
                let (sent, first) = (stamps.unwrap(), answer.options.timestamps.unwrap());
                assert!(sent.value.wrapping_sub(first.value) < 60 && sent.echo == 700);
            }
        }
    }
}

#[test]
fn without_time_stamps_a_cookie_carries_the_segment_size_alone() {
    let mut listener = Listener::v4();
    let answer = listener.answer(&offers(Some(1_400), Some(7), true, false), Time::ZERO);
    assert_eq!((answer.options.mss, answer.options.len()), (Some(8_960), 4));
    let segment = Segment { header: ack_of(&answer), payload: b"" };
    let info = listener.open(&segment, Time::ZERO).expect("a cookie").info();
    assert_eq!((info.mss, info.send_window), (1_360, 500));
}

#[test]
fn a_segment_size_counts_as_the_largest_of_eight_that_is_no_larger() {
    let mut listener = Listener::v4();
    let sizes = [
        (Some(1), 88),
        (Some(535), 88),
        (None, 536),
        (Some(1_219), 536),
        (Some(1_220), 1_220),
        (Some(1_380), 1_360),
        (Some(1_440), 1_440),
        (Some(1_452), 1_452),
        (Some(1_460), 1_460),
        (Some(65_495), 8_940),
    ];
    for (mss, size) in sizes {
        let answer = listener.answer(&offers(mss, None, false, false), Time::ZERO);
        let segment = Segment { header: ack_of(&answer), payload: b"" };
        let connection = listener.open(&segment, Time::ZERO).expect("a cookie");
        assert_eq!(connection.info().mss, size, "{mss:?}");
    }
}

#[test]
fn a_cookie_is_good_for_one_to_two_minutes_and_a_new_key_makes_another() {
    let mut listener = Listener::v4();
    let offers = offers(Some(1_460), Some(7), true, true);
    let (start, end) = (Time::from_secs(120), Time::from_secs(179));
    let (first, last) = (listener.answer(&offers, start), listener.answer(&offers, end));
    assert_eq!(first.seq, last.seq, "a key lasts a minute");
    assert_ne!(first.seq, listener.answer(&offers, Time::from_secs(180)).seq);
    let segment = Segment { header: ack_of(&first), payload: b"" };
    for (seconds, is_good) in [(120, true), (179, true), (239, true), (240, false), (300, false)] {
        let opened = listener.open(&segment, Time::from_secs(seconds));
        assert_eq!(opened.is_some(), is_good, "at {seconds} s");
    }
}

#[test]
fn a_cookie_is_that_of_one_peer_one_number_and_one_offer() {
    let mut listener = Listener::v4();
    let answer = listener.answer(&offers(Some(1_460), Some(7), true, true), Time::ZERO);
    let good = ack_of(&answer);
    let opens = |listener: &mut Listener, header: Header| {
        listener.open(&Segment { header, payload: b"" }, Time::ZERO).is_some()
    };
    assert!(opens(&mut listener, good.clone()));
    assert!(!opens(&mut listener, Header { seq: good.seq + 1, ..good.clone() }));
    assert!(!opens(&mut listener, Header { options: Options::default(), ..good }));
    // Other offers, a stamp from the future, and one that is too old.
    for bit in [0, 20, 31] {
        let mut other = good.clone();
        other.options.timestamps.as_mut().unwrap().echo ^= 1 << bit;
        assert!(!opens(&mut listener, other), "bit {bit}");
    }
    assert!(!opens(&mut listener, Header { rst: true, ..good.clone() }));
    assert!(!opens(&mut listener, Header { syn: true, ..good.clone() }));
    for remote in ["192.0.2.9:4001", "192.0.2.8:4000"] {
        let ends = (listener.ends.0, remote.parse().unwrap());
        assert!(!opens(&mut Listener { ends, ..Listener::v4() }, good.clone()));
    }
    let mut stranger = Listener { cookies: SynCookies::new(&[8; 16]), ..Listener::v4() };
    assert!(!opens(&mut stranger, good));
}

#[test]
fn sixteen_of_all_numbers_are_good_at_most() {
    // In a sample of 2^20 numbers around a cookie there are the eight of its key, and hardly those of the key before.
    let mut listener = Listener::v4();
    let now = Time::from_secs(90);
    let answer = listener.answer(&offers(Some(1_460), None, false, false), now);
    let mut opens = |distance: u32| {
        let ack = Some(answer.seq + 1 + distance);
        let segment = Segment { header: header(1, ack), payload: b"" };
        listener.cookies.check(&segment, listener.ends, OFFSET, &listener.config, now).is_some()
    };
    let good = (0..1 << 20).filter(|distance: &u32| opens(distance.wrapping_sub(1 << 19)));
    assert!((8..=16).contains(&good.count()));
}

#[test]
fn an_acknowledgement_that_comes_twice_opens_the_same_connection() {
    let mut listener = Listener::v4();
    let answer = listener.answer(&offers(Some(1_460), Some(7), true, true), Time::ZERO);
    let ack = Segment { header: ack_of(&answer), payload: b"" };
    let mut connection = listener.open(&ack, Time::ZERO).expect("a cookie");
    connection.handle_segment(&ack, Time::ZERO);
    assert_eq!(
        (connection.state(), connection.poll_transmit(Time::ZERO)),
        (State::Established, None)
    );
    // If the acknowledgement is lost, the data behind it opens the connection.
    let data = Segment { payload: b"data", ..ack };
    assert_eq!(listener.open(&data, Time::from_secs(1)).unwrap().peek()[0], b"data");
}
