//! Checks against backends that do as a script says, in virtual time.

use std::net::IpAddr;
use std::time::Duration;

use rheostat_base::{DeviceId, Time};
use rheostat_ip::{LocalPacket, LocalService, Outbox};
use rheostat_packet::build::{FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_packet::wire::tcp::{TcpFlags, TcpSegment};
use rheostat_packet::{Headers, LinkType, tuple};

use super::*;
use crate::firewall::PortRange;
use crate::lb::config::{BackendConfig, LbConfig, Mode, OnDown, ServiceConfig};
use crate::lb::health::Health;

const SYN: u8 = TcpFlags::SYN;
const ACK: u8 = TcpFlags::ACK;
const RST: u8 = TcpFlags::RST;
const FIN: u8 = TcpFlags::FIN;
const PSH: u8 = TcpFlags::PSH;

/// The checks of one service with one backend, and the time.
struct World {
    checks: HealthChecks,
    now: Time,
    own: IpAddr,
    backend: IpAddr,
}

/// A packet that was sent, taken apart.
#[derive(Clone, Debug)]
struct Sent {
    at: Time,
    bytes: Vec<u8>,
    transport: Vec<u8>,
}

impl Sent {
    fn segment(&self) -> TcpSegment<'_> {
        TcpSegment::new(&self.transport).expect("a segment")
    }

    fn flags(&self) -> u8 {
        self.segment().flags().0
    }

    fn data(&self) -> &[u8] {
        &self.transport[self.segment().header_len()..]
    }

    /// Header of a segment that answers this one.
    fn reply(&self, flags: u8, seq: u32) -> TcpHeader<'static> {
        let own = self.segment();
        let counts = self.data().len() as u32 + u32::from(own.flags().0 & SYN != 0);
        TcpHeader {
            ports: (own.destination_port(), own.source_port()),
            seq,
            ack: own.seq().wrapping_add(counts),
            flags,
            window: 1_000,
            urgent: 0,
            options: &[],
        }
    }
}

impl World {
    fn new(kind: CheckKind, is_v6: bool) -> World {
        let (own, backend, vip) = match is_v6 {
            false => ("192.0.2.1", "192.0.2.9", "198.51.100.1"),
            true => ("2001:db8::1", "2001:db8::9", "2001:db8:1::1"),
        };
        let [own, backend, vip] = [own, backend, vip].map(|ip| ip.parse::<IpAddr>().unwrap());
        let check = CheckConfig { interval: Duration::from_secs(10), ..CheckConfig::new(kind) };
        let check = CheckConfig { timeout: Duration::from_secs(4), rise: 2, fall: 2, ..check };
        let backend_config = BackendConfig {
            address: backend,
            port: None,
            weight: 1,
            health: Health::Up,
            server_id: None,
        };
        let service = ServiceConfig {
            name: "web".into(),
            vip,
            protocol: 6,
            ports: vec![PortRange { low: 80, high: 90 }],
            mode: Mode::DsrIpip,
            on_down: OnDown::Move,
            quic: None,
            check: Some(check),
            backends: vec![backend_config],
        };
        let config = LbConfig { services: vec![service], ..LbConfig::default() };
        let checks = HealthChecks::new(&config, |_| Some(own), 7).unwrap().expect("a check");
        // Any time to start from.
        World { checks, now: Time::from_secs(1_000), own, backend }
    }

    fn take(&self, outbox: &mut Outbox) -> Vec<Sent> {
        let sent: Vec<_> = outbox.drain().collect();
        let take = |bytes: Vec<u8>| {
            let headers = Headers::parse_bytes(&bytes, bytes.len(), LinkType::Raw).unwrap();
            let hosts = tuple::addresses(&bytes, &headers).unwrap();
            assert_eq!((hosts.first(), hosts.second()), (self.own, self.backend));
            let transport = bytes[usize::from(headers.l4)..].to_vec();
            Sent { at: self.now, bytes, transport }
        };
        sent.into_iter().map(take).collect()
    }

    /// Lets time pass until something is sent.
    fn next(&mut self) -> Sent {
        for _ in 0..100 {
            let mut outbox = Outbox::new();
            self.now = self.checks.next_deadline().expect("checks never end").max(self.now);
            self.checks.tick(self.now, &mut outbox);
            let mut sent = self.take(&mut outbox);
            assert!(sent.len() < 2, "one packet at a time: {sent:?}");
            if let Some(sent) = sent.pop() {
                return sent;
            }
        }
        panic!("nothing is sent");
    }

    /// Lets a packet arrive; whether it was taken, and what was sent.
    fn arrive(&self, transport: Transport<'_>, payload: &[u8]) -> (bool, Vec<Sent>) {
        let (from, to) = (self.backend, self.own);
        let bytes = FrameBuilder::new(from, to, transport, Payload::Bytes(payload)).to_vec();
        let headers = Headers::parse_bytes(&bytes, bytes.len(), LinkType::Raw).unwrap();
        let packet = LocalPacket {
            device: DeviceId(0),
            source: from,
            destination: to,
            protocol: headers.protocol,
            packet: &bytes,
            payload: &bytes[usize::from(headers.l4)..],
        };
        let mut outbox = Outbox::new();
        let taken = self.checks.receive(&packet, self.now, &mut outbox);
        (taken, self.take(&mut outbox))
    }

    fn answer(&self, header: TcpHeader<'_>, data: &[u8]) -> (bool, Vec<Sent>) {
        self.arrive(Transport::Tcp(header), data)
    }

    /// What has changed.
    fn events(&self) -> Vec<Option<Failure>> {
        self.checks.take_events().into_iter().map(|event| event.failure).collect()
    }

    /// Two checks of which `outcome` makes what is to count.
    fn twice(&mut self, mut outcome: impl FnMut(&mut World, Sent)) -> Vec<Option<Failure>> {
        for _ in 0..2 {
            assert_eq!(self.events(), [], "one check alone changes nothing");
            let first = self.next();
            outcome(self, first);
        }
        self.events()
    }
}

fn accept(world: &mut World, syn: Sent) {
    assert_eq!((syn.flags(), syn.segment().destination_port()), (SYN, 80));
    let (taken, sent) = world.answer(syn.reply(SYN | ACK, 500), &[]);
    // The half-open connection is given up at once, and politely.
    let [reset] = &sent[..] else { panic!("{sent:?}") };
    assert!(taken && reset.flags() == RST | ACK);
    assert_eq!(reset.segment().seq(), syn.segment().seq().wrapping_add(1));
    assert_eq!(reset.segment().ack(), 501);
}

#[test]
fn a_backend_that_accepts_connections_stays_up_and_one_that_refuses_them_goes_down() {
    for is_v6 in [false, true] {
        let mut world = World::new(CheckKind::Tcp, is_v6);
        assert_eq!(world.twice(accept), []);
        let refuse = |world: &mut World, syn: Sent| {
            assert_eq!(world.answer(syn.reply(RST | ACK, 0), &[]).1.len(), 0);
        };
        assert_eq!(world.twice(refuse), [Some(Failure::Refused)]);
        // It is down, and stays so; then it is up again.
        assert_eq!(world.twice(refuse), []);
        assert_eq!(world.twice(accept), [None]);
    }
}

#[test]
fn failures_between_successes_do_not_add_up() {
    let mut world = World::new(CheckKind::Tcp, false);
    for _ in 0..3 {
        let syn = world.next();
        world.answer(syn.reply(RST | ACK, 0), &[]);
        let syn = world.next();
        accept(&mut world, syn);
    }
    assert_eq!(world.events(), []);
}

#[test]
fn a_syn_is_sent_again_and_then_given_up() {
    let mut world = World::new(CheckKind::Tcp, false);
    let first = world.next();
    let again = world.next();
    assert_eq!(again.at.since(first.at), Duration::from_secs(1));
    assert_eq!(again.bytes, first.bytes, "the same segment");
    let third = world.next();
    assert_eq!(third.at.since(first.at), Duration::from_secs(3), "twice as long after each");
    // The next one is of the next check: from another port, and another number.
    let next = world.next();
    let apart = next.at.since(first.at);
    assert!((9..=11).contains(&apart.as_secs()), "{apart:?}");
    let ports = |sent: &Sent| (sent.segment().source_port(), sent.segment().seq());
    assert_ne!(ports(&next), ports(&first));
    for _ in 0..3 {
        world.next();
    }
    assert_eq!(world.events(), [Some(Failure::Silent)]);
    // An answer that is late belongs to no check: the stack resets the connection.
    assert!(!world.answer(first.reply(SYN | ACK, 1), &[]).0);
}

#[test]
fn the_answer_to_a_syn_that_was_sent_again_counts() {
    let mut world = World::new(CheckKind::Tcp, false);
    let outcome = |world: &mut World, first: Sent| {
        world.next();
        accept(world, first);
    };
    assert_eq!(world.twice(outcome), []);
}

#[test]
fn what_does_not_belong_to_the_check_changes_nothing() {
    let mut world = World::new(CheckKind::Tcp, false);
    let syn = world.next();
    let right = syn.reply(SYN | ACK, 500);
    for (wrong, is_taken) in [
        (TcpHeader { ack: right.ack + 1, ..right }, true),
        (TcpHeader { flags: RST, ..right }, true),
        (TcpHeader { flags: RST | ACK, ack: right.ack - 1, ..right }, true),
        (TcpHeader { flags: SYN, ..right }, true),
        (TcpHeader { flags: ACK, ..right }, true),
        (TcpHeader { ports: (81, right.ports.1), ..right }, false),
        (TcpHeader { ports: (80, right.ports.1 ^ 1), ..right }, false),
    ] {
        let (taken, sent) = world.answer(wrong, &[]);
        assert_eq!((taken, sent.len()), (is_taken, 0), "{wrong:?}");
    }
    accept(&mut world, syn);
}

#[test]
fn echoes_are_answered_with_the_same_bytes_or_not_at_all() {
    for (is_v6, request, reply) in [(false, 8, 0), (true, 128, 129)] {
        let mut world = World::new(CheckKind::Icmp, is_v6);
        let answer = |sent: &Sent, flip: u8| {
            let rest = u32::from_be_bytes(sent.transport[4..8].try_into().unwrap());
            let mut data = sent.transport[8..].to_vec();
            data[3] ^= flip;
            (Transport::Icmp { kind: reply, code: 0, rest }, data)
        };
        let good = |world: &mut World, sent: Sent| {
            assert_eq!(sent.transport[0], request);
            let (transport, data) = answer(&sent, 0);
            assert!(world.arrive(transport, &data).0);
        };
        assert_eq!(world.twice(good), []);
        let wrong = |world: &mut World, sent: Sent| {
            let (transport, data) = answer(&sent, 1);
            assert!(world.arrive(transport, &data).0);
            // Sent twice more before it is given up.
            world.next();
            world.next();
        };
        for _ in 0..2 {
            let sent = world.next();
            wrong(&mut world, sent);
        }
        let sent = world.next();
        assert_eq!(world.events(), [Some(Failure::Silent)]);
        good(&mut world, sent);
        assert_eq!(world.events(), []);
        let sent = world.next();
        good(&mut world, sent);
        assert_eq!(world.events(), [None]);
    }
}

#[test]
fn an_error_about_the_check_ends_it_and_one_about_something_else_does_not() {
    for (is_v6, kind, code) in [(false, 3, 1), (true, 1, 3)] {
        let mut world = World::new(CheckKind::Tcp, is_v6);
        let outcome = |world: &mut World, syn: Sent| {
            let mut other = syn.bytes.clone();
            let at = syn.bytes.len() - syn.transport.len() + 4;
            other[at] ^= 1;
            let error = Transport::Icmp { kind, code, rest: 0 };
            assert!(world.arrive(error, &other).0);
            let before = world.checks.next_deadline();
            // No more than the first eight bytes are quoted (RFC 792).
            let quoted = &syn.bytes[..syn.bytes.len() - syn.transport.len() + 8];
            assert!(world.arrive(error, quoted).0);
            assert_ne!(world.checks.next_deadline(), before, "the check is over");
        };
        assert_eq!(world.twice(outcome), [Some(Failure::Unreachable(code))]);
    }
}

fn web() -> CheckKind {
    CheckKind::Http(HttpCheck::new("/health"))
}

/// Opens the connection; returns the request.
fn open(world: &World, syn: &Sent) -> Sent {
    let (_, mut sent) = world.answer(syn.reply(SYN | ACK, 500), &[]);
    assert_eq!(sent.len(), 1);
    let request = sent.remove(0);
    assert_eq!(request.flags(), PSH | ACK);
    assert!(request.data().starts_with(b"GET /health HTTP/1.1\r\nHost: "));
    assert_eq!((request.segment().seq(), request.segment().ack()), (syn.segment().seq() + 1, 501));
    request
}

#[test]
fn a_web_server_is_judged_by_its_status() {
    for is_v6 in [false, true] {
        let mut world = World::new(web(), is_v6);
        let serve = |status: &'static str| {
            move |world: &mut World, syn: Sent| {
                let request = open(world, &syn);
                let answer = format!("HTTP/1.1 {status}\r\n\r\n");
                let (_, sent) = world.answer(request.reply(PSH | ACK, 501), answer.as_bytes());
                let [reset] = &sent[..] else { panic!("{sent:?}") };
                assert_eq!(reset.flags(), RST | ACK);
                assert_eq!(reset.segment().ack(), 501 + answer.len() as u32);
                assert_eq!(reset.segment().seq(), request.reply(0, 0).ack);
            }
        };
        assert_eq!(world.twice(serve("200 OK")), []);
        assert_eq!(world.twice(serve("503 Busy")), [Some(Failure::Status(503))]);
        assert_eq!(world.twice(serve("204 Nothing")), [None]);
    }
}

#[test]
fn an_answer_may_come_in_pieces_and_out_of_order() {
    let mut world = World::new(web(), false);
    let outcome = |world: &mut World, syn: Sent| {
        let request = open(world, &syn);
        // The acknowledgement alone.
        assert_eq!(world.answer(request.reply(ACK, 501), &[]).1.len(), 0);
        // The second piece first: it is asked for the first one.
        let (_, sent) = world.answer(request.reply(ACK, 506), b"1.1 200 OK");
        assert_eq!((sent[0].flags(), sent[0].segment().ack()), (ACK, 501));
        let (_, sent) = world.answer(request.reply(ACK, 501), b"HTTP/");
        assert_eq!((sent[0].flags(), sent[0].segment().ack()), (ACK, 506));
        let (_, sent) = world.answer(request.reply(ACK, 506), b"1.1 200 OK");
        assert_eq!((sent.len(), sent[0].flags()), (1, RST | ACK));
    };
    assert_eq!(world.twice(outcome), []);
    assert_eq!(world.twice(outcome), []);
}

#[test]
fn a_request_is_sent_again_until_it_is_acknowledged() {
    let mut world = World::new(web(), false);
    let syn = world.next();
    let request = open(&world, &syn);
    let again = world.next();
    assert_eq!(
        (again.at.since(request.at), &again.bytes),
        (Duration::from_secs(1), &request.bytes)
    );
    // The backend has not seen our acknowledgement: its SYN comes again.
    let (_, sent) = world.answer(syn.reply(SYN | ACK, 500), &[]);
    assert_eq!(sent[0].bytes, request.bytes);
    world.answer(request.reply(ACK, 501), &[]);
    // It has it, and says nothing: the connection is reset when time is up.
    let last = world.next();
    assert_eq!((last.flags(), last.at.since(syn.at)), (RST | ACK, Duration::from_secs(4)));
}

#[test]
fn a_connection_that_ends_before_the_answer_is_a_failure() {
    let end = |flags: u8, seq: u32, data: &'static [u8]| {
        move |world: &mut World, syn: Sent| {
            let request = open(world, &syn);
            // Not what is next: any host could have sent that.
            world.answer(request.reply(RST | ACK, 502), &[]);
            world.answer(request.reply(flags, seq), data);
        }
    };
    for (outcome, failure) in [
        (end(RST | ACK, 501, b""), Failure::Reset),
        (end(FIN | ACK, 501, b"HTTP"), Failure::Closed),
        (end(PSH | ACK, 501, b"SSH-2.0-server\r\n"), Failure::NotHttp),
    ] {
        assert_eq!(World::new(web(), false).twice(outcome), [Some(failure)]);
    }
}

#[test]
fn data_that_acknowledges_what_was_never_sent_is_ignored() {
    let mut world = World::new(web(), false);
    let syn = world.next();
    let request = open(&world, &syn);
    let right = request.reply(PSH | ACK, 501);
    let wrong = TcpHeader { ack: right.ack + 1, ..right };
    assert_eq!(world.answer(wrong, b"HTTP/1.1 503 no").1.len(), 0);
    let (_, sent) = world.answer(right, b"HTTP/1.1 200 OK");
    assert_eq!(sent[0].flags(), RST | ACK);
}

#[test]
fn without_an_address_to_ask_from_there_is_no_check() {
    let backend = BackendConfig {
        address: [10, 0, 0, 1].into(),
        port: None,
        weight: 1,
        health: Health::Up,
        server_id: None,
    };
    let service = ServiceConfig {
        name: "dns".into(),
        vip: [198, 51, 100, 1].into(),
        protocol: 17,
        ports: vec![],
        mode: Mode::Nat,
        on_down: OnDown::Move,
        quic: None,
        check: Some(CheckConfig::new(CheckKind::Icmp)),
        backends: vec![backend],
    };
    let config = LbConfig { services: vec![service], ..LbConfig::default() };
    let error = HealthChecks::new(&config, |_| None, 1).unwrap_err().to_string();
    assert!(error.contains("backend 10.0.0.1 of service `dns`"), "{error}");
    assert!(HealthChecks::new(&config, |_| Some("::1".parse().unwrap()), 1).is_err());
    assert!(HealthChecks::new(&LbConfig::default(), |_| None, 1).unwrap().is_none());
}

#[test]
fn many_checks_spread_over_the_interval() {
    let backend = |last: u8| BackendConfig {
        address: [10, 0, 0, last].into(),
        port: Some(8_080),
        weight: 1,
        health: Health::Up,
        server_id: None,
    };
    let service = ServiceConfig {
        name: "web".into(),
        vip: [198, 51, 100, 1].into(),
        protocol: 6,
        ports: vec![],
        mode: Mode::Nat,
        on_down: OnDown::Move,
        quic: None,
        check: Some(CheckConfig::new(CheckKind::Tcp)),
        backends: (1..=200).map(backend).collect(),
    };
    let config = LbConfig { services: vec![service], ..LbConfig::default() };
    let source = |_| Some([10, 0, 0, 250].into());
    let checks = HealthChecks::new(&config, source, 1).unwrap().expect("checks");
    let start = Time::from_secs(50);
    let mut per_second = [0; 5];
    for (second, count) in (1_u32..).zip(&mut per_second) {
        let mut outbox = Outbox::new();
        checks.tick(start, &mut outbox);
        // Before the first one of the next second, so that nothing is sent twice.
        let until = start + Duration::from_secs(1) * second;
        while checks.next_deadline().is_some_and(|due| due < until) {
            checks.tick(checks.next_deadline().unwrap(), &mut outbox);
        }
        let mut ports = std::collections::HashSet::new();
        for bytes in outbox.drain() {
            let segment = TcpSegment::new(&bytes[20..]).unwrap();
            assert_eq!(segment.destination_port(), 8_080);
            // Those that are sent again have their port from before.
            *count += usize::from(ports.insert(segment.source_port()));
        }
    }
    // 200 in five seconds, and each once more after one: no second without, none with half of them.
    assert!(per_second.iter().all(|count| (20..130).contains(count)), "{per_second:?}");
}
