//! Sees packets leave: how late, in what order, and whether all of them. It asks no lane.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rheostat_base::{Clock, ClockSource, Time};
use rheostat_io::Sink;
use rheostat_packet::{HashKind, Mbuf};
use rheostat_traffic::ExchangesConfig;

use crate::delays::{delays, quantile_us};
use crate::record::RecordedRun;
use crate::witness::Witness;
use hdrhistogram::Histogram;

/// Flows and directions whose order is looked at apart. Packets that share an entry have the same lower bits
/// of their hash, so they share a bucket, and their order is kept as well.
const ORDERS: usize = 1 << 20;

/// What has left, shared by all queues of one device.
#[derive(Clone)]
pub(super) struct Observer(Arc<ObservedSequence>);

struct ObservedSequence {
    clock: Clock,
    witness: Witness,
    /// Nanoseconds: packets due from then on are measured, until the other.
    from: AtomicU64,
    until: AtomicU64,
    /// By hash and direction: one more than the stamp of the youngest packet that has left.
    youngest: Vec<AtomicU32>,
    reordered: AtomicU64,
    /// By queue.
    latencies: Mutex<Vec<Arc<Mutex<ObservedLatencies>>>>,
}

/// What left through one queue.
struct ObservedLatencies {
    all: Histogram<u64>,
    /// Packets of signalling, which are in `all`, too.
    signalling: Histogram<u64>,
}

struct ObserverEnd {
    seen: Arc<ObservedSequence>,
    latencies: Arc<Mutex<ObservedLatencies>>,
}

impl Observer {
    /// Distinguishes the first `packets` packets. Until [`Observer::measure`], latencies do not count.
    pub(super) fn new(clock: Clock, packets: u64) -> Observer {
        Observer(Arc::new(ObservedSequence {
            clock,
            witness: Witness::new(packets),
            from: AtomicU64::new(u64::MAX),
            until: AtomicU64::new(0),
            youngest: (0..ORDERS).map(|_| AtomicU32::new(0)).collect(),
            reordered: AtomicU64::new(0),
            latencies: Mutex::default(),
        }))
    }

    /// The end of one transmit queue.
    pub(super) fn sink(&self) -> Box<dyn Sink> {
        let latencies = ObservedLatencies { all: delays(), signalling: delays() };
        let latencies = Arc::new(Mutex::new(latencies));
        self.0.latencies.lock().unwrap_or_else(PoisonError::into_inner).push(latencies.clone());
        Box::new(ObserverEnd { seen: self.0.clone(), latencies })
    }

    /// Latencies of packets that are due within these times count.
    pub(super) fn measure(&self, from: Time, until: Time) {
        // Relaxed: a burst that still sees the old bounds leaves a few packets out.
        self.0.until.store(until.as_nanos(), Ordering::Relaxed);
        self.0.from.store(from.as_nanos(), Ordering::Relaxed);
    }

    /// Packets that have left, each counted once.
    pub(super) fn seen(&self) -> u64 {
        self.0.witness.seen()
    }

    /// Times that a packet left which had left before.
    pub(super) fn doubled(&self) -> u64 {
        self.0.witness.doubled()
    }

    /// Packets that left after a younger packet of the same direction of their flow: reordered as RFC 4737
    /// section 3.3 has it.
    pub(super) fn reordered(&self) -> u64 {
        self.0.reordered.load(Ordering::Relaxed)
    }

    /// Latencies in microseconds, for each of [`Run::SHARES`]; nothing when no packet left.
    pub(super) fn latency_us(&self) -> Vec<(f64, f64)> {
        let all = self.sum(|queue| &queue.all);
        let shares = RecordedRun::SHARES.into_iter();
        shares.filter_map(|share| Some((share, quantile_us(&all, share)?))).collect()
    }

    /// What this share of the packets of signalling did not exceed, in microseconds; nothing when none left.
    pub(super) fn signalling_us(&self, share: f64) -> Option<f64> {
        let signalling = self.sum(|queue| &queue.signalling);
        quantile_us(&signalling, share)
    }

    fn sum(&self, of: impl Fn(&ObservedLatencies) -> &Histogram<u64>) -> Histogram<u64> {
        let queues = self.0.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sum = delays();
        for queue in queues.iter() {
            let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            sum.add(of(&queue)).expect("histograms of one shape");
        }
        sum
    }
}

impl ObservedSequence {
    /// Notes the order of the packet that was the `stamp`th to arrive.
    fn order(&self, hash: u32, inbound: bool, stamp: u32) {
        let entry = (hash as usize * 2 + usize::from(inbound)) % ORDERS;
        // Relaxed: a shard's next owner has its packets through a Release/Acquire pair of the hand-over.
        let youngest = self.youngest[entry].fetch_max(stamp + 1, Ordering::Relaxed);
        if youngest > stamp + 1 {
            self.reordered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Sink for ObserverEnd {
    fn take(&mut self, packets: &[Mbuf]) {
        let now = self.seen.clock.now();
        let (from, until) =
            (self.seen.from.load(Ordering::Relaxed), self.seen.until.load(Ordering::Relaxed));
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        for packet in packets {
            self.seen.witness.note(packet.stamp());
            if let Some(inbound) = is_inbound(packet) {
                self.seen.order(packet.hash(), inbound, packet.stamp());
            }
            let due = packet.timestamp();
            if (from..until).contains(&due.as_nanos()) {
                let latency = now.since(due).as_nanos() as u64;
                latencies.all.saturating_record(latency);
                if is_signalling(packet.data()) {
                    latencies.signalling.saturating_record(latency);
                }
            }
        }
    }
}

/// Whether the packet comes from a server; `None` where its hash does not name its flow. Clients of generated
/// traffic are in 10.0.0.0/8 and fd00::/8.
fn is_inbound(packet: &Mbuf) -> Option<bool> {
    if packet.hash_kind() != HashKind::Ports {
        return None;
    }
    let frame = packet.data();
    match frame.get(12..14)? {
        [0x08, 0x00] => Some(*frame.get(26)? != 10),
        [0x86, 0xdd] => Some(*frame.get(22)? != 0xfd),
        _ => Some(false),
    }
}

/// Whether a frame of generated traffic is one of signalling: UDP over IPv4 without options, to or from its port.
fn is_signalling(frame: &[u8]) -> bool {
    let port = ExchangesConfig::SIGNALLING_PORT.to_be_bytes();
    frame.get(12..15) == Some(&[0x08, 0x00, 0x45])
        && frame.get(23) == Some(&17)
        && (frame.get(34..36) == Some(&port) || frame.get(36..38) == Some(&port))
}

#[cfg(test)]
mod tests {
    //! Timed: clock.

    use super::*;

    #[test]
    fn only_a_packet_behind_a_younger_one_of_its_flow_and_direction_is_reordered() {
        let observer = Observer::new(Clock::new(), 64);
        let seen = &observer.0;
        seen.order(7, false, 3);
        seen.order(7, true, 2);
        seen.order(8, false, 1);
        seen.order(7, false, 5);
        assert_eq!(observer.reordered(), 0);
        seen.order(7, false, 4);
        assert_eq!(observer.reordered(), 1);
    }

    #[test]
    fn latencies_are_those_of_all_queues() {
        let observer = Observer::new(Clock::new(), 64);
        let _ends = [observer.sink(), observer.sink()];
        assert!(observer.latency_us().is_empty());
        for (queue, us) in observer.0.latencies.lock().unwrap().iter().zip([10, 30]) {
            queue.lock().unwrap().all.record_n(us * 1_000, 50).unwrap();
        }
        let latency = observer.latency_us();
        let of = |share| latency.iter().find(|(kept, _)| *kept == share).unwrap().1;
        assert!((of(0.5) - 10.0).abs() < 0.02 && (of(0.95) - 30.0).abs() < 0.05, "{latency:?}");
        assert_eq!(observer.signalling_us(0.5), None);
    }

    #[test]
    fn packets_of_signalling_are_known_in_both_directions() {
        use rheostat_io::Source;
        use rheostat_traffic::Exchanges;

        let config = ExchangesConfig { signalling: 0.5, ..ExchangesConfig::default() };
        let mut source = Exchanges::new(config).unwrap();
        let mut frame = Vec::new();
        let mut known = 0;
        for _ in 0..1_000 {
            source.next(&mut frame).unwrap();
            known += u32::from(is_signalling(&frame));
        }
        assert!((400..600).contains(&known), "{known} of 1,000, of which half are");
    }
}
