//! Clients against a server that answers every segment at once.

use std::net::Ipv4Addr;
use std::time::Duration;

use rheostat_base::{DeviceId, QueueId, Time};
use rheostat_io::{Device, QueuePair, Rest};
use rheostat_packet::{Burst, Mempool, MempoolConfig, PoolCache};
use rheostat_steer::{HashKey, Orientation, Steering};

use super::frame::{ACK, FIN, Received, SYN};
use super::{ClientTotals, Clients, ClientsConfig, Pace};

const BUCKETS: usize = 16;

/// What happens to the answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// A byte of each 50th differs.
    Changed,
    /// Each 50th is lost.
    Lost,
}

struct Testbed {
    clients: Clients,
    queues: Vec<QueuePair>,
    cache: PoolCache,
    now: Time,
    answers: u64,
    fault: Fault,
}

impl Testbed {
    fn new(adapt: impl FnOnce(ClientsConfig) -> ClientsConfig) -> Testbed {
        let orientations = vec![Orientation::Inside];
        let steering = Steering::new(&HashKey::MICROSOFT, BUCKETS, BUCKETS, orientations);
        let server = (Ipv4Addr::new(10, 0, 0, 1), 80);
        let config = ClientsConfig::new(DeviceId(0), server, 200);
        let mut clients = Clients::new(adapt(config), &steering.expect("sizes fit"));
        let pool = Mempool::new(&MempoolConfig { buffers: 256, ..MempoolConfig::default() });
        let (queues, cache) = (clients.queues(), PoolCache::new(pool.expect("memory")));
        let now = Time::from_secs(1);
        Testbed { clients, queues, cache, now, answers: 0, fault: Fault::None }
    }

    /// Polls each queue so often, a microsecond apart; returns how many frames each got.
    fn poll(&mut self, times: usize) -> Vec<usize> {
        let mut got = vec![0; self.queues.len()];
        for _ in 0..times {
            self.now += Duration::from_micros(1);
            for (queue, got) in self.queues.iter_mut().zip(&mut got) {
                let (mut burst, mut answers) = (Burst::new(), Burst::new());
                *got += queue.rx.recv(&mut burst, &mut self.cache, self.now);
                for mut packet in burst.drain(..) {
                    let answered = answer(packet.data_mut());
                    self.answers += u64::from(answered);
                    let is_hit = self.answers.is_multiple_of(50);
                    if is_hit && self.fault == Fault::Changed {
                        *packet.data_mut().last_mut().expect("a frame") ^= 1;
                    }
                    match answered && !(is_hit && self.fault == Fault::Lost) {
                        true => answers.push(packet),
                        false => self.cache.free(packet),
                    }
                }
                queue.tx.send(&mut answers, &mut self.cache, self.now);
            }
        }
        got
    }

    fn totals(&self) -> ClientTotals {
        self.clients.totals()
    }
}

/// Turns a segment round, acknowledged, if it takes up sequence numbers.
fn answer(frame: &mut [u8]) -> bool {
    let received = Received::parse(frame).expect("a segment");
    let (flags, len) = (received.flags, received.data.len() as u32);
    let taken = len + u32::from(flags & (SYN | FIN) != 0);
    let (own, expected) = (received.acknowledged, received.sequence.wrapping_add(taken));
    if taken == 0 {
        return false;
    }
    let swap = |frame: &mut [u8], at: usize, by: usize| {
        let (first, second) = frame[at..].split_at_mut(by);
        first.swap_with_slice(&mut second[..by]);
    };
    swap(frame, 26, 4);
    swap(frame, 34, 2);
    frame[38..42].copy_from_slice(&own.to_be_bytes());
    frame[42..46].copy_from_slice(&expected.to_be_bytes());
    frame[47] = flags | ACK;
    true
}

#[test]
fn connections_are_opened_and_every_reply_is_checked() {
    let mut testbed = Testbed::new(|config| config);
    testbed.poll(50);
    assert!(testbed.clients.are_open());
    testbed.poll(500);
    let totals = testbed.totals();
    assert!(totals.replies > 10_000 && totals.requests - totals.replies <= 64, "{totals:?}");
    assert_eq!((totals.damaged, totals.repeated, totals.sent_again, totals.stray), (0, 0, 0, 0));
    assert_eq!(testbed.clients.latency().count(), totals.replies);
    assert!(totals.ticks > 0);
}

#[test]
fn a_byte_that_changed_is_noticed() {
    let mut testbed = Testbed::new(|config| config);
    testbed.poll(50);
    testbed.fault = Fault::Changed;
    testbed.poll(50);
    let totals = testbed.totals();
    assert!(totals.damaged >= 20, "{totals:?}");
}

#[test]
fn what_got_no_answer_is_sent_again() {
    let mut testbed = Testbed::new(|config| config);
    testbed.poll(50);
    testbed.fault = Fault::Lost;
    testbed.poll(100);
    testbed.fault = Fault::None;
    // Every connection that is stuck has been so for more than 300 ms then, and a round takes 250.
    for _ in 0..20 {
        testbed.now += Duration::from_millis(50);
        testbed.poll(1);
    }
    let totals = testbed.totals();
    assert!(totals.sent_again > 0 && totals.requests - totals.replies <= 64, "{totals:?}");
    let before = totals.replies;
    testbed.poll(100);
    assert!(testbed.totals().replies > before + 1_000);
}

#[test]
fn connections_of_one_request_are_closed_and_opened_again() {
    let adapt = |config| ClientsConfig { requests_per_connection: Some(1), ..config };
    let mut testbed = Testbed::new(adapt);
    testbed.poll(500);
    let totals = testbed.totals();
    assert!(totals.closed > 1_000 && totals.reset == 0 && totals.damaged == 0, "{totals:?}");
    assert!(totals.opened - totals.closed <= 64 && totals.replies - totals.closed <= 64);
}

#[test]
fn a_rewritten_table_takes_clients_to_another_queue_with_all_that_is_under_way() {
    let mut testbed = Testbed::new(|config| ClientsConfig { queues: 2, ..config });
    testbed.poll(50);
    let table = testbed.clients.table().expect("a table");
    for turn in 0..20 {
        let to = QueueId(turn % 2);
        let fence = table.rewrite(&[to; BUCKETS]).expect("two queues");
        assert!(fence.passed());
        let got = testbed.poll(10);
        assert!(got[to.index()] > 0 && got[1 - to.index()] == 0, "{got:?}");
    }
    let totals = testbed.totals();
    assert_eq!((totals.damaged, totals.sent_again, totals.reset), (0, 0, 0), "{totals:?}");
    assert!(totals.replies > 1_000);
}

#[test]
fn requests_that_have_a_pace_are_made_when_they_are_due() {
    let pace = Pace::Poisson { per_second: 100_000.0 };
    let mut testbed = Testbed::new(|config| ClientsConfig { pace, ..config });
    testbed.poll(50);
    let before = testbed.totals().requests;
    testbed.poll(20_000);
    // 2,000 in 20 ms; five standard deviations.
    let made = testbed.totals().requests - before;
    assert!((1_776..2_224).contains(&made), "{made} requests");
    let rest = testbed.queues[0].rx.rest(&mut testbed.cache, testbed.now);
    assert!(matches!(rest, Rest::Until(due) if due > testbed.now), "{rest:?}");
    // A lane that is away for 10 ms makes them late, and their latency counts from when they were due.
    testbed.now += Duration::from_millis(10);
    testbed.poll(100);
    let late = testbed.clients.latency().quantile(1.0).expect("replies");
    assert!((5_000_000..12_000_000).contains(&late), "{late} ns");
}
