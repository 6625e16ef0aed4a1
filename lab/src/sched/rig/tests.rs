//! Clients against a service that answers each request once, in virtual time.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::clock::VirtualClock;
use rheostat_base::{DeviceId, Time};
use rheostat_io::{Device, QueuePair};
use rheostat_load::ArrivalProcess;
use rheostat_packet::{Burst, PoolCache};
use rheostat_serve::work::{WorkReply, WorkRequest};
use rheostat_steer::{HashKey, Orientation, Steering};
use rheostat_traffic::clients::frame::{ACK, Ends, Received, SYN, Sent};

use super::request_frame::REQUEST;
use super::{Clients, Offered, Plan, RigConfig, RigTotals, Samples};
use crate::testbed::lanes;

const SERVER: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 1), 80);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]];
/// The service's first byte, behind its SYN.
const FIRST: u32 = 5_001;

fn steering() -> Steering {
    let orientations = vec![Orientation::Inside];
    Steering::new(&HashKey::MICROSOFT, 128, 128, orientations).expect("sizes fit")
}

struct Testbed {
    clients: Clients,
    clock: VirtualClock,
    queues: Vec<QueuePair>,
    cache: PoolCache,
    now: Time,
    /// The next byte of the service on the connection of each port.
    next: Vec<u32>,
    /// Received: the moment, the queue, and the request's number or `None` of another segment.
    log: Vec<(u64, usize, Option<u64>)>,
}

impl Testbed {
    fn new(queues: usize, connections: u32) -> Testbed {
        let config = RigConfig {
            device: DeviceId(0),
            queues,
            connections,
            macs: MACS,
            client: CLIENT,
            server: SERVER,
            records_stages: false,
        };
        let clock = VirtualClock::new();
        let clients = Clients::new(config, &steering(), Arc::new(clock.clone()));
        let mut clients = clients.expect("ports for so many");
        let pool = lanes::pool(512);
        let (queues, cache) = (clients.queues(), PoolCache::new(pool.expect("memory")));
        let next = vec![FIRST; 1 << 16];
        let mut testbed =
            Testbed { clients, clock, queues, cache, now: Time::ZERO, next, log: Vec::new() };
        while !testbed.clients.are_open() {
            testbed.step(Duration::from_micros(1));
        }
        testbed.step(Duration::from_micros(1));
        testbed.log.clear();
        testbed
    }

    fn to(&mut self, now: Time) {
        self.now = now;
        self.clock.advance_to(now);
    }

    /// Lets time pass, polls each queue and answers at once.
    fn step(&mut self, by: Duration) {
        self.to(self.now + by);
        for queue in 0..self.queues.len() {
            let bursts = self.receive(queue);
            self.send(queue, bursts);
        }
    }

    /// Polls a queue. Returns the answers.
    fn receive(&mut self, queue: usize) -> Burst {
        let (mut burst, mut answers) = (Burst::new(), Burst::new());
        self.queues[queue].rx.recv(&mut burst, &mut self.cache, self.now);
        for packet in burst.drain(..) {
            let segment = Received::parse(packet.data()).expect("a segment");
            let request = WorkRequest::parse(segment.data).ok();
            self.log.push((self.now.as_nanos(), queue, request.map(|request| request.number)));
            // What it parses as the server is the client here.
            let ((_, port), flags) = (segment.server, segment.flags);
            let len = segment.data.len() as u32;
            let acknowledged = segment.sequence.wrapping_add(len + u32::from(flags & SYN));
            let stamp = segment.stamp;
            if flags & SYN != 0 {
                let sequence = FIRST - 1;
                let sent = Sent {
                    flags: SYN | ACK,
                    sequence,
                    acknowledged,
                    stamp: 9,
                    echo: stamp,
                    len: 0,
                };
                answers.push(self.frame(&sent, port, &[]));
            } else if let Some(WorkRequest { number, length, .. }) = request {
                let mut data = Vec::new();
                let reply = WorkReply { number, length, class: 0, target: 300, took: 310 };
                reply.write(|piece| data.extend_from_slice(piece));
                let place = &mut self.next[usize::from(port)];
                let sequence = *place;
                *place = place.wrapping_add(REQUEST as u32);
                let len = REQUEST as u16;
                let sent = Sent { flags: ACK, sequence, acknowledged, stamp: 9, echo: stamp, len };
                answers.push(self.frame(&sent, port, &data));
            }
            self.cache.free(packet);
        }
        answers
    }

    fn frame(&mut self, sent: &Sent, port: u16, data: &[u8]) -> rheostat_packet::Mbuf {
        let mut packet = self.cache.alloc(sent.frame_len()).expect("a buffer");
        let ends = Ends { macs: [MACS[1], MACS[0]], client: SERVER, server: (CLIENT, port) };
        sent.write(&ends, packet.data_mut(), |place| place.copy_from_slice(data));
        packet
    }

    fn send(&mut self, queue: usize, mut answers: Burst) {
        self.queues[queue].tx.send(&mut answers, &mut self.cache, self.now);
    }

    /// Offers requests for 10 ms from 1 ms on; returns how many.
    fn offer(&mut self, per_second: f64) -> usize {
        let (process, span) = (ArrivalProcess::Exponential, Duration::from_millis(10));
        let schedule = self.clients.schedule(&Offered { process, per_second, span, seed: 3 });
        let requests = schedule.requests();
        self.clients.record(requests);
        self.clients.follow(Plan::Open(schedule.starting(self.now + Duration::from_millis(1))));
        requests
    }

    fn samples(&self) -> Vec<super::RigSample> {
        let samples = self.clients.take_samples();
        samples.iter().flat_map(Samples::list).copied().collect()
    }

    fn requests(&self) -> impl Iterator<Item = (u64, usize, u64)> + '_ {
        self.log.iter().filter_map(|(at, queue, number)| Some((*at, *queue, (*number)?)))
    }
}

fn sound(totals: &RigTotals) -> bool {
    (totals.broken, totals.repeated, totals.stray, totals.no_buffer) == (0, 0, 0, 0)
}

#[test]
fn connections_are_spread_evenly_and_requests_are_received_when_they_are_due() {
    let mut testbed = Testbed::new(2, 7);
    let requests = testbed.offer(200_000.0);
    let start = testbed.now.as_nanos() + 1_000_000;
    for _ in 0..12_000 {
        testbed.step(Duration::from_micros(1));
    }
    let received: Vec<_> = testbed.requests().collect();
    assert_eq!(received.len(), requests);
    for (at, _, number) in &received {
        assert!(*number >= start && *number <= *at && *at - *number < 1_000, "{number} at {at}");
    }
    // Four connections on one queue, three on the other.
    let first = received.iter().filter(|(_, queue, _)| *queue == 0).count() as f64;
    assert!((first / requests as f64 - 4.0 / 7.0).abs() < 0.06, "{first} of {requests}");
    let totals = testbed.clients.totals();
    assert!(sound(&totals), "{totals:?}");
    assert_eq!(
        (totals.opened, totals.replies, testbed.clients.under_way()),
        (7, requests as u64, 0)
    );
}

#[test]
fn latency_counts_from_when_a_request_was_due_until_its_reply_is_handed_over() {
    let mut testbed = Testbed::new(1, 4);
    let requests = testbed.offer(100_000.0);
    // The lane is away for 5 ms, then polls, and hands the answers over 3 us later.
    testbed.to(testbed.now + Duration::from_millis(5));
    assert!(testbed.queues[0].rx.backlog() == 0, "it has not seen the plan");
    let mut received = 0;
    while received < requests {
        let answers = testbed.receive(0);
        received += answers.len();
        testbed.to(testbed.now + Duration::from_micros(3));
        testbed.send(0, answers);
        if received < requests && testbed.queues[0].rx.backlog() == 0 {
            testbed.to(testbed.now + Duration::from_micros(50));
        }
    }
    let samples = testbed.samples();
    assert_eq!(samples.len(), requests);
    for (sample, (at, _, number)) in samples.iter().zip(testbed.requests()) {
        assert_eq!((sample.due, sample.took(), sample.class()), (number, 310, 0));
        assert_eq!(u64::from(sample.latency), at + 3_000 - number);
    }
    let longest = samples.iter().map(|sample| sample.latency).max().unwrap_or(0);
    assert!((3_900_000..4_100_000).contains(&longest), "{longest}");
}

#[test]
fn what_waits_in_a_queue_is_what_is_due() {
    let mut testbed = Testbed::new(1, 4);
    let requests = testbed.offer(100_000.0);
    testbed.step(Duration::from_nanos(1));
    assert_eq!(testbed.queues[0].rx.backlog(), 0);
    testbed.to(testbed.now + Duration::from_secs(1));
    assert_eq!(testbed.queues[0].rx.backlog(), requests);
    let answers = testbed.receive(0);
    assert_eq!(testbed.queues[0].rx.backlog(), requests - answers.len());
}

#[test]
fn a_closed_loop_keeps_requests_under_way() {
    let mut testbed = Testbed::new(2, 10);
    testbed.clients.record(10);
    testbed.clients.follow(Plan::Closed { under_way: 3 });
    testbed.to(testbed.now + Duration::from_micros(1));
    let answers = [testbed.receive(0), testbed.receive(1)];
    assert_eq!((answers[0].len(), testbed.clients.under_way()), (3, 6));
    let more = testbed.receive(0);
    assert_eq!(more.len(), 0);
    for (queue, answers) in answers.into_iter().enumerate() {
        // Replies may leave through another queue than their requests came from.
        testbed.send(1 - queue, answers);
    }
    assert_eq!(testbed.clients.under_way(), 0);
    for _ in 0..100 {
        testbed.step(Duration::from_micros(1));
    }
    let totals = testbed.clients.totals();
    assert!(sound(&totals) && totals.replies >= 600, "{totals:?}");
    // There was room for ten in each queue.
    let samples = testbed.clients.take_samples();
    assert!(samples.iter().all(|samples| samples.list().len() == 10 && samples.lost >= 290));
    testbed.clients.follow(Plan::Idle);
    testbed.step(Duration::from_micros(1));
    let requests = testbed.clients.totals().requests;
    testbed.step(Duration::from_micros(1));
    assert_eq!(testbed.clients.totals().requests, requests);
}

#[test]
fn moments_do_not_go_back_where_another_lane_polls_a_queue_by_an_older_time() {
    let mut testbed = Testbed::new(1, 1);
    testbed.clients.record(10);
    testbed.clients.follow(Plan::Closed { under_way: 1 });
    testbed.to(testbed.now + Duration::from_millis(1));
    for back in [0, 5, 0, 9] {
        testbed.now = Time::from_nanos(1_000_000_000 - back);
        let answers = testbed.receive(0);
        testbed.send(0, answers);
    }
    assert_eq!(testbed.requests().map(|(.., due)| due).collect::<Vec<_>>(), [1_000_000_000; 4]);
    assert!(sound(&testbed.clients.totals()));
}

#[test]
fn a_reply_is_acknowledged_by_itself_when_no_request_follows() {
    let mut testbed = Testbed::new(1, 4);
    let requests = testbed.offer(1_000.0);
    for _ in 0..12 {
        testbed.step(Duration::from_millis(1));
    }
    testbed.log.clear();
    assert!(requests > 3);
    let before = testbed.clients.totals().acknowledgements;
    for _ in 0..70 {
        testbed.step(Duration::from_millis(1));
    }
    let after = testbed.clients.totals().acknowledgements;
    // Each connection that had a request acknowledges once, 40 to 60 ms later.
    assert!((1..=4).contains(&(after - before)), "{before}, {after}");
    assert_eq!(testbed.requests().count(), 0);
    for _ in 0..70 {
        testbed.step(Duration::from_millis(1));
    }
    assert_eq!(testbed.clients.totals().acknowledgements, after);
}
