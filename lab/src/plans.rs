//! A policy at work, watched: how long its plans take, and how it comes by them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rheostat_base::{Clock, ClockSource, Time};
use rheostat_measure::quantiles::Sorted;
use rheostat_steer::policy::{LoadSnapshot, Plan, Policy, Reason};

use crate::record::Plans;

/// What was seen of a policy; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanLog(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
struct Log {
    /// Microseconds of each plan.
    took: Vec<f64>,
    moving: u64,
    searched: u64,
    first_attempt: u64,
}

/// Passes everything on to a policy and notes what it does.
pub(crate) struct WatchedPlan {
    policy: Box<dyn Policy>,
    clock: Clock,
    log: PlanLog,
}

impl WatchedPlan {
    /// Watches `policy`, and notes what it sees in `log`.
    pub(crate) fn new(policy: Box<dyn Policy>, clock: Clock, log: PlanLog) -> WatchedPlan {
        WatchedPlan { policy, clock, log }
    }
}

impl Policy for WatchedPlan {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn plan(&mut self, now: Time, load: &LoadSnapshot) -> Plan {
        let start = self.clock.now();
        let plan = self.policy.plan(now, load);
        self.log.note(&plan, self.clock.now().since(start));
        plan
    }

    fn period(&self) -> Duration {
        self.policy.period()
    }
}

impl PlanLog {
    /// Notes a plan that took so long.
    pub(crate) fn note(&self, plan: &Plan, took: Duration) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.took.push(took.as_secs_f64() * 1e6);
        log.moving += u64::from(!plan.moves.is_empty());
        for reason in &plan.why {
            // Without steps, there was no lane to give shards, or none to take them.
            if let Reason::Rebalanced { steps, .. } | Reason::NoBetter { steps, .. } = reason
                && *steps > 0
            {
                log.searched += 1;
                log.first_attempt += u64::from(*steps == 1);
            }
        }
    }

    /// What it comes to. Only of policies that make `attempts` is it known how many they needed.
    pub(crate) fn summary(&self, attempts: bool) -> Plans {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let took = Sorted::of(log.took.iter().copied());
        Plans {
            count: log.took.len() as u64,
            moving: log.moving,
            first_attempt: attempts.then_some(log.first_attempt),
            searched: attempts.then_some(log.searched),
            solve_us_p50: took.quantile(0.5).unwrap_or(0.0),
            solve_us_p99: took.quantile(0.99).unwrap_or(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use rheostat_steer::policy::{Load, SquaredLoad};

    use super::*;

    #[test]
    fn attempts_and_times_are_those_of_the_plans() {
        let log = PlanLog::default();
        let mean = Load::from_percent(50);
        for (steps, us) in [(1, 10), (1, 30), (3, 20)] {
            let (before, after) = (SquaredLoad::default(), SquaredLoad::default());
            let why = vec![Reason::Rebalanced { mean, before, after, steps }];
            log.note(&Plan { why, ..Plan::default() }, Duration::from_micros(us));
        }
        let squared = SquaredLoad::default();
        for why in [Reason::Static, Reason::NoBetter { squared, steps: 0 }] {
            log.note(&Plan { why: vec![why], ..Plan::default() }, Duration::from_micros(5));
        }
        let why = vec![Reason::NoBetter { squared, steps: 1 }];
        log.note(&Plan { why, ..Plan::default() }, Duration::from_micros(15));
        let plans = log.summary(true);
        assert_eq!((plans.count, plans.moving), (6, 0));
        assert_eq!((plans.searched, plans.first_attempt), (Some(4), Some(3)));
        assert_eq!((plans.solve_us_p50, plans.solve_us_p99), (10.0, 30.0));
        assert_eq!(log.summary(false).searched, None);
    }
}
