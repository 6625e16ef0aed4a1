//! What a policy sees: the load of lanes and shards over the last period.

mod prediction;

use std::time::Duration;

use rheostat_base::{LaneId, ShardId, Time};
use thiserror::Error;

use super::{Imbalance, Load, imbalance};

/// Whether a lane takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneState {
    /// It owns shards, or may be given some.
    Active,
    /// Its worker sleeps; it owns nothing.
    Parked,
}

/// What is known of a lane beside its shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneLoad {
    /// Whether it takes part.
    pub state: LaneState,
    /// Work that belongs to none of its shards and stays with it: packets that it hands to their
    /// owners.
    pub other: Load,
    /// When it last was given a shard. Its figures do not cover a whole period since, so it is left
    /// alone for one.
    pub resting_since: Option<Time>,
}

impl LaneLoad {
    /// An active lane without work of its own that has had its shards for long.
    pub const ACTIVE: LaneLoad =
        LaneLoad { state: LaneState::Active, other: Load::ZERO, resting_since: None };
    /// A parked lane.
    pub const PARKED: LaneLoad = LaneLoad { state: LaneState::Parked, ..LaneLoad::ACTIVE };
}

/// What is known of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardLoad {
    /// The lane that owns it.
    pub owner: LaneId,
    /// Its share of that lane's time.
    pub load: Load,
}

/// How many lanes may be active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneBounds {
    /// At least so many; at least 1.
    pub min: usize,
    /// At most so many: the cores there are, the cgroup's quota.
    pub max: usize,
}

/// The load of lanes and shards over the last period. Consistent by construction: a lane's load is
/// the sum of its shards' and its own, so a predicted move changes both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadSnapshot {
    lanes: Vec<LaneLoad>,
    shards: Vec<ShardLoad>,
    bounds: LaneBounds,
    period: Duration,
    /// By lane: its own work and that of its shards.
    loads: Vec<Load>,
}

/// Why figures are not a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SnapshotError {
    /// A shard's owner does not exist.
    #[error("{shard} belongs to {owner}, but there are {lanes} lanes; give owners from 0 up")]
    Owner {
        /// The shard.
        shard: ShardId,
        /// Its owner.
        owner: LaneId,
        /// How many lanes there are.
        lanes: usize,
    },
    /// A lane that sleeps owns a shard.
    #[error("{lane} is parked and owns {shard}; plan once it has given its shards away")]
    Parked {
        /// The lane.
        lane: LaneId,
        /// The shard.
        shard: ShardId,
    },
    /// No lane is active.
    #[error("no lane is active; wake one before planning")]
    AllParked,
    /// The bounds cannot be met.
    #[error("between {min} and {max} of {lanes} lanes cannot be active: 1 <= min <= max <= lanes")]
    Bounds {
        /// The lower bound.
        min: usize,
        /// The upper bound.
        max: usize,
        /// How many lanes there are.
        lanes: usize,
    },
    /// Lanes or shards have no number.
    #[error("{lanes} lanes and {shards} shards: at most 65536 of each can be numbered")]
    TooMany {
        /// How many lanes.
        lanes: usize,
        /// How many shards.
        shards: usize,
    },
}

impl LoadSnapshot {
    /// The load of `lanes` (by lane) and `shards` (by shard), measured over the last `period`.
    ///
    /// # Errors
    /// [`SnapshotError`] when the figures contradict each other.
    pub fn new(
        lanes: Vec<LaneLoad>,
        shards: Vec<ShardLoad>,
        bounds: LaneBounds,
        period: Duration,
    ) -> Result<LoadSnapshot, SnapshotError> {
        const MOST: usize = 1 << 16;
        if lanes.len() > MOST || shards.len() > MOST {
            return Err(SnapshotError::TooMany { lanes: lanes.len(), shards: shards.len() });
        }
        let LaneBounds { min, max } = bounds;
        if min == 0 || min > max || max > lanes.len() {
            return Err(SnapshotError::Bounds { min, max, lanes: lanes.len() });
        }
        if lanes.iter().all(|lane| lane.state == LaneState::Parked) {
            return Err(SnapshotError::AllParked);
        }
        let mut loads: Vec<Load> = lanes.iter().map(|lane| lane.other).collect();
        for (shard, ShardLoad { owner, load }) in (0..).map(ShardId).zip(&shards) {
            let owner = *owner;
            match lanes.get(owner.index()) {
                None => return Err(SnapshotError::Owner { shard, owner, lanes: lanes.len() }),
                Some(lane) if lane.state == LaneState::Parked => {
                    return Err(SnapshotError::Parked { lane: owner, shard });
                }
                Some(_) => loads[owner.index()] += *load,
            }
        }
        Ok(LoadSnapshot { lanes, shards, bounds, period, loads })
    }

    /// The lanes, by number.
    pub fn lanes(&self) -> &[LaneLoad] {
        &self.lanes
    }

    /// The shards, by number.
    pub fn shards(&self) -> &[ShardLoad] {
        &self.shards
    }

    /// How many lanes may be active.
    pub fn bounds(&self) -> LaneBounds {
        self.bounds
    }

    /// The time that the figures cover, and for which a lane that was given a shard rests.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// A lane's load: its shards' and its own.
    pub fn load(&self, lane: LaneId) -> Load {
        self.loads[lane.index()]
    }

    /// The active lanes, ascending.
    pub fn active(&self) -> impl Iterator<Item = LaneId> + Clone {
        self.in_state(LaneState::Active)
    }

    /// The parked lanes, ascending.
    pub fn parked(&self) -> impl Iterator<Item = LaneId> + Clone {
        self.in_state(LaneState::Parked)
    }

    fn in_state(&self, state: LaneState) -> impl Iterator<Item = LaneId> + Clone {
        let lanes = (0..).map(LaneId).zip(&self.lanes);
        lanes.filter(move |(_, lane)| lane.state == state).map(|(id, _)| id)
    }

    /// Whether a lane is to be left alone, because it was given a shard less than a period ago.
    pub fn rests(&self, lane: LaneId, now: Time) -> bool {
        let lane = &self.lanes[lane.index()];
        lane.state == LaneState::Active
            && lane.resting_since.is_some_and(|since| now.since(since) < self.period)
    }

    /// The shards of a lane, ascending.
    pub fn shards_of(&self, lane: LaneId) -> impl Iterator<Item = (ShardId, Load)> {
        let shards = (0..).map(ShardId).zip(&self.shards);
        shards.filter(move |(_, shard)| shard.owner == lane).map(|(id, shard)| (id, shard.load))
    }

    /// The mean load of the active lanes.
    pub fn mean(&self) -> Load {
        imbalance::mean(&self.active_loads())
    }

    /// How unevenly the active lanes are loaded.
    pub fn imbalance(&self) -> Imbalance {
        Imbalance::of(&self.active_loads())
    }

    fn active_loads(&self) -> Vec<Load> {
        self.active().map(|lane| self.load(lane)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> LoadSnapshot {
        let lanes = vec![LaneLoad::ACTIVE, LaneLoad::ACTIVE, LaneLoad::PARKED];
        let shard =
            |owner, percent| ShardLoad { owner: LaneId(owner), load: Load::from_percent(percent) };
        let shards = vec![shard(0, 40), shard(0, 30), shard(1, 10)];
        let bounds = LaneBounds { min: 1, max: 3 };
        LoadSnapshot::new(lanes, shards, bounds, Duration::from_millis(100)).unwrap()
    }

    #[test]
    fn a_lane_has_the_load_of_its_shards_and_its_own() {
        let mut lanes = snapshot().lanes;
        lanes[1].other = Load::from_percent(5);
        let of = snapshot();
        let snapshot = LoadSnapshot::new(lanes, of.shards, of.bounds, of.period).unwrap();
        assert_eq!(snapshot.load(LaneId(0)), Load::from_percent(70));
        assert_eq!(snapshot.load(LaneId(1)), Load::from_percent(15));
        assert_eq!(snapshot.mean().to_string(), "42.5 %");
        assert_eq!(snapshot.parked().collect::<Vec<_>>(), [LaneId(2)]);
    }

    #[test]
    fn figures_that_contradict_each_other_are_refused() {
        let of = snapshot();
        let with = |bounds| {
            LoadSnapshot::new(of.lanes.clone(), of.shards.clone(), bounds, of.period).err()
        };
        for (min, max) in [(0, 1), (2, 1), (1, 4)] {
            let error = with(LaneBounds { min, max });
            assert_eq!(error, Some(SnapshotError::Bounds { min, max, lanes: 3 }));
        }
        let parked = vec![LaneLoad::PARKED; 3];
        let error = LoadSnapshot::new(parked, vec![], of.bounds, of.period);
        assert_eq!(error, Err(SnapshotError::AllParked));
        let owned = |owner| vec![ShardLoad { owner: LaneId(owner), load: Load::ZERO }];
        let new = |owner| {
            LoadSnapshot::new(of.lanes.clone(), owned(owner), of.bounds, of.period).unwrap_err()
        };
        assert_eq!(new(2), SnapshotError::Parked { lane: LaneId(2), shard: ShardId(0) });
        assert_eq!(
            new(3).to_string(),
            "shard 0 belongs to lane 3, but there are 3 lanes; give owners from 0 up"
        );
    }

    #[test]
    fn a_lane_rests_for_one_period() {
        let mut snapshot = snapshot();
        snapshot.lanes[0].resting_since = Some(Time::from_millis(50));
        assert!(snapshot.rests(LaneId(0), Time::from_millis(149)));
        assert!(!snapshot.rests(LaneId(0), Time::from_millis(150)));
        assert!(!snapshot.rests(LaneId(1), Time::from_millis(60)));
    }
}
