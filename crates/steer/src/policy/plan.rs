//! What a policy wants changed, and why.

use std::fmt;

use rheostat_base::{LaneId, ShardId};
use thiserror::Error;

use super::{Load, Offloads, Reason};

/// What should change. Lanes to wake come first, then the moves, then lanes to park, which own
/// nothing any more by then, then what leaves working lanes.
///
/// Roles follow: a lane that is handed flows from now on offloads, whether it was parked or owns nothing any more; one that
/// is not any longer is parked, unless it is to wake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Shards that change lanes, each at most once.
    pub moves: Vec<Move>,
    /// Parked or offloading lanes that are to work.
    pub wake: Vec<LaneId>,
    /// Lanes to park.
    pub park: Vec<LaneId>,
    /// What leaves working lanes from now on, in place of what did; `None` changes nothing.
    pub offloads: Option<Offloads>,
    /// Why this, and why not more.
    pub why: Vec<Reason>,
}

impl Plan {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.moves.is_empty()
            && self.wake.is_empty()
            && self.park.is_empty()
            && self.offloads.is_none()
    }
}

/// One shard changes lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The shard.
    pub shard: ShardId,
    /// Its owner.
    pub from: LaneId,
    /// Its next owner.
    pub to: LaneId,
    /// Why it moves.
    pub why: MoveReason,
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Move { shard, from, to, why } = self;
        write!(f, "{shard} from {from} to {to}: ")?;
        match why {
            MoveReason::Overloaded { load, mean } => {
                write!(f, "{from} is at {load}, {} above the mean of {mean}", above(*load, *mean))
            }
            MoveReason::Exchange { load } => {
                write!(f, "{from}, at {load}, makes room for other shards")
            }
            MoveReason::Parking => write!(f, "{from} is to be parked"),
            MoveReason::Objective { load, most } => {
                write!(f, "{from} is at {load}, and may have {most} for its objectives")
            }
            MoveReason::Split { load } => {
                write!(f, "{from}, at {load}, gives away half of its shards")
            }
            MoveReason::Merge { load } => {
                write!(f, "{from}, at {load}, is merged into {to}")
            }
        }
    }
}

/// How far `load` lies above `mean`, in percent of `mean`.
fn above(load: Load, mean: Load) -> Load {
    load.saturating_sub(mean).part(Load::FULL.nanos_per_second(), mean.nanos_per_second())
}

/// Why a shard moves. Loads are those of the lane it leaves, before the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveReason {
    /// The lane is loaded more than the others.
    Overloaded {
        /// Its load.
        load: Load,
        /// The mean it should have.
        mean: Load,
    },
    /// The lane is not, but gets other shards in return.
    Exchange {
        /// Its load.
        load: Load,
    },
    /// The lane is to be parked.
    Parking,
    /// The lane has more work than its objectives allow, or would have it after a step of the load, or makes room for such a lane.
    Objective {
        /// Its load.
        load: Load,
        /// The most it may have.
        most: Load,
    },
    /// The lane is overloaded and split.
    Split {
        /// Its load.
        load: Load,
    },
    /// The lane is underloaded and merged with another.
    Merge {
        /// Its load.
        load: Load,
    },
}

/// Why a plan does not fit a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// A move names a shard that does not exist.
    #[error("there is no {0} to move")]
    NoSuchShard(ShardId),
    /// A shard is moved twice.
    #[error("{0} is moved twice; name only where it ends up")]
    MovedTwice(ShardId),
    /// A move starts at a lane that does not own the shard, or ends where it starts.
    #[error("{shard} belongs to {owner} and cannot leave {from}, or stays where it is")]
    From {
        /// The shard.
        shard: ShardId,
        /// Where the move starts.
        from: LaneId,
        /// The lane that owns it.
        owner: LaneId,
    },
    /// A move ends at a lane that is parked and not woken, or does not exist.
    #[error("{shard} cannot move to {to}, which is neither active nor woken by the plan")]
    Target {
        /// The shard.
        shard: ShardId,
        /// Where the move ends.
        to: LaneId,
    },
    /// A lane to wake is not parked, or does not exist.
    #[error("{0} cannot be woken: it is not parked")]
    Wake(LaneId),
    /// A lane to park is not active, or does not exist.
    #[error("{0} cannot be parked: it is not active")]
    Park(LaneId),
    /// A lane to park still owns a shard.
    #[error("{lane} cannot be parked: it still owns {shard}")]
    NotEmptied {
        /// The lane.
        lane: LaneId,
        /// The shard.
        shard: ShardId,
    },
    /// Links or shares are those of other lanes or shards, or a link starts at a lane that does not work.
    #[error("the plan offloads from lanes that do not work, or is one of other lanes or shards")]
    Offloads,
    /// A lane is to be handed flows, but still owns a shard or works for another reason.
    #[error("{0} cannot offload: it works")]
    Offloader(LaneId),
    /// No lane would be left.
    #[error("the plan parks every lane; one has to stay")]
    AllParked,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_reads_as_a_sentence() {
        let [from, to] = [0, 2].map(LaneId);
        let load = Load::from_percent(93);
        let why = MoveReason::Overloaded { load, mean: Load::from_percent(75) };
        let moved = Move { shard: ShardId(5), from, to, why };
        assert_eq!(
            moved.to_string(),
            "shard 5 from lane 0 to lane 2: lane 0 is at 93.0 %, 24.0 % above the mean of 75.0 %"
        );
    }
}
