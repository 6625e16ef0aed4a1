//! What one lane has measured since the start. The lane is the only writer; any thread may read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rheostat_base::{Counter, Histogram};
use rheostat_steer::policy::Class;

use super::HeavyShare;

/// A sum of figures that are no whole numbers.
#[derive(Debug, Default)]
struct Sum(AtomicU64);

impl Sum {
    fn add(&self, figure: f64) {
        // Relaxed: as in `Counter`, nothing is ordered by a sum, and there is one writer.
        self.0.store((self.get() + figure).to_bits(), Ordering::Relaxed);
    }

    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// Count, sum and sum of squares of figures. A reader may see one figure in some of them and not yet in others.
#[derive(Debug, Default)]
pub(super) struct Moments {
    count: Sum,
    sum: Sum,
    squares: Sum,
}

/// [`Moments`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct MomentSample {
    pub(super) count: f64,
    pub(super) sum: f64,
    pub(super) squares: f64,
}

impl Moments {
    /// Adds figures whose count, sum and squares were added up before.
    pub(super) fn add_all(&self, figures: MomentSample) {
        let MomentSample { count, sum, squares } = figures;
        if count > 0.0 {
            self.count.add(count);
            self.sum.add(sum);
            self.squares.add(squares);
        }
    }

    pub(super) fn sample(&self) -> MomentSample {
        let Moments { count, sum, squares } = self;
        MomentSample { count: count.get(), sum: sum.get(), squares: squares.get() }
    }
}

impl MomentSample {
    pub(super) fn add(&mut self, figure: f64) {
        self.count += 1.0;
        self.sum += figure;
        self.squares += figure * figure;
    }

    /// What was added since `earlier`.
    pub(super) fn since(self, earlier: MomentSample) -> MomentSample {
        MomentSample {
            count: self.count - earlier.count,
            sum: self.sum - earlier.sum,
            squares: self.squares - earlier.squares,
        }
    }

    /// The mean; 0 without figures.
    pub(super) fn mean(self) -> f64 {
        if self.count > 0.0 { self.sum / self.count } else { 0.0 }
    }

    /// The squared coefficient of variation; 0 without figures.
    pub(super) fn cv2(self) -> f64 {
        let mean = self.mean();
        if mean <= 0.0 {
            return 0.0;
        }
        (self.squares / self.count / (mean * mean) - 1.0).max(0.0)
    }
}

/// What a lane measured of the packets of one rule.
#[derive(Clone, Debug, Default)]
pub struct RuleFigures {
    /// Packets.
    pub packets: u64,
    /// Latencies of some of them, in nanoseconds.
    pub latency: Histogram,
}

#[derive(Debug, Default)]
pub(super) struct OfRule {
    pub(super) packets: Counter,
    /// Those of `packets` that were not processed then, and are counted again.
    pub(super) deferred: Counter,
    pub(super) latency: Histogram,
}

/// What is measured of one class.
#[derive(Debug, Default)]
pub(super) struct OfClass {
    pub(super) packets: Counter,
    /// Nanoseconds between arrivals.
    pub(super) gaps: Moments,
    /// Nanoseconds that packets take, by batch.
    pub(super) services: BatchMoments,
    /// Nanoseconds of waiting.
    pub(super) waits: Histogram,
}

/// Sums over batches of n packets that took x each on average.
#[derive(Debug, Default)]
pub(super) struct BatchMoments {
    /// Batches.
    count: Sum,
    /// Σ n.
    packets: Sum,
    /// Σ n·x.
    sum: Sum,
    /// Σ n·x².
    squares: Sum,
}

/// [`BatchMoments`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct BatchSample {
    count: f64,
    packets: f64,
    sum: f64,
    squares: f64,
}

impl BatchMoments {
    /// Adds a batch of `packets` packets that took `each` on average.
    pub(super) fn add(&self, packets: f64, each: f64) {
        self.count.add(1.0);
        self.packets.add(packets);
        self.sum.add(packets * each);
        self.squares.add(packets * each * each);
    }

    pub(super) fn sample(&self) -> BatchSample {
        let BatchMoments { count, packets, sum, squares } = self;
        BatchSample {
            count: count.get(),
            packets: packets.get(),
            sum: sum.get(),
            squares: squares.get(),
        }
    }
}

impl BatchSample {
    pub(super) fn since(self, earlier: BatchSample) -> BatchSample {
        BatchSample {
            count: self.count - earlier.count,
            packets: self.packets - earlier.packets,
            sum: self.sum - earlier.sum,
            squares: self.squares - earlier.squares,
        }
    }

    /// T: the mean time of a packet; 0 without batches.
    pub(super) fn mean(self) -> f64 {
        if self.packets > 0.0 { self.sum / self.packets } else { 0.0 }
    }

    /// The squared coefficient of variation of a packet's time. With independent packets of variance σ², a batch's mean has σ² ÷
    /// n, so that Σ n (x − T)² over k batches is (k − 1) σ² on average.
    pub(super) fn cv2(self) -> f64 {
        let mean = self.mean();
        if mean <= 0.0 || self.count < 2.0 {
            return 0.0;
        }
        let around_mean = self.squares - self.packets * mean * mean;
        (around_mean / (self.count - 1.0) / (mean * mean)).max(0.0)
    }
}

/// What one lane has measured by class since the start.
#[derive(Debug)]
pub struct ClassFigures {
    /// By rule, and last what no rule matches.
    pub(super) rules: Vec<OfRule>,
    pub(super) classes: [OfClass; Class::ALL.len()],
    /// Whether any packet came whose arrival was known.
    pub(super) knows_arrivals: AtomicBool,
    /// The heaviest flows at the end of the last epoch.
    heavy: Mutex<Vec<HeavyShare>>,
}

impl ClassFigures {
    /// For so many rules.
    pub(crate) fn new(rules: usize) -> ClassFigures {
        ClassFigures {
            rules: (0..=rules).map(|_| OfRule::default()).collect(),
            classes: Default::default(),
            knows_arrivals: AtomicBool::new(false),
            heavy: Mutex::default(),
        }
    }

    /// What was measured of each rule, and last of what no rule matches.
    pub fn rules(&self) -> impl Iterator<Item = RuleFigures> {
        self.rules.iter().map(|rule| RuleFigures {
            packets: rule.packets.get().saturating_sub(rule.deferred.get()),
            latency: rule.latency.clone(),
        })
    }

    /// Whether latencies are known: some device knows when its packets arrive.
    pub fn knows_arrivals(&self) -> bool {
        self.knows_arrivals.load(Ordering::Relaxed)
    }

    /// The heaviest flows of the lane.
    pub fn heavy(&self) -> Vec<HeavyShare> {
        self.heavy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces them, unless they are being read: then the next epoch does.
    pub(crate) fn publish(&self, heavy: Vec<HeavyShare>) {
        if let Ok(mut known) = self.heavy.try_lock() {
            *known = heavy;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_the_variation_that_they_were_added_with() {
        let moments = Moments::default();
        let mut gaps = MomentSample::default();
        (0..100).for_each(|gap| gaps.add(if gap % 2 == 0 { 4.0 } else { 12.0 }));
        moments.add_all(gaps);
        let before = moments.sample();
        assert!((before.mean() - 8.0).abs() < 1e-9 && (before.cv2() - 0.25).abs() < 1e-9);
        let mut gaps = MomentSample::default();
        (0..10).for_each(|_| gaps.add(7.0));
        moments.add_all(gaps);
        let since = moments.sample().since(before);
        assert!((since.mean() - 7.0).abs() < 1e-9 && since.cv2() < 1e-9);
        assert_eq!(MomentSample::default().cv2(), 0.0);
    }

    #[test]
    fn batches_show_the_variation_of_single_packets() {
        // Packets of 50 or 150 ns at random, in batches of 1 to 32: CS² is 0.25.
        let moments = BatchMoments::default();
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        for _ in 0..20_000 {
            let packets = 1 + random() % 32;
            let total: u64 = (0..packets).map(|_| if random() % 2 == 0 { 50 } else { 150 }).sum();
            moments.add(packets as f64, total as f64 / packets as f64);
        }
        let sample = moments.sample();
        assert!((sample.mean() - 100.0).abs() < 1.0, "{}", sample.mean());
        assert!((sample.cv2() - 0.25).abs() < 0.02, "{}", sample.cv2());
        assert_eq!(BatchSample::default().cv2(), 0.0);
    }
}
