//! How much work a lane may have so that packets wait no longer than they may.

use std::time::Duration;

use super::super::Load;

/// The wait in front of a lane, and the most it may be: equations (5.12) and (5.13).
///
/// The mean is Kingman's for G/G/1 queues, u/(1 − u) · (CA² + CS²)/2 · T. A percentile follows from an exponential tail
/// with that mean: of all packets, the share u waits at all, and these wait unit/(1 − u) on average, where unit =
/// (CA² + CS²)/2 · T. For M/M/1 queues both are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitModel {
    /// CA²: the squared coefficient of variation of the times between packets.
    pub arrival_cv2: f64,
    /// CS²: that of the times packets take.
    pub service_cv2: f64,
    /// T: the mean time a packet takes.
    pub service: Duration,
    /// What is predicted may be no longer than this.
    pub objective: Duration,
    /// What of the distribution of waits is predicted.
    pub statistic: WaitStatistic,
    /// How many times longer waits have turned out than the formula gives; 1 where nothing is known.
    pub factor: f64,
}

/// What of a distribution of waits an objective is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WaitStatistic {
    /// The mean.
    Mean,
    /// The wait that this share of packets does not exceed: above 0 and below 1.
    Percentile(f64),
}

impl WaitModel {
    /// The wait at this load in seconds; infinite from a full lane up.
    pub fn wait(&self, load: Load) -> f64 {
        if load >= Load::FULL {
            return f64::INFINITY;
        }
        let u = load.share();
        let units = match self.statistic {
            WaitStatistic::Mean => u / (1.0 - u),
            // No packet in so many waits.
            WaitStatistic::Percentile(share) if u <= 1.0 - share => 0.0,
            WaitStatistic::Percentile(share) => (u / (1.0 - share)).ln() / (1.0 - u),
        };
        units * self.unit()
    }

    /// The most work at which the objective is met, below a full lane; for the mean, with x = objective ÷ unit, it is
    /// x/(1 + x).
    pub fn capacity(&self) -> Load {
        let x = self.objective.as_secs_f64() / self.unit();
        let full = Load::FULL.nanos_per_second();
        let most = full - 1;
        // Infinite without variation, not a number when the objective is zero, too.
        if !x.is_finite() {
            return Load::from_nanos_per_second(most);
        }
        let met = |nanos: u64| {
            self.wait(Load::from_nanos_per_second(nanos)) <= self.objective.as_secs_f64()
        };
        let nanos = match self.statistic {
            WaitStatistic::Mean => (x / (1.0 + x) * full as f64) as u64,
            WaitStatistic::Percentile(_) => {
                // Waits grow with the load.
                let (mut met_at, mut missed_at) = (0, full);
                while missed_at - met_at > 1 {
                    let middle = met_at.midpoint(missed_at);
                    *(if met(middle) { &mut met_at } else { &mut missed_at }) = middle;
                }
                met_at
            }
        };
        // The product may have been rounded up.
        let nanos = nanos.min(most);
        Load::from_nanos_per_second(nanos - u64::from(nanos > 0 && !met(nanos)))
    }

    /// Whether all figures are such that waits are numbers.
    pub(super) fn is_sound(&self) -> bool {
        let sound = |cv2: f64| cv2.is_finite() && cv2 >= 0.0;
        let share = match self.statistic {
            WaitStatistic::Mean => true,
            WaitStatistic::Percentile(share) => share > 0.0 && share < 1.0,
        };
        let factor = self.factor.is_finite() && self.factor > 0.0;
        sound(self.arrival_cv2) && sound(self.service_cv2) && share && factor
    }

    fn unit(&self) -> f64 {
        self.factor * (self.arrival_cv2 + self.service_cv2) / 2.0 * self.service.as_secs_f64()
    }
}

/// How much work lanes of one role may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneLimit {
    /// The objective of the traffic they serve, if it has one: of priority traffic for working
    /// lanes, of regular traffic for offloading lanes.
    pub wait: Option<WaitModel>,
    /// u_max: the most while the number of lanes is open, so that bursts find room.
    pub highest: Load,
}

impl LaneLimit {
    /// No objective, and no reserve below a full lane.
    pub const NONE: LaneLimit = LaneLimit { wait: None, highest: Load::FULL };

    /// What a lane may have while the number of lanes is open: (5.12) and (5.14), or (5.13) and
    /// (5.15).
    pub fn planned(&self) -> Load {
        self.objective().min(self.highest)
    }

    /// What a lane may have while the number of lanes stands: (5.12) and (5.17), or (5.13) and
    /// (5.18).
    pub fn transient(&self) -> Load {
        self.objective().min(Load::from_nanos_per_second(Load::FULL.nanos_per_second() - 1))
    }

    fn objective(&self) -> Load {
        self.wait.map_or(Load::FULL, |wait| wait.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(objective_us: u64, cv2: f64) -> WaitModel {
        WaitModel {
            arrival_cv2: cv2,
            service_cv2: cv2,
            service: Duration::from_micros(2),
            objective: Duration::from_micros(objective_us),
            statistic: WaitStatistic::Mean,
            factor: 1.0,
        }
    }

    #[test]
    fn capacity_is_where_the_wait_meets_the_objective() {
        // Poisson arrivals and exponential service: at half load, a packet waits as long as it takes.
        assert_eq!(model(2, 1.0).capacity(), Load::from_percent(50));
        for us in [0, 1, 7, 50, 500, 1_000_000] {
            let cases = [0.01, 0.5, 1.0, 3.7].map(|cv2| (cv2, WaitStatistic::Mean));
            let tails = [(0.5, 0.5), (1.0, 0.995), (3.7, 0.9999)];
            let tails = tails.map(|(cv2, share)| (cv2, WaitStatistic::Percentile(share)));
            for (cv2, statistic) in cases.into_iter().chain(tails) {
                let model = WaitModel { statistic, ..model(us, cv2) };
                let (capacity, next) = (model.capacity(), Load::from_nanos_per_second(1));
                assert!(model.wait(capacity) <= model.objective.as_secs_f64());
                let reached = capacity + next + next;
                assert!(
                    reached >= Load::FULL || model.wait(reached) > model.objective.as_secs_f64()
                );
            }
        }
    }

    #[test]
    fn percentiles_are_those_of_the_queue_where_it_is_markovian() {
        // M/M/1 with T = 2 us at u = 0.8: P(wait > t) = 0.8·exp(−0.2·t/T), so 99 % wait at most 10·ln(80) T.
        let statistic = WaitStatistic::Percentile(0.99);
        let model = WaitModel { statistic, ..model(50, 1.0) };
        let wait = model.wait(Load::from_percent(80));
        assert!((wait - 10e-6 * 80_f64.ln()).abs() < 1e-12, "{wait}");
        assert_eq!(model.wait(Load::from_percent(1)), 0.0, "one in a hundred waits at all");
        let doubled = WaitModel { factor: 2.0, ..model };
        assert_eq!(doubled.wait(Load::from_percent(80)), 2.0 * wait);
        assert!(doubled.capacity() < model.capacity());
    }

    #[test]
    fn without_variation_nothing_waits_below_a_full_lane() {
        for us in [0, 5] {
            assert_eq!(model(us, 0.0).capacity().nanos_per_second(), 999_999_999);
        }
    }
}
