//! What a policy sees: the load of lanes and shards over the last period.

mod prediction;

use std::time::Duration;

use rheostat_base::{LaneId, ShardId, Time};
use thiserror::Error;

use super::{Class, ClassLoad, ClassLoads, HeavyFlow, Imbalance, Load, Offloads, imbalance};

/// Whether a lane takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneState {
    /// It owns shards, or may be given some.
    Active,
    /// It serves flows of active lanes, and owns nothing.
    Offloading,
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
    /// An offloading lane.
    pub const OFFLOADING: LaneLoad = LaneLoad { state: LaneState::Offloading, ..LaneLoad::ACTIVE };
    /// A parked lane.
    pub const PARKED: LaneLoad = LaneLoad { state: LaneState::Parked, ..LaneLoad::ACTIVE };
}

/// What is known of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardLoad {
    /// The lane that owns it.
    pub owner: LaneId,
    /// Its share of that lane's time, with what an offloading lane did for it.
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
///
/// Policies that plan for objectives find more: what leaves working lanes, what lanes measured by class, the heavy flows,
/// and what rewriting the device's table costs. All of it is absent until it is added by the `with_` methods.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSnapshot {
    lanes: Vec<LaneLoad>,
    shards: Vec<ShardLoad>,
    bounds: LaneBounds,
    period: Duration,
    offloads: Offloads,
    /// By lane, or empty.
    classes: ClassLoads,
    /// The heaviest flows that may leave, in no order.
    heavy: Vec<HeavyFlow>,
    rewrite: Option<Duration>,
    /// By lane: its own work and that of its shards and flows.
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
    /// Offloads name other lanes or shards, or lanes whose role does not fit.
    #[error(
        "offloads of other lanes or shards, or between lanes that are not working and offloading"
    )]
    Offloads,
    /// Figures by class are those of other lanes, or no figures.
    #[error("give figures by class for each of {0} lanes, with variations from 0 up")]
    Classes(usize),
    /// A heavy flow belongs to a shard that does not exist.
    #[error("a heavy flow belongs to {0}, which does not exist")]
    Heavy(ShardId),
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
        if lanes.iter().all(|lane| lane.state != LaneState::Active) {
            return Err(SnapshotError::AllParked);
        }
        let mut loads: Vec<Load> = lanes.iter().map(|lane| lane.other).collect();
        for (shard, ShardLoad { owner, load }) in (0..).map(ShardId).zip(&shards) {
            let owner = *owner;
            match lanes.get(owner.index()) {
                None => return Err(SnapshotError::Owner { shard, owner, lanes: lanes.len() }),
                Some(lane) if lane.state != LaneState::Active => {
                    return Err(SnapshotError::Parked { lane: owner, shard });
                }
                Some(_) => loads[owner.index()] += *load,
            }
        }
        let offloads = Offloads::none(lanes.len(), shards.len());
        let (classes, heavy) = (Vec::new(), Vec::new());
        Ok(LoadSnapshot {
            lanes,
            shards,
            bounds,
            period,
            offloads,
            classes,
            heavy,
            rewrite: None,
            loads,
        })
    }

    /// With what leaves working lanes at present. No more of a shard leaves than it has, and nothing where its owner has no
    /// offloading lane.
    ///
    /// # Errors
    /// [`SnapshotError::Offloads`] unless links lead from active to offloading lanes.
    pub fn with_offloads(mut self, mut offloads: Offloads) -> Result<LoadSnapshot, SnapshotError> {
        let Offloads { links, shares } = &mut offloads;
        let state = |lane: LaneId| self.lanes.get(lane.index()).map(|lane| lane.state);
        let fits = |(from, to): (LaneId, &Option<LaneId>)| {
            to.is_none_or(|to| {
                (state(from), state(to)) == (Some(LaneState::Active), Some(LaneState::Offloading))
            })
        };
        let lengths = (links.len(), shares.len()) == (self.lanes.len(), self.shards.len());
        if !lengths || !(0..).map(LaneId).zip(&*links).all(fits) {
            return Err(SnapshotError::Offloads);
        }
        for (share, shard) in shares.iter_mut().zip(&self.shards) {
            let linked = links[shard.owner.index()].is_some();
            *share = if linked { shard.load.min(*share) } else { Load::ZERO };
        }
        self.offloads = offloads;
        self.sum_up();
        Ok(self)
    }

    /// With what lanes measured by class.
    ///
    /// # Errors
    /// [`SnapshotError::Classes`].
    pub fn with_classes(mut self, classes: ClassLoads) -> Result<LoadSnapshot, SnapshotError> {
        let sound = classes.iter().flatten().flatten().all(ClassLoad::is_sound);
        if classes.len() != self.lanes.len() || !sound {
            return Err(SnapshotError::Classes(self.lanes.len()));
        }
        self.classes = classes;
        Ok(self)
    }

    /// With the heaviest flows that may leave, in any order.
    ///
    /// # Errors
    /// [`SnapshotError::Heavy`].
    pub fn with_heavy(mut self, heavy: Vec<HeavyFlow>) -> Result<LoadSnapshot, SnapshotError> {
        if let Some(flow) = heavy.iter().find(|flow| flow.shard.index() >= self.shards.len()) {
            return Err(SnapshotError::Heavy(flow.shard));
        }
        self.heavy = heavy;
        Ok(self)
    }

    /// With the time that a rewriting of the device's indirection table took, fence included, when it was last measured.
    #[must_use]
    pub fn with_rewrite(self, rewrite: Duration) -> LoadSnapshot {
        LoadSnapshot { rewrite: Some(rewrite), ..self }
    }

    /// Computes the lanes' loads.
    fn sum_up(&mut self) {
        let LoadSnapshot { lanes, shards, offloads, loads, .. } = self;
        *loads = lanes.iter().map(|lane| lane.other).collect();
        for (shard, share) in shards.iter().zip(&offloads.shares) {
            loads[shard.owner.index()] += shard.load.saturating_sub(*share);
            if let Some(to) = offloads.links[shard.owner.index()] {
                loads[to.index()] += *share;
            }
        }
    }

    /// What leaves working lanes.
    pub fn offloads(&self) -> &Offloads {
        &self.offloads
    }

    /// What a lane measured of a class, if it did and there were packets.
    pub fn class(&self, lane: LaneId, class: Class) -> Option<&ClassLoad> {
        self.classes.get(lane.index())?[class.index()].as_ref()
    }

    /// The heaviest flows that may leave.
    pub fn heavy(&self) -> &[HeavyFlow] {
        &self.heavy
    }

    /// How much of each shard's load belongs to measured flows that may leave (r_max), by shard.
    pub fn may_leave(&self) -> Vec<Load> {
        let mut may_leave = vec![Load::ZERO; self.shards.len()];
        for flow in &self.heavy {
            may_leave[flow.shard.index()] += flow.load;
        }
        for (may_leave, shard) in may_leave.iter_mut().zip(&self.shards) {
            *may_leave = shard.load.min(*may_leave);
        }
        may_leave
    }

    /// What rewriting the device's table took when it was last measured.
    pub fn rewrite(&self) -> Option<Duration> {
        self.rewrite
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

    /// A lane's load: its shards' as far as it stays, that of the flows it is handed, and its own.
    pub fn load(&self, lane: LaneId) -> Load {
        self.loads[lane.index()]
    }

    /// The active lanes, ascending.
    pub fn active(&self) -> impl Iterator<Item = LaneId> + Clone {
        self.in_state(LaneState::Active)
    }

    /// The offloading lanes, ascending.
    pub fn offloading(&self) -> impl Iterator<Item = LaneId> + Clone {
        self.in_state(LaneState::Offloading)
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
    fn what_leaves_a_shard_is_load_of_its_offloading_lane() {
        let of = snapshot();
        let mut lanes = of.lanes.clone();
        lanes[2] = LaneLoad::OFFLOADING;
        let new = || {
            let (lanes, shards) = (lanes.clone(), of.shards.clone());
            LoadSnapshot::new(lanes, shards, of.bounds, of.period).unwrap()
        };
        let percent = |each: [u64; 3]| each.map(Load::from_percent).to_vec();
        let links = vec![Some(LaneId(2)), None, None];
        let offloads = Offloads { links: links.clone(), shares: percent([10, 90, 5]) };
        let with = new().with_offloads(offloads).unwrap();
        let loads: Vec<Load> = (0..3).map(|lane| with.load(LaneId(lane))).collect();
        assert_eq!(loads, percent([30, 10, 40]), "no more than there is, none without a link");
        assert_eq!(with.mean(), Load::from_percent(20), "of active lanes");
        let wrong = [
            Offloads { links, shares: Vec::new() },
            Offloads { links: vec![Some(LaneId(1)), None, None], shares: percent([0; 3]) },
            Offloads { links: vec![None, None, Some(LaneId(2))], shares: percent([0; 3]) },
        ];
        for offloads in wrong {
            assert_eq!(new().with_offloads(offloads), Err(SnapshotError::Offloads));
        }
    }

    #[test]
    fn no_more_of_a_shard_may_leave_than_it_has() {
        let flow = |shard, percent| HeavyFlow { shard, load: Load::from_percent(percent) };
        let heavy = vec![flow(ShardId(0), 15), flow(ShardId(0), 5), flow(ShardId(2), 50)];
        let with = snapshot().with_heavy(heavy).unwrap();
        assert_eq!(with.may_leave(), [20, 0, 10].map(Load::from_percent));
        let stranger = snapshot().with_heavy(vec![flow(ShardId(3), 1)]);
        assert_eq!(stranger, Err(SnapshotError::Heavy(ShardId(3))));
    }

    #[test]
    fn figures_by_class_are_numbers_and_those_of_the_lanes() {
        let load = |arrival_cv2| ClassLoad { arrival_cv2, ..ClassLoad::default() };
        let of = |classes| snapshot().with_classes(classes);
        let with = of(vec![[None, Some(load(1.5))], [None; 2], [None; 2]]).unwrap();
        assert_eq!(with.class(LaneId(0), Class::Regular), Some(&load(1.5)));
        assert_eq!(with.class(LaneId(0), Class::Priority), None);
        for wrong in [vec![[None; 2]; 2], vec![[Some(load(f64::NAN)), None]; 3]] {
            assert_eq!(of(wrong), Err(SnapshotError::Classes(3)));
        }
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
