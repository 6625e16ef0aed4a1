//! Owners of shards while a plan is being made.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rheostat_base::{LaneId, ShardId, Time};

use super::{Load, LoadSnapshot, Move, MoveReason, SquaredLoad, imbalance};

/// The owners of shards, as they would be after the moves so far.
#[derive(Clone, Debug)]
pub(super) struct Assignment<'a> {
    snapshot: &'a LoadSnapshot,
    owners: Vec<LaneId>,
    /// By lane.
    loads: Vec<Load>,
    /// Ascending.
    active: Vec<LaneId>,
    /// By lane.
    rests: Vec<bool>,
}

impl<'a> Assignment<'a> {
    /// As things are.
    pub(super) fn new(now: Time, snapshot: &'a LoadSnapshot) -> Assignment<'a> {
        let lanes = || (0..).map(LaneId).take(snapshot.lanes().len());
        Assignment {
            snapshot,
            owners: snapshot.shards().iter().map(|shard| shard.owner).collect(),
            loads: lanes().map(|lane| snapshot.load(lane)).collect(),
            active: snapshot.active().collect(),
            rests: lanes().map(|lane| snapshot.rests(lane, now)).collect(),
        }
    }

    /// Lets a parked lane take part.
    pub(super) fn wake(&mut self, lane: LaneId) {
        self.active.push(lane);
        self.active.sort_unstable();
    }

    /// Empties lanes and lets them take part no longer: their shards, the largest first, each to
    /// the least loaded of the takers, at least one of which there must be (RSS++ 3.2). Between
    /// equals, the one with fewer shards, so that shards without load spread, too.
    pub(super) fn park(&mut self, lanes: &[LaneId], takers: &[LaneId]) {
        self.active.retain(|lane| !lanes.contains(lane));
        let mut counts = vec![0_u32; self.loads.len()];
        let mut leaving = Vec::new();
        for (shard, owner) in (0..).map(ShardId).zip(&self.owners) {
            counts[owner.index()] += 1;
            if lanes.contains(owner) {
                leaving.push((Reverse(self.weight(shard)), shard));
            }
        }
        leaving.sort_unstable();
        let entry = |lane: LaneId| Reverse((self.loads[lane.index()], counts[lane.index()], lane));
        let mut takers: BinaryHeap<_> = takers.iter().copied().map(entry).collect();
        for (Reverse(weight), shard) in leaving {
            let mut taker = takers.peek_mut().expect("a lane takes");
            let Reverse((load, count, lane)) = &mut *taker;
            (*load, *count) = (*load + weight, *count + 1);
            self.shift(shard, *lane);
        }
    }

    /// Gives a shard to a lane.
    pub(super) fn shift(&mut self, shard: ShardId, to: LaneId) {
        let weight = self.weight(shard);
        let from = std::mem::replace(&mut self.owners[shard.index()], to);
        self.loads[from.index()] = self.loads[from.index()].saturating_sub(weight);
        self.loads[to.index()] += weight;
    }

    /// A shard's load.
    pub(super) fn weight(&self, shard: ShardId) -> Load {
        self.snapshot.shards()[shard.index()].load
    }

    /// A lane's load.
    pub(super) fn load(&self, lane: LaneId) -> Load {
        self.loads[lane.index()]
    }

    /// The lanes that take part, ascending.
    pub(super) fn active(&self) -> &[LaneId] {
        &self.active
    }

    /// The lanes that take part and may give and take, ascending.
    pub(super) fn movable(&self) -> impl Iterator<Item = LaneId> {
        self.active.iter().copied().filter(|lane| !self.rests[lane.index()])
    }

    /// By lane, the shards with any load, the heaviest first, between equals the lower number.
    pub(super) fn loaded_shards(&self) -> Vec<Vec<(Load, ShardId)>> {
        let mut lanes = vec![Vec::new(); self.loads.len()];
        for (shard, owner) in (0..).map(ShardId).zip(&self.owners) {
            let weight = self.weight(shard);
            if weight > Load::ZERO {
                lanes[owner.index()].push((weight, shard));
            }
        }
        for shards in &mut lanes {
            shards.sort_unstable_by_key(|(weight, shard)| (Reverse(*weight), *shard));
        }
        lanes
    }

    /// The mean load of the lanes that take part.
    pub(super) fn mean(&self) -> Load {
        imbalance::mean(&self.active_loads())
    }

    /// The squared imbalance of the lanes that take part.
    pub(super) fn squared(&self) -> SquaredLoad {
        let mean = self.mean();
        self.active.iter().map(|lane| SquaredLoad::distance(self.load(*lane), mean)).sum()
    }

    fn active_loads(&self) -> Vec<Load> {
        self.active.iter().map(|lane| self.load(*lane)).collect()
    }

    /// Whether a lane owns anything.
    pub(super) fn owns_any(&self, lane: LaneId) -> bool {
        self.owners.contains(&lane)
    }

    /// The moves from the snapshot's owners to these, by shard; `why` is asked with the lane left.
    pub(super) fn moves(&self, why: impl Fn(LaneId) -> MoveReason) -> Vec<Move> {
        let owners = self.snapshot.shards().iter().map(|shard| shard.owner).zip(&self.owners);
        (0..)
            .map(ShardId)
            .zip(owners)
            .filter(|(_, (from, to))| from != *to)
            .map(|(shard, (from, to))| Move { shard, from, to: *to, why: why(from) })
            .collect()
    }
}
