//! Deterministic replay: holds a packet that reaches its flow through another lane until every earlier packet is done.
//!
//! Fragments, ICMP errors and other packets whose ports or identifiers a device does not hash reach the owner of their flow by way of
//! another lane; so do packets of no flow, if their shard is not that of the bucket by which the device placed them. Packets of the
//! same flow may overtake them, packets of other flows may take the owner's time ahead, so that it ends their flow too early, and
//! they themselves may take it ahead of packets that wait in the owner's queue. On a live network that is in the nature of things. A capture that is read as fast as possible
//! would show it far more often than any network, and differently every time; so there such a packet waits until
//! everything before it is done with, and everything behind waits for it.
//!
//! The same holds where the directions of a flow take different ways, as they do through functions that translate
//! and have no packet set: then one side's packets wait until those of the other before them are done with.
//!
//! Where lanes own flow state together, any of them may process a packet, at any time: there every packet waits until all
//! before it are done with, so that a capture leaves as from one lane. Such lanes take turns, and gain nothing from each other.
//!
//! Captures on several devices are the sides of one story. They are read in the order of their stamps, and
//! before one device takes over from another, everything before is done with.
//!
//! Packets that are under way at once are at most [`WINDOW`] apart in time: one that comes after a longer silence waits until all
//! before it are done with. Lanes that move shards depend on it: while a packet waits for its shard, later packets take the clock of
//! the lane ahead that still has the shard, and end the packet's flow.
//!
//! Stamps of a capture may go back. The time of a replay does not: a packet that is stamped before another that was delivered
//! earlier counts as of the other's time. Lanes have different packets, so if each went by the stamps alone, what a timer of a
//! lane ends before a packet with an earlier stamp comes would depend on which packets share the lane.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use rheostat_base::{QueueId, Time};
use rheostat_packet::Mbuf;

use crate::lock::lock;

/// How far packets that are under way at once may be apart in time. A shorter window makes each packet of a slow capture wait for
/// the one before; a longer one lets flows of shards that move end early by as much.
pub const WINDOW: Duration = Duration::from_secs(1);

/// Reports when everything that was delivered has been processed, and whose packet is next. Shared by the
/// devices of a run.
pub struct ReplayBarrier {
    /// Packets that devices have put into queues. Counted by a device before it asks.
    delivered: AtomicU64,
    /// Packets that lanes have received, if none of them is still under way.
    received_and_done: Box<dyn Fn() -> Option<u64> + Send + Sync>,
    turns: Mutex<Turns>,
    /// The latest time of any packet delivered, in nanoseconds.
    clock: AtomicU64,
    /// The time, in nanoseconds, of the first packet that may be under way.
    window: AtomicU64,
    /// Whether every packet waits until all before it are done with.
    is_one_by_one: bool,
    /// Wakes the lane of a queue, where lanes sleep; none before their threads are known.
    announce: OnceLock<Announce>,
}

type Announce = Box<dyn Fn(QueueId) + Send + Sync>;

/// Whose packet is next, of the devices that read without loss.
#[derive(Default)]
struct Turns {
    /// The stamp of each device's next packet; `None` while it has none.
    next: Vec<Option<Time>>,
    /// The device that delivered last.
    last: Option<Reader>,
}

/// A device that reads without loss, among those of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reader(usize);

impl ReplayBarrier {
    /// `received_and_done` states how many packets lanes have received, when all of these have been sent,
    /// dropped, consumed, or are held, and `None` while one has not. It may err on the side of `None`.
    pub fn new(
        received_and_done: impl Fn() -> Option<u64> + Send + Sync + 'static,
    ) -> ReplayBarrier {
        ReplayBarrier {
            delivered: AtomicU64::new(0),
            received_and_done: Box::new(received_and_done),
            turns: Mutex::default(),
            clock: AtomicU64::new(0),
            window: AtomicU64::new(0),
            is_one_by_one: false,
            announce: OnceLock::new(),
        }
    }

    /// The same for lanes that own flow state together: packets come one by one.
    #[must_use]
    pub fn one_by_one(self) -> ReplayBarrier {
        ReplayBarrier { is_one_by_one: true, ..self }
    }

    /// Whether every packet waits until all before it are done with.
    pub(crate) fn is_one_by_one(&self) -> bool {
        self.is_one_by_one
    }

    /// Lets devices announce packets that they have put into a queue: `announce` wakes the lane that polls it, if
    /// it sleeps. Only the first call counts.
    pub fn announce_by(&self, announce: impl Fn(QueueId) + Send + Sync + 'static) {
        // Set once: a run has one set of threads.
        let _ = self.announce.set(Box::new(announce));
    }

    /// Whether [`ReplayBarrier::announce`] reaches the lanes.
    pub(crate) fn is_announced(&self) -> bool {
        self.announce.get().is_some()
    }

    /// Wakes the lane of a queue, after a packet was put there.
    pub(crate) fn announce(&self, queue: QueueId) {
        if let Some(announce) = self.announce.get() {
            announce(queue);
        }
    }

    /// Adds a device that reads without loss and whose first packet is stamped so.
    pub(crate) fn join(&self, first: Option<Time>) -> Reader {
        let mut turns = lock(&self.turns);
        turns.next.push(first);
        Reader(turns.next.len() - 1)
    }

    /// Whether `reader`, whose next packet is stamped `time`, may deliver it: no other device has an
    /// earlier one, and all that another delivered is done with. Of equal stamps, the device that joined
    /// first comes first.
    pub(crate) fn is_turn(&self, reader: Reader, time: Time) -> bool {
        let mut turns = lock(&self.turns);
        if turns.next.len() == 1 {
            return true;
        }
        turns.next[reader.0] = Some(time);
        let earlier = turns
            .next
            .iter()
            .enumerate()
            .any(|(index, next)| next.is_some_and(|other| (other, index) < (time, reader.0)));
        let takes_over = turns.last.is_some_and(|last| last != reader);
        if earlier || (takes_over && !self.is_passed()) {
            return false;
        }
        turns.last = Some(reader);
        true
    }

    /// Notes that `reader` has no packet, so that no other waits for it.
    pub(crate) fn rest(&self, reader: Reader) {
        lock(&self.turns).next[reader.0] = None;
    }

    /// Gives a packet that is delivered next its time in the replay: never before that of one delivered earlier. Of devices
    /// that deliver at the same time, for want of turns, no order is kept.
    pub(crate) fn date(&self, packet: &mut Mbuf) {
        // Relaxed: whose turn it is orders devices.
        packet.set_replay_time(Time::from_nanos(self.clock.load(Ordering::Relaxed)));
        self.clock.fetch_max(packet.replay_time().as_nanos(), Ordering::Relaxed);
    }

    /// Whether a packet of this time must not be under way together with the first that may be.
    pub(crate) fn is_beyond_window(&self, time: Time) -> bool {
        // Relaxed, as below: whose turn it is orders devices.
        time.since(Time::from_nanos(self.window.load(Ordering::Relaxed))) > WINDOW
    }

    /// Notes that everything before a packet of this time is done with.
    pub(crate) fn begin_window(&self, time: Time) {
        self.window.fetch_max(time.as_nanos(), Ordering::Relaxed);
    }

    /// Counts packets that a device has put into queues.
    pub(crate) fn deliver(&self, packets: u64) {
        // Relaxed: the count orders nothing; packets are ordered by the queues they pass.
        self.delivered.fetch_add(packets, Ordering::Relaxed);
    }

    /// Whether everything delivered has been processed.
    pub(crate) fn is_passed(&self) -> bool {
        (self.received_and_done)() == Some(self.delivered.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::time::Duration;

    use rheostat_packet::{Mempool, MempoolConfig, PoolCache};

    use super::*;

    const MS: fn(u64) -> Time = Time::from_millis;

    #[test]
    fn the_earliest_packet_of_all_is_next() {
        let barrier = ReplayBarrier::new(|| Some(0));
        let [lan, wan] = [1, 2].map(|first| barrier.join(Some(MS(first))));
        assert!(!barrier.is_turn(wan, MS(2)));
        assert!(barrier.is_turn(lan, MS(1)));
        assert!(!barrier.is_turn(lan, MS(3)));
        assert!(barrier.is_turn(wan, MS(2)));
        // Of equal stamps, the reader that joined first.
        assert!(!barrier.is_turn(wan, MS(3)));
        assert!(barrier.is_turn(lan, MS(3)));
        barrier.rest(lan);
        assert!(barrier.is_turn(wan, MS(9)));
    }

    #[test]
    fn a_device_takes_over_once_all_before_is_done_with() {
        let done = std::sync::Arc::new(AtomicU64::new(0));
        let seen = done.clone();
        let barrier = ReplayBarrier::new(move || Some(seen.load(Ordering::Relaxed)));
        let [lan, wan] = [Some(MS(1)), None].map(|first| barrier.join(first));
        assert!(barrier.is_turn(lan, MS(1)));
        barrier.deliver(1);
        assert!(barrier.is_turn(lan, MS(2)), "what one device reads need not wait");
        barrier.deliver(1);
        barrier.rest(lan);
        assert!(!barrier.is_turn(wan, MS(5)));
        done.store(2, Ordering::Relaxed);
        assert!(barrier.is_turn(wan, MS(5)));
    }

    #[test]
    fn time_does_not_go_back_and_stamps_stay() {
        let mut cache = PoolCache::new(Mempool::new(&MempoolConfig::default()).unwrap());
        let barrier = ReplayBarrier::new(|| None);
        let mut date = |stamp: Time| {
            let mut packet = cache.alloc_from(&[0; 64]).unwrap();
            packet.set_timestamp(stamp);
            barrier.date(&mut packet);
            assert_eq!(packet.timestamp(), stamp);
            packet.replay_time()
        };
        assert_eq!([5, 7, 6, 7, 8].map(|ms| date(MS(ms))), [5, 7, 7, 7, 8].map(MS));
        // Years behind, the time is a little late, and goes on from there.
        let year = Time::from_secs(1_700_000_000);
        assert_eq!(date(year), year);
        let late = date(Time::from_nanos(1));
        assert!(late >= year && late.since(year) < Duration::from_secs(203), "{late:?}");
        let again = date(year);
        assert!(again >= late && again.since(late) < Duration::from_millis(1), "{again:?}");
        assert_eq!([Time::NEVER, Time::ZERO].map(date), [Time::NEVER; 2]);
    }

    #[test]
    fn packets_that_are_under_way_at_once_are_close_in_time() {
        let barrier = ReplayBarrier::new(|| None);
        let start = Time::from_secs(1_700_000_000);
        assert!(barrier.is_beyond_window(start));
        barrier.begin_window(start);
        // Stamps that go back are near.
        for near in [start, start + WINDOW, MS(5)] {
            assert!(!barrier.is_beyond_window(near));
        }
        assert!(barrier.is_beyond_window(start + WINDOW + Duration::from_nanos(1)));
    }

    #[test]
    fn a_device_alone_does_not_wait() {
        let barrier = ReplayBarrier::new(|| None);
        let only = barrier.join(None);
        assert!(barrier.is_turn(only, MS(5)) && barrier.is_turn(only, MS(1)));
    }
}
