//! Traces of segments: what a service did with each, and which it sent because of it.

use std::time::Duration;

use rheostat_capture::{Mirrors, Point, Trace, Wanted};
use rheostat_observe::trace::{PacketPath, TraceLog, What};
use rheostat_packet::wire::TcpSegment;
use rheostat_packet::{Headers, LinkType};
use rheostat_serve::echo::Echo;
use rheostat_serve::{ListenerConfig, ServeConfig, SynCookieMode};
use rheostat_tcp::{Config, Header, KeepAlive, Options, SequenceNumber, SequenceRange};

use crate::rig::{Client, PORT, Plan, Rig};

const ISN: u32 = 5_000;

/// A peer that sends what the test says, to a service whose segments are traced.
struct Peer {
    rig: Rig,
    frames: Client,
    /// The service's first number.
    theirs: u32,
    trace: Trace,
    log: TraceLog,
}

impl Peer {
    /// The service echoes; segments that `filter` matches are traced.
    fn new(filter: Option<&str>, plan: Plan) -> Peer {
        let mut rig = Rig::new(Echo, plan);
        let frames = rig.connect(1_000);
        let filter = filter.map(|filter| filter.parse().unwrap());
        let trace = Mirrors::trace(&rig.mirrors, filter, 200).unwrap();
        rig.step(&mut []);
        let log = TraceLog::new(vec!["cable".into()], 200);
        Peer { rig, frames, theirs: 0, trace, log }
    }

    /// A connection, with SACK and without time stamps; its first byte has the number 1, as has the service's.
    fn connected(filter: Option<&str>) -> Peer {
        let mut peer = Peer::new(filter, Plan::default());
        peer.connect();
        peer
    }

    fn connect(&mut self) -> Vec<String> {
        let options = Options { sack_permitted: true, mss: Some(1_000), ..Options::default() };
        let mut syn = Header { syn: true, options, ..self.header(0, 0) };
        syn.ack = None;
        let opening = self.send_with(&syn, b"");
        let frame = self.rig.stray.first().expect("the SYN is answered");
        let headers = Headers::parse_bytes(frame, frame.len(), LinkType::Ethernet).expect("IP");
        let transport = &frame[usize::from(headers.l4)..headers.end as usize];
        self.theirs = TcpSegment::new(transport).expect("a segment").seq();
        opening
    }

    fn header(&self, seq: u32, ack: u32) -> Header {
        Header {
            seq: SequenceNumber(ISN.wrapping_add(seq)),
            ack: Some(SequenceNumber(self.theirs.wrapping_add(ack))),
            window: 60_000,
            ..Header::default()
        }
    }

    fn send(&mut self, seq: u32, ack: u32, payload: &[u8]) -> Vec<String> {
        let header = self.header(seq, ack);
        self.send_with(&header, payload)
    }

    /// Sends a segment, and returns what was noted until it had been handled.
    fn send_with(&mut self, header: &Header, payload: &[u8]) -> Vec<String> {
        let frame = self.frames.frame(header, payload);
        self.rig.inject(frame, 0);
        self.rig.step(&mut []);
        self.told()
    }

    /// Lets time pass, and returns what was noted meanwhile.
    fn wait(&mut self, time: Duration) -> Vec<String> {
        self.rig.pass(&mut [], time);
        self.told()
    }

    /// What was noted about segments, without what every packet has and the windows that the service offers; the numbers are those
    /// that the peer and the service count by.
    fn told(&mut self) -> Vec<String> {
        let paths = self.paths();
        paths
            .iter()
            .flat_map(|path| path.points.iter())
            .filter_map(|at| self.tell(&at.what))
            .collect()
    }

    fn paths(&mut self) -> Vec<PacketPath> {
        let Peer { trace, log, .. } = self;
        let mut paths = log.finished_after(|log| {
            trace.take(|event| log.add(event));
        });
        paths.extend(log.finished_after(|_| {}));
        paths
    }

    fn tell(&self, what: &What) -> Option<String> {
        let mut what = what.clone();
        match &mut what {
            What::Received { .. } | What::Placed { .. } => return None,
            What::HandedTo { .. } | What::Taken => return None,
            What::Segment { segment, .. } => {
                segment.seq = segment.seq.wrapping_sub(ISN);
                segment.ack = segment.ack.map(|ack| ack.wrapping_sub(self.theirs));
            }
            What::Answer { segment, .. } if self.theirs > 0 => {
                segment.seq = segment.seq.wrapping_sub(self.theirs);
                segment.ack = segment.ack.map(|ack| ack.wrapping_sub(ISN));
            }
            _ => {}
        }
        let window = match &what {
            What::Answer { segment, .. } => format!(" win {}", segment.window),
            _ => String::new(),
        };
        Some(what.to_string().replacen(&window, "", 1))
    }
}

/// The service's listener, with a peer that is asked after a second of silence whether it is there.
fn with_keep_alive() -> Plan {
    let second = Duration::from_secs(1);
    let keep_alive = Some(KeepAlive { idle: second, interval: second, probes: 1 });
    let tcp = Config { keep_alive, ..Config::default() };
    Plan { listener: ListenerConfig { tcp, ..ListenerConfig::new(PORT) }, ..Plan::default() }
}

#[test]
fn a_connection_is_followed_from_its_syn_to_its_end() {
    let mut peer = Peer::new(None, Plan::default());
    let opening = peer.connect();
    let answer = &opening[2];
    assert!(
        answer.starts_with("sends SYN ACK seq ") && answer.ends_with(": handshake"),
        "{answer}"
    );
    let mut told = opening;
    told.remove(2);
    told.extend(peer.send(1, 1, b""));
    told.extend(peer.send(1, 1, b"hello"));
    let fin = Header { fin: true, ..peer.header(6, 6) };
    told.extend(peer.send_with(&fin, b""));
    told.extend(peer.send(7, 7, b""));
    told.extend(peer.send(7, 7, b"late"));
    let expected = [
        "SYN seq 0 win 60000 len 0, for a listener",
        "accepts the SYN; listen -> syn-received",
        "consumed",
        "sent on cable",
        "ACK seq 1 ack 1 win 60000 len 0, for a connection",
        "syn-received -> established",
        "consumed",
        "ACK seq 1 ack 1 win 60000 len 5, for a connection",
        "accepts 5 in order; established",
        "program: reads 5 bytes, handles 1 request, writes 5 bytes",
        "sends PSH ACK seq 1 ack 6 len 5: data",
        "consumed",
        "sent on cable",
        "FIN ACK seq 6 ack 6 win 60000 len 0, for a connection",
        "accepts 1 in order, 5 acknowledged; established -> close-wait",
        "sends FIN ACK seq 6 ack 7 len 0: end of data",
        "consumed",
        "sent on cable",
        "ACK seq 7 ack 7 win 60000 len 0, for a connection",
        "1 acknowledged; last-ack -> closed",
        "connection closed: both ends have finished",
        "consumed",
        "ACK seq 7 ack 7 win 60000 len 4, for a listener",
        "sends RST seq 7 len 0: reset",
        "DROPPED: no_connection",
        "sent on cable",
    ];
    assert_eq!(told, expected);
    peer.rig.finish();
}

#[test]
fn what_is_held_ignored_and_challenged_is_named() {
    let mut peer = Peer::connected(None);
    peer.send(1, 1, b"");
    let mut told = peer.send(4, 1, b"lo");
    told.extend(peer.send(1, 1, b"hel"));
    told.extend(peer.send(1, 6, b"hel"));
    told.extend(peer.send(1 << 20, 6, b""));
    told.extend(peer.send(1 << 20, 6, b""));
    peer.wait(Duration::from_millis(600));
    let syn = Header { syn: true, ..peer.header(6, 6) };
    told.extend(peer.send_with(&syn, b""));
    told.extend(peer.send(6, 60_000, b""));
    let reset = Header { rst: true, ..peer.header(6, 6) };
    told.extend(peer.send_with(&reset, b""));
    let expected = [
        "ACK seq 4 ack 1 win 60000 len 2, for a connection",
        "holds 2 bytes beyond a gap; established",
        "sends ACK seq 1 ack 1 len 0: acknowledgement",
        "consumed",
        "sent on cable",
        "ACK seq 1 ack 1 win 60000 len 3, for a connection",
        "accepts 5 in order, nothing held beyond a gap any more; established",
        "program: reads 5 bytes, handles 1 request, writes 5 bytes",
        "sends PSH ACK seq 1 ack 6 len 5: data",
        "consumed",
        "sent on cable",
        "ACK seq 1 ack 6 win 60000 len 3, for a connection",
        "ignored: all of it had arrived before; established",
        "sends ACK seq 6 ack 6 len 0: acknowledgement",
        "consumed",
        "sent on cable",
        "ACK seq 1048576 ack 6 win 60000 len 0, for a connection",
        "ignored: outside the window, challenge ACK; established",
        "sends ACK seq 6 ack 6 len 0: challenge acknowledgement",
        "consumed",
        "sent on cable",
        "ACK seq 1048576 ack 6 win 60000 len 0, for a connection",
        "ignored: outside the window, no challenge ACK: one was sent less than a second ago; established",
        "consumed",
        "SYN ACK seq 6 ack 6 win 60000 len 0, for a connection",
        "ignored: SYN in a connection, challenge ACK; established",
        "sends ACK seq 6 ack 6 len 0: challenge acknowledgement",
        "consumed",
        "sent on cable",
        "ACK seq 6 ack 60000 win 60000 len 0, for a connection",
        "ignored: implausible acknowledgement, no challenge ACK: one was sent less than a second ago; established",
        "consumed",
        "RST ACK seq 6 ack 6 win 60000 len 0, for a connection",
        "established -> closed",
        "connection closed: the peer reset it",
        "consumed",
    ];
    assert_eq!(told, expected);
    peer.rig.finish();
}

#[test]
fn what_blocks_leave_out_is_sent_again_by_sack() {
    let mut peer = Peer::connected(None);
    peer.send(1, 1, b"");
    for piece in 0..4 {
        peer.send(1 + 1_000 * piece, 1, &[b'x'; 1_000]);
    }
    let mut told = Vec::new();
    for end in [2_001, 3_001, 4_001] {
        let number = |number: u32| SequenceNumber(peer.theirs.wrapping_add(number));
        let block = SequenceRange { start: number(1_001), end: number(end) };
        let mut header = peer.header(4_001, 1);
        header.options.sack.push(block);
        told.extend(peer.send_with(&header, b""));
    }
    told.extend(peer.send(4_001, 4_001, b""));
    let expected = [
        "ACK seq 4001 ack 1 win 60000 len 0, for a connection",
        "duplicate ACK 1; established",
        "consumed",
        "ACK seq 4001 ack 1 win 60000 len 0, for a connection",
        "duplicate ACK 2; established",
        "consumed",
        "ACK seq 4001 ack 1 win 60000 len 0, for a connection",
        "duplicate ACK 3, repair of a loss begins; established",
        "sends ACK seq 1 ack 4001 len 1000: retransmission by SACK",
        "consumed",
        "sent on cable",
        "ACK seq 4001 ack 4001 win 60000 len 0, for a connection",
        "4000 acknowledged, repair of a loss ends; established",
        "consumed",
    ];
    assert_eq!(told, expected);
    peer.rig.finish();
}

#[test]
fn a_segment_that_a_timer_sends_is_traced_by_itself() {
    let mut peer = Peer::connected(None);
    peer.send(1, 1, b"");
    peer.send(1, 1, b"hello");
    let told = peer.wait(Duration::from_millis(300));
    let expected = [
        "tcp 10.0.0.1:80 - 10.0.0.2:1000, established; cause: timer",
        "sends PSH ACK seq 1 ack 6 len 5: retransmission by timeout",
        "sent on cable",
    ];
    assert_eq!(told, expected);
    peer.send(6, 6, b"");
    // The window is closed.
    let closed = Header { window: 0, ..peer.header(6, 6) };
    let mut told = peer.send_with(&closed, b"again");
    told.extend(peer.wait(Duration::from_millis(400)));
    let expected = [
        "ACK seq 6 ack 6 win 0 len 5, for a connection",
        "accepts 5 in order; established",
        "program: reads 5 bytes, handles 1 request, writes 5 bytes",
        "consumed",
        "tcp 10.0.0.1:80 - 10.0.0.2:1000, established; cause: timer",
        "sends ACK seq 6 ack 11 len 0: acknowledgement",
        "sent on cable",
        "tcp 10.0.0.1:80 - 10.0.0.2:1000, established; cause: timer",
        "sends ACK seq 6 ack 11 len 1: window probe",
        "sent on cable",
    ];
    assert_eq!(told, expected);
    peer.rig.finish();
}

#[test]
fn a_reset_says_why() {
    let mut peer = Peer::new(None, with_keep_alive());
    peer.connect();
    peer.send(1, 1, b"");
    let told = peer.wait(Duration::from_millis(2_100));
    let expected = [
        "tcp 10.0.0.1:80 - 10.0.0.2:1000, established; cause: timer",
        "sends ACK seq 0 ack 1 len 0: keep-alive probe",
        "sent on cable",
        "tcp 10.0.0.1:80 - 10.0.0.2:1000, closed; cause: timer",
        "sends RST ACK seq 1 ack 1 len 0: reset: the peer did not answer keep-alive probes",
        "sent on cable",
    ];
    assert_eq!(told, expected);
    peer.rig.finish();
}

#[test]
fn syn_cookies_and_places_that_are_taken_over_are_told() {
    let limits = ServeConfig { syn_cookies: SynCookieMode::Always, ..ServeConfig::default() };
    let mut peer = Peer::new(None, Plan { limits, ..Plan::default() });
    let opening = peer.connect();
    assert_eq!(opening[1], "answers with a SYN cookie; listen");
    assert!(opening[2].ends_with(": handshake with a SYN cookie"), "{opening:?}");
    let expected = [
        "ACK seq 1 ack 1 win 60000 len 0, for a listener",
        "accepts the SYN cookie; listen -> syn-received",
        "ACK seq 1 ack 1 win 60000 len 0, for a connection",
        "syn-received -> established",
        "consumed",
    ];
    assert_eq!(peer.send(1, 1, b""), expected);
    peer.rig.finish();

    let limits = ServeConfig { half_open: 1, syn_cookies: SynCookieMode::Off, ..limits };
    let mut peer = Peer::new(None, Plan { limits, ..Plan::default() });
    peer.connect();
    // The next client of the same shard.
    let mut told = Vec::new();
    for port in 1_001.. {
        peer.frames = peer.rig.connect(port);
        let syn = Header { ack: None, syn: true, ..peer.header(0, 0) };
        told = peer.send_with(&syn, b"");
        if peer.rig.control.totals().half_open_evicted > 0 {
            break;
        }
    }
    let taken = "takes the place of the oldest half-open connection";
    assert_eq!(told[1..3], [taken, "accepts the SYN; listen -> syn-received"]);
    peer.rig.finish();
}

#[test]
fn a_syn_that_is_dropped_says_why() {
    let limits = ServeConfig { connections: 1, ..ServeConfig::default() };
    let mut peer = Peer::new(None, Plan { limits, ..Plan::default() });
    peer.connect();
    peer.frames = peer.rig.connect(1_001);
    let syn = Header { ack: None, syn: true, ..peer.header(0, 0) };
    let told = peer.send_with(&syn, b"");
    assert_eq!(told, ["SYN seq 0 win 60000 len 0, for a listener", "DROPPED: connection_limit"]);
    peer.rig.finish();

    let mut peer = Peer::new(None, Plan { listener: ListenerConfig::new(81), ..Plan::default() });
    let syn = Header { ack: None, syn: true, ..peer.header(0, 0) };
    let told = peer.send_with(&syn, b"");
    let expected = [
        "SYN seq 0 win 60000 len 0, for no listener",
        "sends RST ACK seq 0 ack 5001 len 0: reset",
        "DROPPED: no_listener",
        "sent on cable",
    ];
    assert_eq!(told, expected);
    peer.rig.finish();
}

#[test]
fn time_wait_answers_what_comes_late() {
    let mut peer = Peer::connected(None);
    peer.send(1, 1, b"");
    peer.rig.control.drain();
    let mut told = peer.wait(Duration::from_millis(1));
    told.extend(peer.send(1, 2, b""));
    let fin = Header { fin: true, ..peer.header(1, 2) };
    told.extend(peer.send_with(&fin, b""));
    told.extend(peer.send_with(&fin, b""));
    let expected = [
        "tcp 10.0.0.1:80 - 10.0.0.2:1000, fin-wait-1; cause: drain",
        "sends FIN ACK seq 1 ack 1 len 0: end of data",
        "sent on cable",
        "ACK seq 1 ack 2 win 60000 len 0, for a connection",
        "1 acknowledged; fin-wait-1 -> fin-wait-2",
        "consumed",
        "FIN ACK seq 1 ack 2 win 60000 len 0, for a connection",
        "accepts 1 in order; fin-wait-2 -> time-wait",
        "connection closed: both ends have finished",
        "sends ACK seq 2 ack 2 len 0: acknowledgement",
        "consumed",
        "sent on cable",
        "FIN ACK seq 1 ack 2 win 60000 len 0, for a connection in time-wait",
        "acknowledged; time-wait",
        "sends ACK seq 2 ack 2 len 0: acknowledgement",
        "consumed",
        "sent on cable",
    ];
    assert_eq!(told, expected);
    peer.rig.finish();
}

#[test]
fn a_filter_may_mean_what_the_service_sends() {
    let mut peer = Peer::connected(Some("tcp and src port 80 and dst host 10.0.0.2"));
    peer.send(1, 1, b"");
    let told = peer.send(1, 1, b"hello");
    let expected = [
        "tcp 10.0.0.1:80 - 10.0.0.2:1000, established; cause: untraced packet",
        "sends PSH ACK seq 1 ack 6 len 5: data",
        "sent on cable",
    ];
    assert_eq!(told, expected);
    peer.rig.finish();
}

#[test]
fn copies_have_what_was_decided_and_why_segments_are_sent() {
    let mut peer = Peer::new(Some("not tcp"), Plan { lanes: 1, ..Plan::default() });
    let mut capture = Mirrors::capture(&peer.rig.mirrors, Wanted::default()).unwrap();
    peer.rig.step(&mut []);
    peer.connect();
    peer.send(1, 1, b"");
    peer.send(1, 1, b"hello");
    let reset = Header { rst: true, ..peer.header(6, 6) };
    peer.send_with(&reset, b"");
    let mut said = Vec::new();
    capture.take(usize::MAX, |copy| said.push((copy.point, copy.comment.unwrap_or_default())));
    let said: Vec<_> = said.iter().map(|(point, comment)| (*point, comment.as_str())).collect();
    let expected = [
        (Point::Before, "for a listener; accepts the SYN; listen -> syn-received"),
        (Point::After, "handshake"),
        (Point::Before, "for a connection; syn-received -> established"),
        (Point::Before, "for a connection; accepts 5 in order; established; requests handled: 1"),
        (Point::After, "data"),
        (
            Point::Before,
            "for a connection; established -> closed; connection closed: the peer reset it",
        ),
    ];
    assert_eq!(said, expected);
    peer.rig.finish();
}

#[test]
fn fields_of_a_decision_are_in_its_json() {
    let mut peer = Peer::connected(None);
    peer.send(1, 1, b"");
    let frame = peer.frames.frame(&peer.header(1, 1), b"hello");
    peer.rig.inject(frame, 0);
    peer.rig.step(&mut []);
    let paths = peer.paths();
    assert!(paths.len() == 1 && paths[0].finished);
    let json = serde_json::to_value(&paths[0]).unwrap();
    let points = json["points"].as_array().unwrap();
    let of = |stage: &str| points.iter().find(|point| point["stage"] == stage).unwrap().clone();
    let (segment, decided, answer) = (of("segment"), of("decided"), of("answer"));
    assert_eq!((&segment["flags"], &segment["len"]), (&"ACK".into(), &5.into()));
    assert_eq!(
        (&segment["local"], &segment["remote"]),
        (&"10.0.0.1:80".into(), &"10.0.0.2:1000".into())
    );
    assert_eq!(
        (&decided["was"], &decided["state"]),
        (&"established".into(), &"established".into())
    );
    assert_eq!((&decided["in_order"], &decided["acknowledged"]), (&5.into(), &0.into()));
    assert_eq!(of("program")["requests"], 1);
    assert_eq!((&answer["reason"], &answer["len"]), (&"data".into(), &5.into()));
    assert_eq!(answer["ack"], ISN + 6);
    assert_eq!(serde_json::from_value::<PacketPath>(json).unwrap(), paths[0]);
    peer.rig.finish();
}
