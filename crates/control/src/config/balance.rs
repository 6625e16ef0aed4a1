//! `[balance]`: the policy that decides which lane owns which shard.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use rheostat_steer::policy::{
    self, LaneBounds, Load, Objectives, Policy, PolicyRegistration, Scaling, Settings,
};

use super::workers::MAX_LANES;
use rheostat_settings::declared::Setting;
use rheostat_settings::declared::kind::{choice, decimal, duration, integer};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::Span;
use rheostat_settings::reader::Table;

/// Which policy moves shards between lanes, how often it plans, and how many lanes it may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalanceConfig {
    /// The policy.
    pub policy: PolicyRegistration,
    /// The policies there are, the default first: a client of a run may ask each what it would do.
    pub policies: Vec<PolicyRegistration>,
    /// The time between two plans; the policy's own pace without it.
    pub interval: Option<Duration>,
    /// No lane is parked while so many or fewer are active. From 1 to [`MAX_LANES`].
    pub min_lanes: usize,
    /// So many lanes are active at most; without it, all there are.
    pub max_lanes: Option<usize>,
    /// An offloading lane serves so many working lanes at least; the policy's own figure without it.
    pub min_working_per_offloading: Option<usize>,
    /// The mean load that lanes should not exceed: above it a lane is added, and none is parked if
    /// that would bring another above it.
    pub target: Load,
}

impl Default for BalanceConfig {
    fn default() -> BalanceConfig {
        BalanceConfig {
            policy: policy::ALL[0],
            policies: policy::ALL.to_vec(),
            interval: None,
            min_lanes: Scaling::default().keep,
            max_lanes: None,
            min_working_per_offloading: None,
            target: Scaling::default().target,
        }
    }
}

impl fmt::Display for BalanceConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.policy.name)?;
        if let Some(interval) = self.interval {
            write!(f, " every {}", Span(interval))?;
        }
        if self.is_static() {
            return Ok(());
        }
        match self.max_lanes {
            Some(max) => write!(f, ", on {} to {max} lanes", self.min_lanes.min(max))?,
            None => write!(f, ", on {} lanes or more", self.min_lanes)?,
        }
        write!(f, ", for a mean load of {} at most", self.target)
    }
}

impl BalanceConfig {
    /// Whether the policy never moves anything, whatever the load.
    pub fn is_static(&self) -> bool {
        !self.policy.facts.moves
    }

    /// Whether the policy decides which flows leave for offloading lanes.
    pub fn plans_offloading(&self) -> bool {
        self.policy.facts.plans_offloading
    }

    /// The policy, without objectives and offloading lanes.
    pub fn policy(&self) -> Box<dyn Policy> {
        self.policy.make(&self.settings(Objectives::NONE, 0))
    }

    /// What policies plan with, where so many lanes may offload, and packets may have these latencies.
    pub(crate) fn settings(&self, objectives: Objectives, offloading: usize) -> Settings {
        Settings {
            scaling: Scaling { target: self.target, keep: self.min_lanes, ..Scaling::default() },
            objectives,
            offloading,
            min_working_per_offloading: self.min_working_per_offloading.unwrap_or(0),
        }
    }

    /// How many of `lanes` lanes may be active.
    pub fn bounds(&self, lanes: usize) -> LaneBounds {
        let max = self.max_lanes.map_or(lanes, |max| max.min(lanes));
        LaneBounds { min: self.min_lanes.min(max), max }
    }

    pub(crate) fn read(
        table: &mut Table<'_>,
        policies: &[PolicyRegistration],
        findings: &mut Findings,
    ) -> BalanceConfig {
        let keys = Keys::new(policies);
        let policy = keys.policy.read_or_default(table, findings);
        let interval = keys.interval.read(table, findings);
        let min = keys.min_lanes.read_or_default(table, findings);
        let max = keys.max_lanes.read(table, findings);
        let min_working_per_offloading = keys.min_working_per_offloading.read(table, findings);
        let target = keys.target.read_or_default(table, findings);
        if table.has("min_lanes") && max.is_some_and(|max| max < min) {
            let mistake = Finding::mistake("balance.max_lanes", "no number of lanes is both")
                .at(findings.place("balance.min_lanes"), "at least so many")
                .at(findings.place("balance.max_lanes"), "at most so many")
                .help("raise `max_lanes`, or lower `min_lanes`");
            findings.push(mistake);
        }
        BalanceConfig {
            policy,
            policies: policies.to_vec(),
            interval,
            min_lanes: min,
            max_lanes: max,
            min_working_per_offloading,
            target,
        }
    }

    /// The keys of `[balance]`, whose `policy` is one of `policies`.
    pub(crate) fn keys(policies: &[PolicyRegistration]) -> Vec<Setting> {
        Keys::new(policies).settings()
    }
}

const INTERVALS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(60);
const LANES: RangeInclusive<u64> = 1..=MAX_LANES as u64;

rheostat_settings::keys! {
    struct Keys(policies: &[PolicyRegistration]) {
        /// Move shards between lanes by this policy.
        policy: PolicyRegistration = choice(names(policies)), default(policy::ALL[0]);
        /// The time between two plans; the policy's own pace without it.
        interval: Duration = duration(INTERVALS), example("\"100ms\"");
        /// No lane is parked while so many or fewer are active.
        min_lanes: usize = integer(LANES), default(Scaling::default().keep);
        /// So many lanes are active at most; without it, all there are.
        max_lanes: usize = integer(LANES), example("8");
        /// An offloading lane serves so many working lanes at least; the policy's own figure without it.
        min_working_per_offloading: usize = integer(LANES);
        /// The mean load that lanes should not exceed, as a share: above it a lane is added, and none is parked if that would bring
        /// another above it.
        target: Load = decimal(0.1..=1.0).map(Load::from_share, |load: &Load| load.share()), default(Scaling::default().target);
    }
}

fn names(policies: &[PolicyRegistration]) -> Vec<(&'static str, PolicyRegistration)> {
    policies.iter().map(|policy| (policy.name, *policy)).collect()
}
