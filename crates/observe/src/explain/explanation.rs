//! An explanation, for programs.

use rheostat_base::LaneId;
use rheostat_steer::policy::{
    Imbalance, LaneState, Load, LoadSnapshot, Plan, PlanError, ShardLoad,
};
use serde::{Deserialize, Serialize};

use super::{Breakdown, Limit};
use crate::class_metrics::ClassMetrics;
use crate::shared_queue_metrics::SharedQueueMetrics;
use crate::shared_shard_metrics::SharedShardMetrics;

/// Flows that are listed.
const FLOWS: usize = 10;

/// What a policy would do, and why. Loads are shares of one lane's time: 1 when it does nothing else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The policy.
    pub policy: String,
    /// Seconds of load that it is based on; of a capture, its length.
    pub seconds: f64,
    /// The mean load of a lane that was assumed, where the load itself is not known: a capture shows how load is spread, not how
    /// high it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumed: Option<f64>,
    /// The lanes, by number.
    pub lanes: Vec<LaneMetrics>,
    /// The shards, by number.
    pub shards: Vec<ShardMetrics>,
    /// Packets that `buckets` and `flows` count: of a capture all, of a running instance a sample.
    pub sampled: u64,
    /// Packets by bucket.
    pub buckets: Vec<u64>,
    /// The heaviest flows.
    pub flows: Vec<FlowMetrics>,
    /// What would move.
    pub moves: Vec<MoveMetrics>,
    /// What would leave working lanes for offloading lanes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offloads: Vec<OffloadMetrics>,
    /// Lanes that would be woken.
    pub wake: Vec<u16>,
    /// Lanes that would be parked.
    pub park: Vec<u16>,
    /// Why this, and why not more.
    pub why: Vec<String>,
    /// How uneven the active lanes are, and would be.
    pub imbalance: Prediction,
    /// What keeps them from being even.
    pub limit: Option<Limit>,
    /// Classes of traffic since the start of a running instance, beside what was predicted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassMetrics>,
    /// Receive queues that several lanes empty, since the start of a running instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_queues: Vec<SharedQueueMetrics>,
    /// The shards that their lanes own together, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_shards: Option<SharedShardMetrics>,
}

/// A lane now and after the plan; `None` where it is parked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneMetrics {
    /// Its number.
    pub lane: u16,
    /// Its load now.
    pub load: Option<f64>,
    /// Of that, what belongs to no shard: handing packets over.
    pub other: f64,
    /// Its load to expect.
    pub after: Option<f64>,
    /// Whether it works on flows of other lanes, now.
    #[serde(default, skip_serializing_if = "is_false")]
    pub offloads: bool,
    /// Whether it would.
    #[serde(default, skip_serializing_if = "is_false")]
    pub offloads_after: bool,
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// Work of a shard that leaves its lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OffloadMetrics {
    /// The shard.
    pub shard: u16,
    /// The lane that would own it.
    pub from: u16,
    /// The offloading lane.
    pub to: u16,
    /// How much of a lane's time its flows take there now.
    pub load: f64,
    /// How much they would.
    pub after: f64,
}

/// A shard now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardMetrics {
    /// Its number.
    pub shard: u16,
    /// Its owner.
    pub lane: u16,
    /// What it takes of its owner's time.
    pub load: f64,
    /// Packets sampled.
    pub sampled: u64,
    /// Flows among them.
    pub flows: usize,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowMetrics {
    /// Protocol and endpoints, the inner one first.
    pub flow: String,
    /// The shard it belongs to.
    pub shard: u16,
    /// Packets sampled.
    pub packets: u64,
}

/// A shard that would change lanes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveMetrics {
    /// The shard.
    pub shard: u16,
    /// Its owner.
    pub from: u16,
    /// Its next owner.
    pub to: u16,
    /// The move and its reason, as a sentence.
    pub why: String,
}

/// How uneven active lanes are: the busiest one's load over the mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Now.
    pub before: f64,
    /// To expect.
    pub after: f64,
    /// The squared imbalance that RSS++ minimises (section 3.1).
    pub squared: Squared,
}

/// Sums of squared distances from the mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Squared {
    /// Now.
    pub before: f64,
    /// To expect.
    pub after: f64,
}

/// What leaves each shard now and after a plan, of those of which anything does.
fn leaving(now: &LoadSnapshot, after: &LoadSnapshot) -> Vec<OffloadMetrics> {
    let shards = now.shards().iter().zip(after.shards()).enumerate();
    let leaves = |(shard, (before, owned)): (usize, (&ShardLoad, &ShardLoad))| {
        let (load, then) = (now.offloads().shares[shard], after.offloads().shares[shard]);
        let to = match then > Load::ZERO {
            true => after.offloads().links[owned.owner.index()],
            false => now.offloads().links[before.owner.index()],
        };
        let to = to.filter(|_| load > Load::ZERO || then > Load::ZERO)?;
        Some(OffloadMetrics {
            shard: shard as u16,
            from: owned.owner.0,
            to: to.0,
            load: load.share(),
            after: then.share(),
        })
    };
    shards.filter_map(leaves).collect()
}

impl Explanation {
    /// Explains what `policy` made of a load.
    ///
    /// # Errors
    /// [`PlanError`] when the plan does not fit the load it was made for.
    pub fn of(
        policy: &str,
        load: &LoadSnapshot,
        plan: &Plan,
        breakdown: &Breakdown,
    ) -> Result<Explanation, PlanError> {
        let after = load.after(plan)?;
        let share = |of: &LoadSnapshot, lane: LaneId| match of.lanes()[lane.index()].state {
            LaneState::Active | LaneState::Offloading => Some(of.load(lane).share()),
            LaneState::Parked => None,
        };
        let offloads = |of: &LoadSnapshot, lane: LaneId| {
            of.lanes()[lane.index()].state == LaneState::Offloading
        };
        let lanes = (0..).map(LaneId).zip(load.lanes()).map(|(id, lane)| LaneMetrics {
            lane: id.0,
            load: share(load, id),
            other: lane.other.share(),
            after: share(&after, id),
            offloads: offloads(load, id),
            offloads_after: offloads(&after, id),
        });
        let (sampled, flows) = (breakdown.shards(), breakdown.flows_by_shard());
        let shards = load.shards().iter().enumerate().map(|(number, shard)| ShardMetrics {
            shard: number as u16,
            lane: shard.owner.0,
            load: shard.load.share(),
            sampled: sampled[number],
            flows: flows[number],
        });
        let heaviest = breakdown.heaviest(FLOWS).into_iter();
        let moves = plan.moves.iter().map(|each| MoveMetrics {
            shard: each.shard.0,
            from: each.from.0,
            to: each.to.0,
            why: each.to_string(),
        });
        let numbers = |lanes: &[LaneId]| lanes.iter().map(|lane| lane.0).collect();
        let (before, expected) = (load.imbalance(), after.imbalance());
        let squared = |of: &Imbalance| of.squared.share();
        Ok(Explanation {
            policy: policy.to_owned(),
            seconds: load.period().as_secs_f64(),
            assumed: None,
            lanes: lanes.collect(),
            shards: shards.collect(),
            sampled: breakdown.packets(),
            buckets: breakdown.buckets().to_vec(),
            flows: heaviest
                .map(|(key, shard, packets)| FlowMetrics {
                    flow: key.to_string(),
                    shard: shard.0,
                    packets,
                })
                .collect(),
            moves: moves.collect(),
            offloads: leaving(load, &after),
            wake: numbers(&plan.wake),
            park: numbers(&plan.park),
            why: plan.why.iter().map(ToString::to_string).collect(),
            imbalance: Prediction {
                before: before.max_over_mean,
                after: expected.max_over_mean,
                squared: Squared { before: squared(&before), after: squared(&expected) },
            },
            limit: if load.lanes().len() > 1 { Limit::of(&after, breakdown) } else { None },
            classes: Vec::new(),
            shared_queues: Vec::new(),
            shared_shards: None,
        })
    }

    /// Notes that the mean load was taken for granted.
    #[must_use]
    pub fn assuming(self, mean: Load) -> Explanation {
        Explanation { assumed: Some(mean.share()), ..self }
    }
}
