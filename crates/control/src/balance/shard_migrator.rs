//! What a controller moves shards with.

use rheostat_base::{LaneId, Time};
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
}
