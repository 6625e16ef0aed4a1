//! What a controller moves shards with.

use rheostat_base::{LaneId, Time};
use rheostat_run::{Move, MoveError, Mover};

/// Moves shards between lanes: those of a run, or those of a simulation, which so meet the same controller.
/// Nothing blocks: what cannot be done yet is done by a later [`step`](ShardMover::step).
pub trait ShardMover {
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
}

impl ShardMover for Mover {
    fn step(&mut self, now: Time) {
        Mover::step(self, now);
    }

    fn is_idle(&self) -> bool {
        Mover::is_idle(self)
    }

    fn owners(&self) -> &[LaneId] {
        Mover::owners(self)
    }

    fn start(&mut self, moves: &[Move], now: Time) -> Result<(), MoveError> {
        Mover::start(self, moves, now)
    }
}
