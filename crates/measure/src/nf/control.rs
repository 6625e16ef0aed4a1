//! The controller of the lanes of a row.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{Counter, Time};
use rheostat_control::config::BalanceConfig;
use rheostat_control::{Balancer, Balancing};
use rheostat_run::{LoadReporting, RunView};
use rheostat_steer::policy::{LoadSnapshot, Objectives, Plan, Policy, Rsspp};

/// The controller of the lanes of a row, and what lanes report for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// None, and lanes report nothing: static RSS without any count of the load.
    Off,
    /// None, and lanes report how busy they are: static RSS as `rheo run` has it.
    #[default]
    Watched,
    /// RSS++ with its defaults and at its own pace, in a thread as `rheo run` has it; they report what each
    /// shard costs.
    Rsspp,
}

impl Control {
    pub(super) fn reporting(self) -> LoadReporting {
        match self {
            Control::Off => LoadReporting::Nothing,
            Control::Watched => LoadReporting::Lanes,
            Control::Rsspp => LoadReporting::Shards,
        }
    }

    /// Starts the controller of a run that has just been started, if there is to be one.
    pub(super) fn start(self, view: Arc<RunView>, shards: usize) -> io::Result<Option<Controller>> {
        if self != Control::Rsspp {
            return Ok(None);
        }
        let withheld = Arc::new(Counter::default());
        let policy = Withheld { policy: Rsspp::default(), plans: withheld.clone() };
        let lanes = (view.lanes(), shards);
        let balancer = Balancer::new(Box::new(policy), None, lanes, view.now());
        let balancing =
            Balancing::start(balancer, BalanceConfig::default(), Objectives::PERCENTILE, view)?;
        Ok(Some(Controller { balancing, withheld }))
    }
}

/// A controller at work.
pub(super) struct Controller {
    balancing: Balancing,
    withheld: Arc<Counter>,
}

/// What a controller did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Controlled {
    /// How often it planned.
    pub plans: u64,
    /// How many of the plans would have changed something.
    pub withheld: u64,
}

impl Controller {
    pub(super) fn stop(self) -> Controlled {
        let plans = self.balancing.stop().plans;
        Controlled { plans, withheld: self.withheld.get() }
    }
}

/// Plans, and keeps what would change to itself: the source gives each lane its own flows for good.
struct Withheld {
    policy: Rsspp,
    /// Plans that would have changed something.
    plans: Arc<Counter>,
}

impl Policy for Withheld {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn plan(&mut self, now: Time, load: &LoadSnapshot) -> Plan {
        let plan = self.policy.plan(now, load);
        if plan.is_empty() {
            return plan;
        }
        self.plans.increment();
        Plan { why: plan.why, ..Plan::default() }
    }

    fn period(&self) -> Duration {
        self.policy.period()
    }
}

#[cfg(test)]
mod tests {
    use rheostat_base::LaneId;
    use rheostat_steer::policy::{LaneBounds, LaneLoad, Load, ShardLoad};

    use super::*;

    #[test]
    fn what_would_change_is_counted_and_not_done() {
        let plans = Arc::new(Counter::default());
        let mut policy = Withheld { policy: Rsspp::default(), plans: plans.clone() };
        let mut plan = |percents: [u64; 4]| {
            let shards = percents.map(Load::from_percent).into_iter().zip([0, 0, 1, 1]);
            let shards = shards.map(|(load, owner)| ShardLoad { owner: LaneId(owner), load });
            let (lanes, bounds) = (vec![LaneLoad::ACTIVE; 2], LaneBounds { min: 1, max: 2 });
            let period = Duration::from_millis(100);
            let load = LoadSnapshot::new(lanes, shards.collect(), bounds, period).unwrap();
            (policy.plan(Time::from_secs(1), &load).is_empty(), plans.get())
        };
        assert_eq!(plan([30, 30, 30, 30]), (true, 0));
        assert_eq!(plan([40, 40, 10, 10]), (true, 1));
    }
}
