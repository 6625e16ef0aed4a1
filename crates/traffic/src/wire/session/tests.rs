use std::net::Ipv4Addr;

use rheostat_packet::build::{FrameBuilder, Payload, Transport};

use super::super::observer::NoObserver;
use super::*;

const STACK: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn address(client: u8) -> IpAddr {
    Ipv4Addr::new(198, 51, 100, client).into()
}

fn frame(from: IpAddr, to: IpAddr, number: u8) -> Vec<u8> {
    let payload = [number; 8];
    let ports = Transport::Udp { ports: (1, 2) };
    FrameBuilder::new(from, to, ports, Payload::Bytes(&payload)).to_vec()
}

/// Sends so many frames a pause apart, and keeps the arrivals.
struct Ticker {
    from: IpAddr,
    to: Vec<IpAddr>,
    pause: Duration,
    next: Time,
    left: u8,
    due: Vec<Vec<u8>>,
    arrived: Vec<(Time, Vec<u8>)>,
    expected: usize,
}

impl Ticker {
    fn new(from: IpAddr, to: &[IpAddr], frames: u8, expected: usize) -> Ticker {
        Ticker {
            from,
            to: to.to_vec(),
            pause: Duration::from_millis(1),
            next: Time::from_millis(1),
            left: frames,
            due: Vec::new(),
            arrived: Vec::new(),
            expected,
        }
    }
}

impl Endpoint for Ticker {
    fn handle_frame(&mut self, frame: &[u8], now: Time) {
        self.arrived.push((now, frame.to_vec()));
    }

    fn advance(&mut self, now: Time) {
        if self.left > 0 && self.next <= now {
            self.next = now + self.pause;
            self.left -= 1;
            self.due.extend(self.to.iter().map(|to| frame(self.from, *to, self.left)));
        }
    }

    fn poll_frame(&mut self, _: Time) -> Option<Vec<u8>> {
        self.due.pop()
    }

    fn next_deadline(&mut self, _: Time) -> Option<Time> {
        (self.left > 0).then_some(self.next)
    }

    fn is_done(&self) -> bool {
        self.left == 0 && self.arrived.len() >= self.expected
    }
}

#[test]
fn frames_reach_the_client_that_has_their_destination() {
    let addresses = [address(1), address(2), address(9)];
    let mut stack = Ticker::new(STACK, &addresses, 3, 5);
    let mut first = Ticker::new(address(1), &[STACK], 5, 3);
    let mut second = Ticker::new(address(2), &[], 0, 3);
    let mut wire = Wire::new(&mut stack, 1);
    wire.attach(address(1), &mut first, [LinkConfig::CLEAN; 2]);
    wire.attach(
        address(2),
        &mut second,
        [LinkConfig { delay: Duration::from_millis(50), ..LinkConfig::CLEAN }; 2],
    );
    assert_eq!(wire.run(Duration::from_secs(1), &mut NoObserver), Ok(Outcome::Done));
    assert_eq!((wire.frames(), wire.unroutable(), wire.under_way()), (14, 3, 0));
    assert_eq!(wire.counts(0).map(|[to, from]| (to.passed, from.passed)), Some((5, 3)));
    for (client, at) in [(&first, address(1)), (&second, address(2))] {
        let frames: Vec<_> = client.arrived.iter().map(|(_, frame)| frame.clone()).collect();
        assert_eq!(frames, [2, 1, 0].map(|number| frame(STACK, at, number)));
    }
    let pauses = second.arrived.windows(2).map(|pair| pair[1].0.since(pair[0].0).as_millis());
    assert_eq!(pauses.collect::<Vec<_>>(), [1, 1]);
    assert!(second.arrived[0].0 >= Time::from_millis(51));
}

#[test]
fn a_session_ends_when_the_time_is_up_or_nothing_is_left_to_happen() {
    let mut stack = Ticker::new(STACK, &[], 0, 3);
    let mut client = Ticker::new(address(1), &[STACK], 2, 0);
    let mut wire = Wire::between(&mut client, &mut stack, [LinkConfig::CLEAN; 2], 1);
    assert_eq!(wire.run(Duration::from_micros(1_500), &mut NoObserver), Ok(Outcome::TimeUp));
    assert_eq!(wire.frames(), 1);
    assert_eq!(wire.run(Duration::from_secs(1), &mut NoObserver), Ok(Outcome::Silent));
    assert_eq!(wire.frames(), 2);
}

/// Breaks a rule of endpoints.
struct Faulty {
    sends: bool,
}

impl Endpoint for Faulty {
    fn handle_frame(&mut self, _: &[u8], _: Time) {}

    fn advance(&mut self, _: Time) {}

    fn poll_frame(&mut self, _: Time) -> Option<Vec<u8>> {
        self.sends.then(|| vec![0])
    }

    fn next_deadline(&mut self, now: Time) -> Option<Time> {
        Some(now)
    }

    fn is_done(&self) -> bool {
        false
    }
}

#[test]
fn endpoints_that_would_run_for_ever_are_found() {
    let run = |sends: bool| {
        let mut stack = Ticker::new(STACK, &[], 0, 1);
        let mut client = Faulty { sends };
        let mut wire = Wire::between(&mut client, &mut stack, [LinkConfig::CLEAN; 2], 1);
        wire.run(Duration::from_secs(1), &mut NoObserver)
    };
    assert_eq!(run(true), Err(WireError::Endless(Side::Client(0))));
    assert_eq!(run(false), Err(WireError::Deadline(Side::Client(0))));
    let mut stack = Ticker::new(STACK, &[], 0, 1);
    let mut client = Ticker::new(address(1), &[STACK], 200, 0);
    let mut wire = Wire::between(&mut client, &mut stack, [LinkConfig::CLEAN; 2], 1);
    wire.limit_instants(100);
    assert_eq!(wire.run(Duration::from_secs(1), &mut NoObserver), Err(WireError::Instants(101)));
}
