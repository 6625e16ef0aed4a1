//! How much work a lane may have so that packets wait no longer than they may.

use std::time::Duration;

use super::super::Load;

/// The mean wait in front of a lane by Kingman's formula for G/G/1 queues,
/// u/(1 − u) · (CA² + CS²)/2 · T, and the most it may be: equations (5.12) and (5.13).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitModel {
    /// CA²: the squared coefficient of variation of the times between packets.
    pub arrival_cv2: f64,
    /// CS²: that of the times packets take.
    pub service_cv2: f64,
    /// T: the mean time a packet takes.
    pub service: Duration,
    /// The mean wait may be no longer than this.
    pub objective: Duration,
}

impl WaitModel {
    /// The mean wait at this load in seconds; infinite from a full lane up.
    pub fn wait(&self, load: Load) -> f64 {
        if load >= Load::FULL {
            return f64::INFINITY;
        }
        let u = load.share();
        u / (1.0 - u) * self.unit()
    }

    /// The most work at which the objective is met, below a full lane. With x = objective ÷
    /// ((CA² + CS²)/2 · T), it is x/(1 + x).
    pub fn capacity(&self) -> Load {
        let x = self.objective.as_secs_f64() / self.unit();
        let below_full = Load::FULL.nanos_per_second() - 1;
        // Infinite without variation, not a number when the objective is zero, too.
        let share = if x.is_finite() { x / (1.0 + x) } else { 1.0 };
        let rounded = (share * Load::FULL.nanos_per_second() as f64) as u64;
        let mut capacity = Load::from_nanos_per_second(rounded.min(below_full));
        // The product may have been rounded up.
        if self.wait(capacity) > self.objective.as_secs_f64() {
            capacity = capacity.saturating_sub(Load::from_nanos_per_second(1));
        }
        capacity
    }

    /// Whether both variations are numbers that variations can be.
    pub(super) fn is_sound(&self) -> bool {
        let sound = |cv2: f64| cv2.is_finite() && cv2 >= 0.0;
        sound(self.arrival_cv2) && sound(self.service_cv2)
    }

    fn unit(&self) -> f64 {
        (self.arrival_cv2 + self.service_cv2) / 2.0 * self.service.as_secs_f64()
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
        }
    }

    #[test]
    fn capacity_is_where_the_wait_meets_the_objective() {
        // Poisson arrivals and exponential service: at half load, a packet waits as long as it takes.
        assert_eq!(model(2, 1.0).capacity(), Load::from_percent(50));
        for us in [0, 1, 7, 50, 500, 1_000_000] {
            for cv2 in [0.01, 0.5, 1.0, 3.7] {
                let model = model(us, cv2);
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
    fn without_variation_nothing_waits_below_a_full_lane() {
        for us in [0, 5] {
            assert_eq!(model(us, 0.0).capacity().nanos_per_second(), 999_999_999);
        }
    }
}
