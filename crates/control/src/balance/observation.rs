//! What a controller is shown of a run.

use std::time::Duration;

use rheostat_base::LaneId;
use rheostat_run::{ClassLooks, LaneSample, RunView, ShardLoads};
use rheostat_steer::policy::{ClassLoads, LaneCounts};

pub use rheostat_run::HeavyShare;

/// What lanes have done so far, and what they measured since they were looked at last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// What each lane has counted since the start.
    pub counts: Vec<LaneCounts>,
    /// What lanes measured by class since the last look; empty where classes are not told apart.
    pub classes: ClassLoads,
    /// The heaviest flows that may leave their lanes.
    pub heavy: Vec<HeavyShare>,
    /// What the last rewriting of the device's table took, fence included.
    pub rewrite: Option<Duration>,
}

impl From<Vec<LaneCounts>> for Observation {
    fn from(counts: Vec<LaneCounts>) -> Observation {
        Observation { counts, ..Observation::default() }
    }
}

impl Observation {
    /// What there is to see of a run whose shards have these owners. Of classes, what came since the last look of `looks`, if
    /// they are measured.
    pub fn of(
        view: &RunView,
        looks: &mut ClassLooks,
        owners: &[LaneId],
        rewrite: Option<Duration>,
    ) -> Observation {
        let lanes = (0..).map(LaneId).zip(view.class_figures());
        let heavy = lanes.flat_map(|(lane, figures)| {
            let is_here = move |share: &HeavyShare| owners[share.shard.index()] == lane;
            figures.heavy().into_iter().filter(is_here)
        });
        Observation {
            counts: counts(view),
            classes: looks.take(view.class_figures()),
            heavy: heavy.collect(),
            rewrite,
        }
    }
}

/// What each lane of a run has done so far, as a policy wants it: a lane's time goes to shards by the packets and bytes it
/// processed for them, its own or those of other lanes. What it handed to other lanes is its own work, whether the shard or only
/// the flow was there.
pub fn counts(view: &RunView) -> Vec<LaneCounts> {
    let lanes = view.sample().lanes.into_iter().enumerate();
    let count = |(lane, sample): (usize, LaneSample)| {
        let own = &view.loads()[lane];
        let away = view.away_loads().get(lane);
        let kept = |of: fn(&ShardLoads) -> Vec<u64>| {
            let mut kept = of(own);
            let away = away.map(of).unwrap_or_default();
            // Counted when it came, and here when it went: a reader may see the second and not yet the first.
            kept.iter_mut().zip(away).for_each(|(kept, away)| *kept = kept.saturating_sub(away));
            kept
        };
        LaneCounts {
            busy_ns: sample.busy_ns,
            shards: kept(ShardLoads::packets),
            bytes: kept(ShardLoads::bytes),
            offloaded: view.guest_loads().get(lane).map(ShardLoads::packets).unwrap_or_default(),
            other: sample.handoff_out,
        }
    };
    lanes.map(count).collect()
}
