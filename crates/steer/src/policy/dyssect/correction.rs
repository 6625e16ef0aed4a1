//! How far waits differ from what the formula gives.

use super::super::Class;

/// Evidence weighs this much less with each period.
const AGEING: f64 = 0.9;
/// No observation counts as more samples than this.
const MOST: f64 = 1_000.0;
/// As many samples of a lane weigh as much as what the other lanes of its class have shown, and as many of a class as the
/// formula itself.
const PRIOR: f64 = 200.0;
/// The formula is corrected by at most this factor, up or down.
const RANGE: f64 = 32.0;

/// Measured ÷ predicted waits, by lane and class, learned and aged.
///
/// Queues of lanes are not those of the formula: packets are taken in bursts, lanes are interrupted, priority is served first.
/// A lane's factor is a mean over what it showed, older periods counting less. With few samples it is drawn to that of all
/// lanes, and that to 1. Means are of logarithms, so that twice and half as long cancel out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Corrections {
    lanes: Vec<[Evidence; Class::ALL.len()]>,
}

/// A weighted mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Evidence {
    weight: f64,
    log: f64,
}

impl Evidence {
    fn add(&mut self, log: f64, weight: f64) {
        let sum = self.weight + weight;
        if sum > 0.0 {
            self.log += (log - self.log) * weight / sum;
            self.weight = sum;
        }
    }

    /// The mean, drawn to `prior`.
    fn drawn_to(self, prior: f64) -> f64 {
        (self.log * self.weight + prior * PRIOR) / (self.weight + PRIOR)
    }
}

impl Corrections {
    /// A period has passed.
    pub(super) fn age(&mut self) {
        self.lanes.iter_mut().flatten().for_each(|evidence| evidence.weight *= AGEING);
    }

    /// Packets of `class` waited `ratio` times as long as predicted on a lane, by so many samples.
    pub(super) fn learn(&mut self, lane: usize, class: Class, ratio: f64, samples: u64) {
        if !ratio.is_finite() || ratio <= 0.0 {
            return;
        }
        if lane >= self.lanes.len() {
            self.lanes.resize(lane + 1, Default::default());
        }
        let log = ratio.ln().clamp(-RANGE.ln(), RANGE.ln());
        self.lanes[lane][class.index()].add(log, (samples as f64).min(MOST));
    }

    /// By how much to multiply what the formula gives for a class on a lane.
    pub(super) fn factor(&self, lane: usize, class: Class) -> f64 {
        let mut all = Evidence::default();
        for lane in &self.lanes {
            let Evidence { weight, log } = lane[class.index()];
            all.add(log, weight);
        }
        let own = self.lanes.get(lane).map_or(Evidence::default(), |lane| lane[class.index()]);
        own.drawn_to(all.drawn_to(0.0)).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASS: Class = Class::Regular;

    #[test]
    fn what_is_seen_often_is_believed() {
        let mut corrections = Corrections::default();
        assert_eq!(corrections.factor(3, CLASS), 1.0);
        for _ in 0..100 {
            corrections.age();
            corrections.learn(1, CLASS, 4.0, 500);
        }
        let (own, other) = (corrections.factor(1, CLASS), corrections.factor(0, CLASS));
        assert!((3.7..=4.0).contains(&own), "{own}");
        assert!(other > 2.0 && other < own, "{other}: other lanes are expected to be alike");
        assert_eq!(corrections.factor(1, Class::Priority), 1.0);
        for _ in 0..100 {
            corrections.age();
        }
        assert!(corrections.factor(1, CLASS) < 1.5, "what is old is forgotten");
    }

    #[test]
    fn nonsense_is_not_learned_and_extremes_are_bounded() {
        let mut corrections = Corrections::default();
        for ratio in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            corrections.learn(0, CLASS, ratio, 1_000);
        }
        assert_eq!(corrections, Corrections::default());
        for _ in 0..100 {
            corrections.learn(0, CLASS, 1e9, u64::MAX);
        }
        assert!(corrections.factor(0, CLASS) <= RANGE);
    }
}
