//! What keeps lanes from being loaded alike, however shards are moved.

use rheostat_base::ShardId;
use rheostat_steer::policy::{Load, LoadSnapshot};
use serde::{Deserialize, Serialize};

use super::Breakdown;

/// How far a shard may lie above the mean, as a share of it, before it counts as a limit: 5 % is a difference without
/// consequence.
const TOLERANCE: Load = Load::from_percent(105);
/// Packets of a shard below which it is not known whether its flows are few.
const ENOUGH: u64 = 20;

/// A part of the load that is more than a lane's fair share and cannot be divided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// What cannot be divided.
    pub kind: LimitKind,
    /// The shard, or the flow's.
    pub shard: u16,
    /// The flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// What it takes of a lane's time.
    pub load: f64,
    /// A lane's fair share: the mean over the lanes that would be active.
    pub mean: f64,
}

/// What cannot be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// A flow: its packets have to stay in order.
    Flow,
    /// A shard, whose flows more shards would separate.
    Shard,
}

impl Limit {
    /// What limits the load `after` a plan, if anything does.
    pub(super) fn of(after: &LoadSnapshot, breakdown: &Breakdown) -> Option<Limit> {
        let mean = after.mean();
        let fair = mean.times(TOLERANCE);
        let loads = (0..).map(ShardId).zip(after.shards());
        let (shard, weight) = loads.map(|(id, shard)| (id, shard.load)).max_by_key(|(_, w)| *w)?;
        if weight <= fair {
            return None;
        }
        let limit = |kind, flow, load: Load| {
            let (load, mean) = (load.share(), mean.share());
            Some(Limit { kind, shard: shard.0, flow, load, mean })
        };
        let seen = breakdown.shards()[shard.index()];
        if let Some((key, packets)) = breakdown.heaviest_of(shard).filter(|_| seen >= ENOUGH) {
            let load = weight.part(packets, seen);
            if load > fair {
                return limit(LimitKind::Flow, Some(key.to_string()), load);
            }
        }
        limit(LimitKind::Shard, None, weight)
    }
}
