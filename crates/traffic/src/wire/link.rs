//! One direction of the wire.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_base::Time;

/// What a link does to frames. Probabilities are per mille, and independent of each other.
#[derive(Clone, Copy, Debug)]
pub struct LinkConfig {
    /// Bytes per second, at least 1.
    pub rate: u64,
    /// What passing takes beside sending.
    pub delay: Duration,
    /// Bytes that wait for the link at most; a frame on top is dropped. A frame that finds nothing waiting passes.
    pub queue: usize,
    /// Frames that are lost.
    pub loss: u32,
    /// Frames that arrive twice.
    pub duplication: u32,
    /// Frames that take `late` longer, so that others overtake them.
    pub reordering: u32,
    /// How much longer.
    pub late: Duration,
    /// Frames of which a bit is flipped.
    pub corruption: u32,
}

impl LinkConfig {
    /// A link without faults: 100 Mbit/s, 5 ms, a queue of 200 kB.
    pub const CLEAN: LinkConfig = LinkConfig {
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

/// What has become of a link's frames: `sent + duplicated` are those lost, dropped and passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Frames that an endpoint has sent.
    pub sent: u64,
    /// Frames that found the queue full.
    pub dropped: u64,
    /// Frames lost by chance.
    pub lost: u64,
    /// Frames that were passed on twice.
    pub duplicated: u64,
    /// Frames that were passed on, copies counted.
    pub passed: u64,
    /// Of those passed on, the late ones.
    pub reordered: u64,
    /// Frames of which a bit was flipped.
    pub corrupted: u64,
}

/// What a link does with one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// The queue is full.
    Dropped,
    /// It is lost by chance.
    Lost,
    /// It arrives.
    Passes {
        /// When, and when again if there are two.
        arrivals: [Option<Time>; 2],
        /// Whether a bit is flipped.
        is_corrupted: bool,
    },
}

/// One direction: bytes leave one after the other at a rate, and arrive after a delay.
#[derive(Debug)]
pub struct Link {
    config: LinkConfig,
    random: SmallRng,
    counts: LinkCounts,
    /// When what waits for the link is on its way.
    free: Time,
}

impl Link {
    /// A link whose chances follow from `seed`.
    pub fn new(config: LinkConfig, seed: u64) -> Link {
        let random = SmallRng::seed_from_u64(seed);
        Link { config, random, counts: LinkCounts::default(), free: Time::ZERO }
    }

    /// What it has done.
    pub fn counts(&self) -> LinkCounts {
        self.counts
    }

    fn happens(&mut self, per_mille: u32) -> bool {
        self.random.random_range(0..1_000) < per_mille
    }

    /// Takes a frame, which it may corrupt, and says when it arrives.
    pub fn send(&mut self, frame: &mut [u8], now: Time) -> Passage {
        self.counts.sent += 1;
        let wait = self.free.since(now);
        let waiting = (wait.as_secs_f64() * self.config.rate as f64) as usize;
        if waiting > 0 && waiting + frame.len() > self.config.queue {
            self.counts.dropped += 1;
            return Passage::Dropped;
        }
        let transmission = frame.len() as u64 * 1_000_000_000 / self.config.rate;
        self.free = now + wait + Duration::from_nanos(transmission);
        if self.happens(self.config.loss) {
            self.counts.lost += 1;
            return Passage::Lost;
        }
        let is_corrupted = self.happens(self.config.corruption) && !frame.is_empty();
        if is_corrupted {
            self.counts.corrupted += 1;
            let at = self.random.random_range(0..frame.len());
            frame[at] ^= 1 << self.random.random_range(0..8);
        }
        let is_doubled = self.happens(self.config.duplication);
        self.counts.duplicated += u64::from(is_doubled);
        let first = self.arrival();
        let second = is_doubled.then(|| self.arrival());
        Passage::Passes { arrivals: [Some(first), second], is_corrupted }
    }

    fn arrival(&mut self) -> Time {
        let is_late = self.happens(self.config.reordering);
        self.counts.passed += 1;
        self.counts.reordered += u64::from(is_late);
        let late = if is_late { self.config.late } else { Duration::ZERO };
        self.free + self.config.delay + late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(link: &mut Link, frames: usize, len: usize, now: Time) -> Vec<Passage> {
        (0..frames).map(|_| link.send(&mut vec![0; len], now)).collect()
    }

    fn at(passage: &Passage) -> Option<Time> {
        match passage {
            Passage::Passes { arrivals, .. } => arrivals[0],
            Passage::Dropped | Passage::Lost => None,
        }
    }

    #[test]
    fn frames_arrive_at_the_rate_and_after_the_delay() {
        let config = LinkConfig { rate: 1_000_000, ..LinkConfig::CLEAN };
        let mut link = Link::new(config, 1);
        let times: Vec<_> = arrivals(&mut link, 3, 1_000, Time::ZERO).iter().map(at).collect();
        assert_eq!(times, [6, 7, 8].map(|ms| Some(Time::from_millis(ms))));
        let later = arrivals(&mut link, 1, 1_000, Time::from_millis(100));
        assert_eq!(at(&later[0]), Some(Time::from_millis(106)));
    }

    #[test]
    fn a_full_queue_drops_what_comes_on_top() {
        let config = LinkConfig { rate: 1_000_000, queue: 2_000, ..LinkConfig::CLEAN };
        let mut link = Link::new(config, 1);
        let passages = arrivals(&mut link, 4, 1_000, Time::ZERO);
        assert_eq!(passages[2..], [Passage::Dropped; 2]);
        assert_eq!((link.counts().dropped, link.counts().passed), (2, 2));
        // Once the first is on its way there is room again.
        assert!(at(&link.send(&mut [0; 1_000], Time::from_millis(1))).is_some());
    }

    #[test]
    fn faults_come_as_often_as_they_should_and_every_frame_is_accounted_for() {
        let config = LinkConfig {
            rate: u64::MAX,
            loss: 100,
            duplication: 50,
            reordering: 200,
            corruption: 300,
            ..LinkConfig::CLEAN
        };
        let mut link = Link::new(config, 7);
        let mut flipped = 0;
        for _ in 0..20_000 {
            let mut frame = [0; 64];
            link.send(&mut frame, Time::ZERO);
            let bits: u32 = frame.iter().map(|byte| byte.count_ones()).sum();
            assert!(bits <= 1);
            flipped += u64::from(bits);
        }
        let counts = link.counts();
        assert_eq!(counts.sent + counts.duplicated, counts.lost + counts.dropped + counts.passed);
        assert_eq!(counts.corrupted, flipped);
        let near = |count: u64, expected: u64| count.abs_diff(expected) < expected / 8;
        assert!(near(counts.lost, 2_000) && near(counts.duplicated, 900), "{counts:?}");
        assert!(near(counts.reordered, 3_780) && near(counts.corrupted, 5_400), "{counts:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_faults_and_another_one_others() {
        let config =
            LinkConfig { loss: 300, duplication: 300, reordering: 300, ..LinkConfig::CLEAN };
        let run = |seed| arrivals(&mut Link::new(config, seed), 200, 10, Time::ZERO);
        assert_eq!(run(3), run(3));
        assert_ne!(run(3), run(4));
    }
}
