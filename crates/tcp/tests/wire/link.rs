//! One direction of the wire.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_base::Time;

/// What a link does to frames. Probabilities are per mille.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkConfig {
    /// Bytes per second.
    pub(crate) rate: u64,
    pub(crate) delay: Duration,
    /// Bytes that wait for the link at most; what comes on top is lost. A frame that finds nothing waiting passes.
    pub(crate) queue: usize,
    pub(crate) loss: u32,
    pub(crate) duplication: u32,
    /// Frames that take `late` longer, so that others overtake them.
    pub(crate) reordering: u32,
    pub(crate) late: Duration,
    /// Frames of which a bit is flipped.
    pub(crate) corruption: u32,
}

impl LinkConfig {
    /// A link without faults.
    pub(crate) const CLEAN: LinkConfig = LinkConfig {
        rate: 12_500_000,
        delay: Duration::from_millis(5),
        queue: 200_000,
        loss: 0,
        duplication: 0,
        reordering: 0,
        late: Duration::from_millis(3),
        corruption: 0,
    };
}

#[derive(Debug)]
pub(crate) struct Link {
    config: LinkConfig,
    random: SmallRng,
    /// Frames under way, by arrival and order of sending.
    under_way: BTreeMap<(Time, u64), Vec<u8>>,
    sent: u64,
    /// When what waits for the link is on its way.
    free: Time,
}

impl Link {
    pub(crate) fn new(config: LinkConfig, seed: u64) -> Link {
        let random = SmallRng::seed_from_u64(seed);
        Link { config, random, under_way: BTreeMap::new(), sent: 0, free: Time::ZERO }
    }

    fn happens(&mut self, per_mille: u32) -> bool {
        self.random.random_range(0..1_000) < per_mille
    }

    pub(crate) fn send(&mut self, mut frame: Vec<u8>, now: Time) {
        let wait = self.free.since(now);
        let waiting = (wait.as_secs_f64() * self.config.rate as f64) as usize;
        if waiting > 0 && waiting + frame.len() > self.config.queue {
            return;
        }
        let transmission = frame.len() as u64 * 1_000_000_000 / self.config.rate;
        self.free = now + wait + Duration::from_nanos(transmission);
        if self.happens(self.config.loss) {
            return;
        }
        if self.happens(self.config.corruption) {
            let at = self.random.random_range(0..frame.len());
            frame[at] ^= 1 << self.random.random_range(0..8);
        }
        let copies = if self.happens(self.config.duplication) { 2 } else { 1 };
        for _ in 0..copies {
            let is_late = self.happens(self.config.reordering);
            let late = if is_late { self.config.late } else { Duration::ZERO };
            self.sent += 1;
            self.under_way.insert((self.free + self.config.delay + late, self.sent), frame.clone());
        }
    }

    pub(crate) fn next_arrival(&self) -> Option<Time> {
        self.under_way.first_key_value().map(|((time, _), _)| *time)
    }

    pub(crate) fn receive(&mut self, now: Time) -> Option<Vec<u8>> {
        let entry = self.under_way.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }
}
