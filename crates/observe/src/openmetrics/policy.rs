//! Families of the policy that moves shards.

use super::family::{Family, Kind};

pub(super) const FAMILIES: &[Family] = &[
    Family::new(
        "rheo_plans",
        Kind::Count,
        &["policy"],
        "Plans of the policy that moves shards",
        |run, to| {
            if !run.plan.policy.is_empty() {
                to.count([&run.plan.policy], run.plan.plans);
            }
        },
    ),
    Family::new(
        "rheo_lane_shards",
        Kind::Gauge,
        &["lane"],
        "Shards that the lane owns; those of several lanes count for the first",
        |run, to| {
            for lane in 0..run.sample.lanes.len() {
                let own = run.owners.iter().filter(|owner| owner.index() == lane);
                to.count([&lane], own.count() as u64);
            }
        },
    ),
    Family::new(
        "rheo_lane_role",
        Kind::Gauge,
        &["lane", "role"],
        "1 for a lane under its present role, where the policy assigns roles",
        |run, to| {
            for (number, lane) in run.status.summary.lanes.iter().enumerate() {
                if let Some(role) = &lane.role {
                    to.count([&number, role], 1);
                }
            }
        },
    ),
    Family::new(
        "rheo_prediction_error",
        Kind::Gauge,
        &[],
        "Factor by which waits differed from what plans predicted, up or down; a geometric mean",
        |run, to| {
            run.status.summary.prediction_error.into_iter().for_each(|error| to.real([], error));
        },
    ),
];
