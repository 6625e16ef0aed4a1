//! Picks a policy by what it measures.

use std::time::Duration;

use rheostat_base::Time;

use super::{
    Cause, Load, LoadSnapshot, Offloads, Plan, Policy, PolicyFacts, PolicyRegistration,
    PredictionLog, Reason, Settings, dyssect, local_search, rss, rsspp, traffic_class,
};

pub(super) const REGISTRATION: PolicyRegistration = PolicyRegistration {
    name: "auto",
    summary: "whichever fits the load",
    facts: PolicyFacts { plans_offloading: true, serves: false, ..PolicyFacts::MOVES_SHARDS },
    make: &|settings| Box::new(Auto::new(*settings)),
};

/// A policy that would have fitted better.
#[derive(Clone, Copy, Debug)]
struct Vote {
    policy: PolicyRegistration,
    /// Why it would have, the last time.
    cause: Cause,
    plans: u32,
}

/// Each plan looks at the load and asks the policy that fits it.
///
/// | what is measured | policy |
/// |---|---|
/// | only one lane may be active | `rss` |
/// | there are objectives | `dyssect` |
/// | a shard is more than a lane should have, and its flows can leave | `dyssect` |
/// | rewriting the device's table takes 50 ms or more | `traffic-class` |
/// | 16 active lanes or more, or a shard of a third of the mean | `local-search` |
/// | otherwise | `rsspp` |
///
/// Another policy takes over once others fitted better for [`Auto::CONFIRMED`] plans in a row, and [`Auto::HOLD`] after the last
/// change at the earliest: the one that did most often. What a policy has learned is lost with it.
pub struct Auto {
    settings: Settings,
    policy: Box<dyn Policy>,
    cause: Cause,
    /// Plans in a row for which others would have fitted better, by the policy that would have.
    others: Vec<Vote>,
    changed: Option<Time>,
}

impl Auto {
    /// Plans in a row that have to agree.
    pub const CONFIRMED: u32 = 10;
    /// The least time between two changes.
    pub const HOLD: Duration = Duration::from_secs(5);
    /// Lanes from which `rsspp` leaves gaps that `local-search` does not (docs/policies.md).
    const MANY: usize = 16;
    /// Rewriting that takes so long is expensive.
    const SLOW: Duration = Duration::from_millis(50);

    /// A choice among policies with these settings.
    pub fn new(settings: Settings) -> Auto {
        let (first, cause) = match settings.objectives.is_none() {
            true => (rsspp::REGISTRATION, Cause::Fine),
            false => (dyssect::REGISTRATION, Cause::Objectives),
        };
        let policy = first.make(&settings);
        Auto { settings, policy, cause, others: Vec::new(), changed: None }
    }

    /// The policy that it asks now.
    pub fn chosen(&self) -> &'static str {
        self.policy.name()
    }

    /// What fits the load.
    fn best(&self, load: &LoadSnapshot) -> (PolicyRegistration, Cause) {
        if load.bounds().max == 1 {
            return (rss::REGISTRATION, Cause::OneLane);
        }
        if !self.settings.objectives.is_none() {
            return (dyssect::REGISTRATION, Cause::Objectives);
        }
        let lanes = load.active().count();
        let heaviest = load.shards().iter().map(|shard| shard.load).max().unwrap_or_default();
        let target = self.settings.scaling.target;
        let leaves = load.may_leave().iter().any(|leaves| *leaves > Load::ZERO);
        if heaviest > target && leaves && self.settings.offloading > 0 {
            return (dyssect::REGISTRATION, Cause::HeavyShard { load: heaviest });
        }
        if let Some(took) = load.rewrite().filter(|took| *took >= Auto::SLOW) {
            return (traffic_class::REGISTRATION, Cause::Rewriting { took });
        }
        if lanes >= Auto::MANY || heaviest.part(3, 1) > load.mean() {
            return (local_search::REGISTRATION, Cause::Coarse { lanes, heaviest });
        }
        (rsspp::REGISTRATION, Cause::Fine)
    }

    fn choose(&mut self, now: Time, load: &LoadSnapshot) {
        let (best, cause) = self.best(load);
        if best.name == self.policy.name() {
            self.cause = cause;
            self.others.clear();
            return;
        }
        match self.others.iter_mut().find(|vote| vote.policy == best) {
            Some(vote) => (vote.cause, vote.plans) = (cause, vote.plans + 1),
            None => self.others.push(Vote { policy: best, cause, plans: 1 }),
        }
        let held = self.changed.is_none_or(|changed| now.since(changed) >= Auto::HOLD);
        let plans = self.others.iter().map(|vote| vote.plans).sum::<u32>();
        let most = self.others.iter().copied().max_by_key(|vote| vote.plans);
        if plans >= Auto::CONFIRMED
            && held
            && let Some(Vote { policy, cause, .. }) = most
        {
            (self.policy, self.cause, self.changed) =
                (policy.make(&self.settings), cause, Some(now));
            self.others.clear();
        }
    }
}

impl Policy for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn plan(&mut self, now: Time, load: &LoadSnapshot) -> Plan {
        self.choose(now, load);
        let mut plan = self.policy.plan(now, load);
        // The others know of no offloading: flows come home first.
        if self.policy.name() != dyssect::REGISTRATION.name && !load.offloads().is_none() {
            plan.offloads = Some(Offloads::none(load.lanes().len(), load.shards().len()));
        }
        plan.why.push(Reason::Chosen { policy: self.policy.name(), cause: self.cause });
        plan
    }

    fn period(&self) -> Duration {
        self.policy.period()
    }

    fn predictions(&self) -> Option<&PredictionLog> {
        self.policy.predictions()
    }
}

#[cfg(test)]
mod tests {
    use rheostat_base::{LaneId, ShardId};

    use super::*;
    use crate::policy::{HeavyFlow, LaneBounds, LaneLoad, Objectives, ShardLoad};

    fn lanes(lanes: u16, shards: &[u64]) -> LoadSnapshot {
        let shard = |(number, load): (usize, &u64)| ShardLoad {
            owner: LaneId(number as u16 % lanes),
            load: Load::from_percent(*load),
        };
        let shards = shards.iter().enumerate().map(shard).collect();
        let bounds = LaneBounds { min: 1, max: lanes.into() };
        let active = vec![LaneLoad::ACTIVE; lanes.into()];
        LoadSnapshot::new(active, shards, bounds, Duration::from_millis(100)).unwrap()
    }

    /// What is chosen after so many plans of a load each.
    fn chosen(auto: &mut Auto, from: u64, plans: u64, load: &LoadSnapshot) -> &'static str {
        for plan in 0..plans {
            let made = auto.plan(Time::from_millis(from + 100 * plan), load);
            assert!(load.after(&made).is_ok());
            assert!(matches!(made.why.last(), Some(Reason::Chosen { .. })));
        }
        auto.chosen()
    }

    fn auto(offloading: usize) -> Auto {
        Auto::new(Settings { offloading, ..Settings::default() })
    }

    #[test]
    fn what_is_measured_decides() {
        let even = lanes(4, &[5; 40]);
        assert_eq!(chosen(&mut auto(0), 0, 20, &even), "rsspp");
        assert_eq!(chosen(&mut auto(0), 0, 20, &lanes(16, &[5; 160])), "local-search");
        assert_eq!(chosen(&mut auto(0), 0, 20, &lanes(2, &[30, 5, 5, 5])), "local-search");
        assert_eq!(chosen(&mut auto(0), 0, 20, &lanes(1, &[5; 9])), "rss");
        let slow = even.clone().with_rewrite(Duration::from_millis(350));
        assert_eq!(chosen(&mut auto(0), 0, 20, &slow), "traffic-class");
        let flow = HeavyFlow { shard: ShardId(0), load: Load::from_percent(40) };
        let heavy = lanes(3, &[90, 10, 10]).with_heavy(vec![flow]).unwrap();
        assert_eq!(chosen(&mut auto(1), 0, 20, &heavy), "dyssect");
        assert_ne!(chosen(&mut auto(0), 0, 20, &heavy), "dyssect", "flows cannot leave");
        let micros = Duration::from_micros;
        let objectives = Objectives::waiting(micros(50), micros(500));
        let mut strict = Auto::new(Settings { objectives, ..Settings::default() });
        assert_eq!(chosen(&mut strict, 0, 1, &even), "dyssect");
    }

    #[test]
    fn a_choice_holds_until_another_is_confirmed() {
        let (few, heavy) = (lanes(4, &[5; 40]), lanes(2, &[30, 5, 5, 5]));
        let mut auto = auto(0);
        assert_eq!(chosen(&mut auto, 0, 9, &heavy), "rsspp");
        assert_eq!(chosen(&mut auto, 1_000, 1, &few), "rsspp", "the count begins anew");
        assert_eq!(chosen(&mut auto, 2_000, 9, &heavy), "rsspp");
        assert_eq!(chosen(&mut auto, 3_000, 1, &heavy), "local-search");
        assert_eq!(chosen(&mut auto, 3_100, 49, &few), "local-search", "for five seconds");
        assert_eq!(chosen(&mut auto, 8_000, 1, &few), "rsspp");
    }

    #[test]
    fn others_that_fit_in_turn_replace_what_never_fits() {
        let heavy = lanes(2, &[30, 5, 5, 5]);
        let slow = lanes(4, &[5; 40]).with_rewrite(Duration::from_millis(350));
        let mut auto = auto(0);
        for plan in 0..9 {
            let load = if plan % 3 == 0 { &slow } else { &heavy };
            assert_eq!(chosen(&mut auto, 100 * plan, 1, load), "rsspp");
        }
        assert_eq!(chosen(&mut auto, 1_000, 1, &slow), "local-search", "the more frequent one");
    }

    #[test]
    fn flows_come_home_when_dyssect_is_left() {
        let percent = Load::from_percent;
        let roles = vec![LaneLoad::ACTIVE, LaneLoad::ACTIVE, LaneLoad::OFFLOADING];
        let shard = |owner| ShardLoad { owner: LaneId(owner), load: percent(5) };
        let bounds = LaneBounds { min: 1, max: 3 };
        let shards = (0..40).map(|number| shard(number % 2)).collect();
        let load = LoadSnapshot::new(roles, shards, bounds, Duration::from_millis(100)).unwrap();
        let mut offloads = Offloads::none(3, 40);
        (offloads.links[0], offloads.shares[0]) = (Some(LaneId(2)), percent(3));
        let load = load.with_offloads(offloads).unwrap();
        let plan = auto(0).plan(Time::from_secs(1), &load);
        let after = load.after(&plan).unwrap();
        assert!(after.offloads().is_none() && after.offloading().next().is_none());
    }
}
