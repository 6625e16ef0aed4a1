//! Which lane should own which shard: pure functions from a snapshot of the load to a plan.
//!
//! A policy sees figures and returns moves with their reasons; it does no I/O and reads no clock.
//! So the runtime's controller, a simulator, benchmarks and tests all run the same code. All
//! arithmetic that decides anything is on integers, and all orders are total with ties broken by
//! number, so equal snapshots give equal plans on every machine.

mod assignment;
pub mod auto;
mod balancing;
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
pub mod rss;
pub mod rsspp;
pub mod scaling;
pub mod snapshot;
pub mod traffic_class;

use std::time::Duration;

use rheostat_base::Time;
use thiserror::Error;

pub use auto::{Auto, Cause};
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

/// No policy has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no policy `{0}`; {hint}write one of {list}", hint = hint(.0), list = NAMES.join(", "))]
pub struct UnknownPolicy(pub String);

/// The policy that `name` spells in another way: RSS++ is `rsspp`. `None` when it spells none.
pub fn spelled_as(name: &str) -> Option<&'static str> {
    let plain = |name: &str| -> String {
        let letters = name.chars().filter(|c| !matches!(c, '-' | '_' | ' '));
        letters.map(|c| if c == '+' { 'p' } else { c.to_ascii_lowercase() }).collect()
    };
    let name = plain(name);
    NAMES.into_iter().find(|known| plain(known) == name)
}

fn hint(name: &str) -> String {
    spelled_as(name).map_or_else(String::new, |known| format!("did you mean `{known}`? "))
}

/// The names that [`by_name`] knows.
pub const NAMES: [&str; 6] = ["rss", "rsspp", "local-search", "traffic-class", "dyssect", "auto"];

/// The policy of this name with its default parameters.
///
/// # Errors
/// [`UnknownPolicy`], which lists the names there are.
pub fn by_name(name: &str) -> Result<Box<dyn Policy>, UnknownPolicy> {
    with_scaling(name, Scaling::default())
}

/// The policy of this name, which adds and parks lanes as `scaling` states. `rss` does neither, and
/// `traffic-class` has thresholds of its own.
///
/// # Errors
/// As [`by_name`].
pub fn with_scaling(name: &str, scaling: Scaling) -> Result<Box<dyn Policy>, UnknownPolicy> {
    with_settings(name, &Settings { scaling, ..Settings::default() })
}

/// What policies are told beside their names; each takes what it knows of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    /// When lanes are added and parked.
    pub scaling: Scaling,
    /// What latencies packets may have: for `dyssect`.
    pub objectives: Objectives,
    /// How many lanes may offload: none where flows cannot leave their lanes. For `dyssect`.
    pub offloading: usize,
    /// How many working lanes an offloading lane serves at least; 0 stands for the policy's own figure. For `dyssect`.
    pub min_working_per_offloading: usize,
}

/// The policy of this name with these settings.
///
/// # Errors
/// As [`by_name`].
pub fn with_settings(name: &str, settings: &Settings) -> Result<Box<dyn Policy>, UnknownPolicy> {
    let scaling = settings.scaling;
    match name {
        "rss" => Ok(Box::new(Rss)),
        "rsspp" => Ok(Box::new(Rsspp { scaling, ..Rsspp::default() })),
        "local-search" => Ok(Box::new(LocalSearch { scaling, ..LocalSearch::default() })),
        "traffic-class" => Ok(Box::new(TrafficClass::default())),
        "dyssect" => Ok(Box::new(dyssect_with(settings))),
        "auto" => Ok(Box::new(Auto::new(*settings)?)),
        _ => Err(UnknownPolicy(name.to_owned())),
    }
}

fn dyssect_with(settings: &Settings) -> Dyssect {
    let Settings { scaling, objectives, offloading, min_working_per_offloading } = *settings;
    let mut policy = Dyssect::with_scaling(scaling);
    (policy.objectives, policy.offloading) = (objectives, offloading);
    if min_working_per_offloading > 0 {
        policy.min_working_per_offloading = min_working_per_offloading;
    }
    policy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_found_by_the_names_they_have() {
        for name in NAMES {
            assert_eq!(by_name(name).unwrap().name(), name);
        }
        assert_eq!(
            by_name("rss++").err().unwrap().to_string(),
            "there is no policy `rss++`; did you mean `rsspp`? write one of rss, rsspp, local-search, \
             traffic-class, dyssect, auto"
        );
    }

    #[test]
    fn another_spelling_of_a_policy_is_recognised() {
        for (written, meant) in [("RSS++", "rsspp"), ("Local Search", "local-search")] {
            assert_eq!(spelled_as(written), Some(meant));
        }
        assert_eq!(spelled_as("fastest"), None);
    }
}
