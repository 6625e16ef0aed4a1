//! Which lane should own which shard: pure functions from a snapshot of the load to a plan.
//!
//! A policy sees figures and returns moves with their reasons; it does no I/O and reads no clock.
//! So the runtime's controller, a simulator, benchmarks and tests all run the same code. All
//! arithmetic that decides anything is on integers, and all orders are total with ties broken by
//! number, so equal snapshots give equal plans on every machine.

mod assignment;
pub mod auto;
mod balancing;
mod cause;
pub mod class;
mod cost_fit;
mod descent;
pub mod dyssect;
pub mod estimate;
mod handover_fit;
pub mod imbalance;
pub mod load;
pub mod local_search;
pub mod objectives;
pub mod offloads;
pub mod pace;
pub mod plan;
pub mod prediction_log;
pub mod reason;
mod registration;
pub mod rss;
pub mod rsspp;
pub mod scaling;
pub mod snapshot;
pub mod traffic_class;

use std::time::Duration;

use rheostat_base::Time;

pub use auto::Auto;
pub use cause::Cause;
pub use class::{Class, ClassLoad, ClassLoads, Waits};
pub use cost_fit::WorkCost;
pub use dyssect::Dyssect;
pub use estimate::{CountsError, LaneCounts, LoadEstimator};
pub use imbalance::{Imbalance, SquaredLoad};
pub use load::Load;
pub use local_search::LocalSearch;
pub use objectives::{Latency, Objectives};
pub use offloads::{HeavyFlow, Offloads, pick_flows};
pub use pace::Pace;
pub use plan::{Move, MoveReason, Plan, PlanError};
pub use prediction_log::{Prediction, PredictionLog};
pub use reason::Reason;
pub use registration::{
    MakePolicy, PolicyFacts, PolicyRegistration, Settings, UnknownPolicy, spelled_as,
};
pub use rss::Rss;
pub use rsspp::Rsspp;
pub use scaling::Scaling;
pub use snapshot::{LaneBounds, LaneLoad, LaneState, LoadSnapshot, ShardLoad, SnapshotError};
pub use traffic_class::TrafficClass;

/// Decides, once per period, which shards should change lanes and which lanes should run.
pub trait Policy: Send {
    /// The name it has in a configuration.
    fn name(&self) -> &'static str;

    /// What should change, given the load as it was measured until `now`. The plan fits the
    /// snapshot: [`LoadSnapshot::after`] accepts it.
    fn plan(&mut self, now: Time, load: &LoadSnapshot) -> Plan;

    /// How long to wait before the next plan. May change with every plan.
    fn period(&self) -> Duration;

    /// What it predicted and what came of it, if it predicts waits.
    fn predictions(&self) -> Option<&PredictionLog> {
        None
    }
}

impl PolicyRegistration {
    /// This policy, or `rsspp` in place of one that never moves a shard: to explain what a policy would do.
    pub fn or_moving(self) -> PolicyRegistration {
        if self.facts.moves { self } else { rsspp::REGISTRATION }
    }
}

/// The policies that come along.
pub const ALL: [PolicyRegistration; 6] = [
    rss::REGISTRATION,
    rsspp::REGISTRATION,
    local_search::REGISTRATION,
    traffic_class::REGISTRATION,
    dyssect::REGISTRATION,
    auto::REGISTRATION,
];

/// The names of [`ALL`].
pub const NAMES: [&str; ALL.len()] = {
    let mut names = [""; ALL.len()];
    let mut place = 0;
    while place < ALL.len() {
        names[place] = ALL[place].name;
        place += 1;
    }
    names
};

/// The policy of this name among [`ALL`] with its default parameters.
///
/// # Errors
/// [`UnknownPolicy`], which lists the names there are.
pub fn by_name(name: &str) -> Result<Box<dyn Policy>, UnknownPolicy> {
    with_settings(name, &Settings::default())
}

/// The policy of this name among [`ALL`], which adds and parks lanes as `scaling` states. `rss` does neither, and
/// `traffic-class` has thresholds of its own.
///
/// # Errors
/// As [`by_name`].
pub fn with_scaling(name: &str, scaling: Scaling) -> Result<Box<dyn Policy>, UnknownPolicy> {
    with_settings(name, &Settings { scaling, ..Settings::default() })
}

/// The policy of this name among [`ALL`] with these settings.
///
/// # Errors
/// As [`by_name`].
pub fn with_settings(name: &str, settings: &Settings) -> Result<Box<dyn Policy>, UnknownPolicy> {
    Ok(PolicyRegistration::named(&ALL, name)?.make(settings))
}
