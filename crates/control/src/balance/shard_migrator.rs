//! What a controller moves shards with.

use rheostat_base::{LaneId, ShardId, Time};
use rheostat_run::{Migrator, Move, MoveError};
use rheostat_steer::policy::{Load, Offloads};

/// Moves shards between lanes: those of a run, or those of a simulation, which so meet the same controller.
/// Nothing blocks: what cannot be done yet is done by a later [`step`](ShardMigrator::step).
pub trait ShardMigrator {
    /// Does what can be done now.
    fn step(&mut self, now: Time);

    /// Whether no shard is moving.
    fn is_idle(&self) -> bool;

    /// The owner of each shard, or of one that is moving, its next.
    fn owners(&self) -> &[LaneId];

    /// Begins to move shards, all together.
    ///
    /// # Errors
    /// [`MoveError`], and nothing is moved.
    fn start(&mut self, moves: &[Move], now: Time) -> Result<(), MoveError>;

    /// Has so much of each shard's load leave for its lane's offloading lane from now on, in place of what left before.
    /// `shards` has the loads of all shards. Called while no shard is moving. Lanes whose flows cannot leave keep them:
    /// policies are then told that no lane may offload.
    fn offload(&mut self, _offloads: &Offloads, _shards: &[Load]) {}
}

impl ShardMigrator for Migrator {
    fn step(&mut self, now: Time) {
        Migrator::step(self, now);
    }

    fn is_idle(&self) -> bool {
        Migrator::is_idle(self)
    }

    fn owners(&self) -> &[LaneId] {
        Migrator::owners(self)
    }

    fn start(&mut self, moves: &[Move], now: Time) -> Result<(), MoveError> {
        Migrator::start(self, moves, now)
    }

    /// Each lane is told which part of each of its shards is to leave. It picks the flows, by what it has measured itself.
    fn offload(&mut self, offloads: &Offloads, shards: &[Load]) {
        for (lane, to) in (0..).map(LaneId).zip(&offloads.links) {
            let of_lane =
                Migrator::owners(self).iter().enumerate().filter(|(_, owner)| **owner == lane);
            let share = |(shard, _): (usize, &LaneId)| {
                let (leaves, all) = (offloads.shares[shard], shards[shard]);
                let part = Load::FULL.part(leaves.nanos_per_second(), all.nanos_per_second());
                (part > Load::ZERO).then_some((ShardId(shard as u16), part.min(Load::FULL)))
            };
            let shares =
                if to.is_some() { of_lane.filter_map(share).collect() } else { Vec::new() };
            Migrator::offload_shares(self, lane, *to, shares);
        }
    }
}
