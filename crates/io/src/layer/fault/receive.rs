//! A receive queue with faults.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_base::Time;
use rheostat_packet::{Burst, Mbuf, PoolCache};

use super::{FaultConfig, FaultCounters};
use crate::device::{ArrivalOrder, Rest, RxLayer, RxQueue};

/// A receive queue with faults.
pub struct FaultyRx {
    inner: Box<dyn RxQueue>,
    config: FaultConfig,
    random: SmallRng,
    counters: Arc<FaultCounters>,
    injected: u64,
    /// Packets to be delivered, each not before its time, in order.
    ready: VecDeque<(Time, Mbuf)>,
    /// The packet that waits for its successor to overtake it.
    overtaken: Option<Mbuf>,
    not_before: Time,
    /// Packets that were received from `inner` and not delivered yet.
    held: Arc<AtomicUsize>,
}

#[derive(Clone, Copy)]
enum Fault {
    Drop,
    Leak,
    Duplicate,
    Swap,
    Delay(Duration),
}

impl FaultyRx {
    /// Wraps `inner`.
    pub fn new(inner: Box<dyn RxQueue>, config: FaultConfig) -> FaultyRx {
        FaultyRx {
            inner,
            random: SmallRng::seed_from_u64(config.seed),
            config,
            counters: Arc::default(),
            injected: 0,
            ready: VecDeque::new(),
            overtaken: None,
            not_before: Time::ZERO,
            held: Arc::default(),
        }
    }

    /// The counters, which stay valid while the queue is polled elsewhere.
    pub fn counters(&self) -> Arc<FaultCounters> {
        self.counters.clone()
    }

    /// Packets that were received from the wrapped queue and not delivered yet, to be read from
    /// another thread after the wrapped queue was seen empty.
    pub(super) fn held(&self) -> Arc<AtomicUsize> {
        self.held.clone()
    }

    /// Draws the fault of one packet. One number per packet, so that each packet's fate depends on
    /// the seed and its place alone.
    fn draw(&mut self) -> Option<Fault> {
        let mut draw: f64 = self.random.random();
        if self.config.limit.is_some_and(|limit| self.injected >= limit) {
            return None;
        }
        let (delay, by) = self.config.delay.unwrap_or_default();
        let faults = [
            (self.config.drop, Fault::Drop),
            (self.config.leak, Fault::Leak),
            (self.config.duplicate, Fault::Duplicate),
            (self.config.swap, Fault::Swap),
            (delay, Fault::Delay(by)),
        ];
        for (probability, fault) in faults {
            if draw < probability {
                self.injected += 1;
                return Some(fault);
            }
            draw -= probability;
        }
        None
    }

    fn inject(&mut self, packet: Mbuf, pool: &mut PoolCache, now: Time) {
        match self.draw() {
            None => self.deliver(packet),
            Some(Fault::Drop) => {
                pool.free(packet);
                self.counters.dropped.increment();
            }
            Some(Fault::Leak) => {
                std::mem::forget(packet);
                self.counters.leaked.increment();
            }
            Some(Fault::Duplicate) => {
                if let Ok(mut twin) = pool.alloc_from(&packet.to_vec()) {
                    twin.describe_as(&packet);
                    self.deliver(packet);
                    self.deliver(twin);
                    self.counters.duplicated.increment();
                } else {
                    self.deliver(packet);
                }
            }
            Some(Fault::Swap) if self.overtaken.is_none() => self.overtaken = Some(packet),
            // Two that follow each other cannot both be overtaken by the other.
            Some(Fault::Swap) => self.deliver(packet),
            Some(Fault::Delay(by)) => {
                self.not_before = self.not_before.max(now + by);
                self.deliver(packet);
                self.counters.delayed.increment();
            }
        }
    }

    fn deliver(&mut self, packet: Mbuf) {
        self.ready.push_back((self.not_before, packet));
        if let Some(overtaken) = self.overtaken.take() {
            self.ready.push_back((self.not_before, overtaken));
            self.counters.swapped.increment();
        }
    }
}

impl RxLayer for FaultyRx {
    fn inner(&self) -> &dyn RxQueue {
        &*self.inner
    }

    fn inner_mut(&mut self) -> &mut dyn RxQueue {
        &mut *self.inner
    }

    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        // Relaxed: the wrapped queue publishes this with the news that it has been emptied. Until we
        // know what to hold, we hold something.
        self.held.store(usize::MAX, Ordering::Relaxed);
        let mut arrived = Burst::new();
        let received = self.inner.recv(&mut arrived, pool, now);
        for packet in arrived {
            self.inject(packet, pool, now);
        }
        // A packet that nothing follows for now is not kept waiting: it goes out in its place.
        if received == 0
            && let Some(packet) = self.overtaken.take()
        {
            self.ready.push_back((self.not_before, packet));
        }
        let room = burst.remaining_capacity();
        let due = self.ready.iter().take(room).take_while(|(due, _)| *due <= now).count();
        burst.extend(self.ready.drain(..due).map(|(_, packet)| packet));
        let held = self.ready.len() + usize::from(self.overtaken.is_some());
        // Release: pairs with the Acquire of the thread that waits for the device to be exhausted.
        self.held.store(held, Ordering::Release);
        due
    }

    fn backlog(&self) -> usize {
        self.inner.backlog() + self.ready.len() + usize::from(self.overtaken.is_some())
    }

    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        if RxLayer::backlog(self) > 0 { Rest::Awake } else { self.inner.rest(pool, now) }
    }

    /// Packets are counted: what a ring has given may be held here.
    fn order(&self) -> ArrivalOrder<'_> {
        ArrivalOrder { rings: None, ..self.inner.order() }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {

    use rheostat_packet::{Mempool, MempoolConfig};

    use super::*;

    /// Delivers packets whose stamps count up, a burst per poll.
    struct Counting {
        next: u32,
        end: u32,
    }

    impl RxQueue for Counting {
        fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, _now: Time) -> usize {
            let count = 8.min(self.end - self.next);
            for _ in 0..count {
                let mut packet = pool.alloc_from(&self.next.to_be_bytes()).unwrap();
                packet.set_stamp(self.next);
                burst.push(packet);
                self.next += 1;
            }
            count as usize
        }

        fn backlog(&self) -> usize {
            (self.end - self.next) as usize
        }
    }

    const PACKETS: u32 = 200;

    /// What comes out of a queue with these faults, how many of each there were, and how many
    /// buffers are missing in the end.
    fn run(config: FaultConfig) -> (Vec<u32>, Arc<FaultCounters>, usize) {
        let layout = MempoolConfig { buffers: 512, data_room: 64, headroom: 0 };
        let pool = Mempool::new(&layout).unwrap();
        let mut cache = PoolCache::new(pool.clone());
        let queue = FaultyRx::new(Box::new(Counting { next: 0, end: PACKETS }), config);
        let counters = queue.counters();
        let mut queue: Box<dyn RxQueue> = Box::new(queue);
        let mut stamps = Vec::new();
        let mut now = Time::ZERO;
        while queue.backlog() > 0 {
            let mut burst = Burst::new();
            queue.recv(&mut burst, &mut cache, now);
            for packet in burst {
                assert_eq!(packet.data(), packet.stamp().to_be_bytes());
                stamps.push(packet.stamp());
                cache.free(packet);
            }
            now += Duration::from_micros(1);
        }
        drop((queue, cache));
        (stamps, counters, 512 - pool.available())
    }

    fn sabotage(config: FaultConfig) -> (Vec<u32>, Arc<FaultCounters>, usize) {
        run(FaultConfig { seed: 7, limit: Some(1), ..config })
    }

    fn all() -> Vec<u32> {
        (0..PACKETS).collect()
    }

    #[test]
    fn without_faults_nothing_changes() {
        let (stamps, _, missing) = run(FaultConfig::default());
        assert_eq!((stamps, missing), (all(), 0));
    }

    #[test]
    fn one_packet_is_lost() {
        let (stamps, counters, missing) = sabotage(FaultConfig { drop: 0.1, ..Default::default() });
        assert_eq!((stamps.len() as u32, missing), (PACKETS - 1, 0));
        assert!(stamps.is_sorted());
        assert_eq!(counters.dropped.get(), 1);
    }

    #[test]
    fn one_packet_leaks() {
        let (stamps, counters, missing) = sabotage(FaultConfig { leak: 0.1, ..Default::default() });
        assert_eq!((stamps.len() as u32, missing), (PACKETS - 1, 1));
        assert_eq!(counters.leaked.get(), 1);
    }

    #[test]
    fn one_packet_comes_twice() {
        let (mut stamps, counters, missing) =
            sabotage(FaultConfig { duplicate: 0.1, ..Default::default() });
        assert_eq!((stamps.len() as u32, missing), (PACKETS + 1, 0));
        stamps.dedup();
        assert_eq!(stamps, all());
        assert_eq!(counters.duplicated.get(), 1);
    }

    #[test]
    fn two_packets_change_places() {
        let (mut stamps, counters, missing) =
            sabotage(FaultConfig { swap: 0.1, ..Default::default() });
        assert_eq!(missing, 0);
        let inversions: Vec<_> = stamps.windows(2).filter(|pair| pair[0] > pair[1]).collect();
        assert!(matches!(inversions[..], [[a, b]] if *a == b + 1), "{inversions:?}");
        assert_eq!(counters.swapped.get(), 1);
        stamps.sort_unstable();
        assert_eq!(stamps, all());
    }

    #[test]
    fn late_packets_keep_their_order() {
        let delay = Some((0.1, Duration::from_micros(10)));
        let (stamps, counters, missing) = run(FaultConfig { delay, ..Default::default() });
        assert_eq!((stamps, missing), (all(), 0));
        assert!(counters.delayed.get() > 1);
    }

    #[test]
    fn the_seed_names_the_faults() {
        let config = |seed| FaultConfig { seed, drop: 0.1, swap: 0.1, ..Default::default() };
        assert_eq!(run(config(1)).0, run(config(1)).0);
        assert_ne!(run(config(1)).0, run(config(2)).0);
        let (stamps, counters, _) = run(config(1));
        assert_eq!(stamps.len() as u64 + counters.dropped.get(), u64::from(PACKETS));
    }
}
