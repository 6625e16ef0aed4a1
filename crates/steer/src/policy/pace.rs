//! How often to plan.

use std::time::Duration;

use super::{Load, LoadSnapshot, Plan, SquaredLoad};

/// Plans at the shortest period while there is something to do, and doubles the period up to the
/// longest while both load and imbalance are low and nothing changes (RSS++ 4: "exponential backoff
/// … when the average load and the imbalance are lower than a threshold"; 1-10 Hz). Any other plan
/// brings the shortest period back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    shortest: Duration,
    longest: Duration,
    quiet_load: Load,
    quiet_imbalance: SquaredLoad,
    current: Duration,
}

impl Pace {
    /// Between `shortest` and `longest`; quiet is a mean load below `quiet_load` with a squared
    /// imbalance below `quiet_imbalance`.
    pub fn new(
        shortest: Duration,
        longest: Duration,
        quiet_load: Load,
        quiet_imbalance: SquaredLoad,
    ) -> Pace {
        let longest = longest.max(shortest);
        Pace { shortest, longest, quiet_load, quiet_imbalance, current: shortest }
    }

    /// The period now.
    pub fn period(&self) -> Duration {
        self.current
    }

    /// Takes the outcome of a plan into account.
    pub(super) fn planned(&mut self, load: &LoadSnapshot, plan: &Plan) {
        let quiet = plan.is_empty()
            && load.mean() < self.quiet_load
            && load.imbalance().squared < self.quiet_imbalance;
        self.current =
            if quiet { self.current.saturating_mul(2).min(self.longest) } else { self.shortest };
    }
}

impl Default for Pace {
    /// 100 ms to 1 s (RSS++ 3.1). The paper does not state its thresholds; half the target load, so
    /// that the load can double within the longest period, and the imbalance that the solver takes
    /// for balanced.
    fn default() -> Pace {
        Pace::new(
            Duration::from_millis(100),
            Duration::from_secs(1),
            Load::from_percent(40),
            SquaredLoad::of(Load::FULL, Load::from_percent(1)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{LaneBounds, LaneLoad, ShardLoad};
    use rheostat_base::LaneId;

    fn lanes(percents: [u64; 2]) -> LoadSnapshot {
        let shards = (0..)
            .map(LaneId)
            .zip(percents)
            .map(|(owner, percent)| ShardLoad { owner, load: Load::from_percent(percent) });
        let bounds = LaneBounds { min: 1, max: 2 };
        let period = Duration::from_millis(100);
        LoadSnapshot::new(vec![LaneLoad::ACTIVE; 2], shards.collect(), bounds, period).unwrap()
    }

    #[test]
    fn the_period_grows_while_all_is_quiet_and_falls_back_at_once() {
        let mut pace = Pace::default();
        let mut periods = Vec::new();
        for _ in 0..5 {
            periods.push(pace.period().as_millis());
            pace.planned(&lanes([20, 22]), &Plan::default());
        }
        assert_eq!(periods, [100, 200, 400, 800, 1000]);
        pace.planned(&lanes([5, 35]), &Plan::default());
        assert_eq!(pace.period().as_millis(), 100, "an imbalance that stays is not quiet");
        pace.planned(&lanes([20, 20]), &Plan::default());
        assert_eq!(pace.period().as_millis(), 200);
        pace.planned(&lanes([60, 60]), &Plan::default());
        assert_eq!(pace.period().as_millis(), 100, "a high load is not quiet");
        let plan = Plan { park: vec![LaneId(1)], ..Plan::default() };
        pace.planned(&lanes([20, 20]), &plan);
        assert_eq!(pace.period().as_millis(), 100, "a change is not quiet");
    }
}
