//! What a policy wants changed, and why.

use std::fmt;

use rheostat_base::{LaneId, ShardId};
use thiserror::Error;

use super::{Load, SquaredLoad};

/// What should change. Lanes to wake come first, then the moves, then lanes to park, which own nothing
/// any more by then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Shards that change lanes, each at most once.
    pub moves: Vec<Move>,
    /// Parked lanes to wake.
    pub wake: Vec<LaneId>,
    /// Lanes to park.
    pub park: Vec<LaneId>,
    /// Why this, and why not more.
    pub why: Vec<Reason>,
}

impl Plan {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.moves.is_empty() && self.wake.is_empty() && self.park.is_empty()
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

/// Why a plan is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The policy never changes anything.
    Static,
    /// Nothing needs to change.
    Balanced {
        /// The mean load of the active lanes.
        mean: Load,
        /// Their squared imbalance.
        squared: SquaredLoad,
    },
    /// Shards move to even the load out.
    Rebalanced {
        /// The mean load, over the lanes that will be active.
        mean: Load,
        /// Squared imbalance before, over the lanes that will be active.
        before: SquaredLoad,
        /// Squared imbalance to expect.
        after: SquaredLoad,
        /// How many attempts or steps it took to find the moves.
        steps: usize,
    },
    /// No move would make the load more even.
    NoBetter {
        /// The squared imbalance that remains.
        squared: SquaredLoad,
    },
    /// A lane stays overloaded because of one shard, which cannot be divided: often a single flow.
    OneShard {
        /// The lane.
        lane: LaneId,
        /// Its load.
        load: Load,
        /// The shard.
        shard: ShardId,
        /// The shard's load.
        weight: Load,
        /// The mean that the lane should have.
        mean: Load,
    },
    /// Lanes are left alone because they were given shards less than a period ago.
    Resting {
        /// How many.
        lanes: usize,
    },
    /// The mean load is above the target, so one lane is added.
    ScaleOut {
        /// The mean load of the lanes that are active now.
        mean: Load,
        /// The target.
        target: Load,
    },
    /// The mean load is above the target, but there is no lane to add, or none that could help.
    CannotScaleOut {
        /// The mean load.
        mean: Load,
        /// The target.
        target: Load,
    },
    /// The lanes have more than a lane's load to spare below the target, so one is parked.
    ScaleIn {
        /// The lane.
        lane: LaneId,
        /// What all of them together could take before they reach the target.
        spare: Load,
        /// How much that has to exceed.
        needed: Load,
    },
    /// The lanes have enough to spare to park one, but its shards do not fit the others.
    CannotScaleIn {
        /// The lane that would be parked.
        lane: LaneId,
        /// What the most loaded lane would have.
        highest: Load,
        /// The target.
        target: Load,
    },
    /// Fewer lanes are active than must be.
    TooFewLanes {
        /// Active lanes.
        active: usize,
        /// The least there must be.
        min: usize,
    },
    /// More lanes are active than may be.
    TooManyLanes {
        /// Active lanes.
        active: usize,
        /// The most there may be.
        max: usize,
    },
    /// A lane is above the threshold and gives half of its shards away.
    Split {
        /// The lane.
        lane: LaneId,
        /// Its load.
        load: Load,
        /// The threshold.
        above: Load,
    },
    /// A lane is above the threshold, but has no second shard, or nobody could take half.
    CannotSplit {
        /// The lane.
        lane: LaneId,
        /// Its load.
        load: Load,
        /// The threshold.
        above: Load,
    },
    /// Two lanes are below the threshold and become one.
    Merge {
        /// The lane that stays.
        into: LaneId,
        /// The lane that is parked.
        lane: LaneId,
        /// What the lane that stays will have.
        load: Load,
        /// The threshold.
        below: Load,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Static => write!(f, "the table never changes"),
            Reason::Balanced { mean, squared } => {
                write!(f, "balanced: the mean is {mean}, the squared imbalance {squared}")
            }
            Reason::Rebalanced { mean, before, after, steps } => write!(
                f,
                "towards a mean of {mean}: squared imbalance {before} becomes {after} \
                 ({steps} steps)"
            ),
            Reason::NoBetter { squared } => {
                write!(f, "no move lowers the squared imbalance of {squared}")
            }
            Reason::OneShard { lane, load, shard, weight, mean } => write!(
                f,
                "limited by one shard, perhaps one flow: {shard} alone is {weight} of {lane}'s \
                 {load}, and the mean is {mean}"
            ),
            Reason::Resting { lanes } => {
                write!(f, "{lanes} lanes were given shards and rest for one period")
            }
            Reason::ScaleOut { mean, target } => {
                write!(f, "a lane is added: the mean of {mean} is above the target of {target}")
            }
            Reason::CannotScaleOut { mean, target } => write!(
                f,
                "the mean of {mean} is above the target of {target}, but no further lane could help"
            ),
            Reason::ScaleIn { lane, spare, needed } => {
                write!(f, "{lane} is parked: {spare} is to spare below the target, {needed} enough")
            }
            Reason::CannotScaleIn { lane, highest, target } => write!(
                f,
                "{lane} is not parked: its shards would bring another to {highest}, above the \
                 target of {target}"
            ),
            Reason::TooFewLanes { active, min } => {
                write!(f, "{active} lanes are active, at least {min} must be")
            }
            Reason::TooManyLanes { active, max } => {
                write!(f, "{active} lanes are active, at most {max} may be")
            }
            Reason::Split { lane, load, above } => {
                write!(f, "{lane} is split: {load} is above {above}")
            }
            Reason::CannotSplit { lane, load, above } => write!(
                f,
                "{lane} cannot be split, though {load} is above {above}: it has one shard, or no \
                 lane is free for half of them"
            ),
            Reason::Merge { into, lane, load, below } => {
                write!(f, "{lane} is merged into {into}, both below {below}: together {load}")
            }
        }
    }
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
        /// Who owns it.
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
    /// No lane would be left.
    #[error("the plan parks every lane; one has to stay")]
    AllParked,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_read_as_sentences() {
        let [from, to] = [0, 2].map(LaneId);
        let load = Load::from_percent(93);
        let why = MoveReason::Overloaded { load, mean: Load::from_percent(75) };
        let moved = Move { shard: ShardId(5), from, to, why };
        assert_eq!(
            moved.to_string(),
            "shard 5 from lane 0 to lane 2: lane 0 is at 93.0 %, 24.0 % above the mean of 75.0 %"
        );
        let reason = Reason::OneShard {
            lane: LaneId(0),
            load,
            shard: ShardId(5),
            weight: Load::from_percent(90),
            mean: Load::from_percent(40),
        };
        assert_eq!(
            reason.to_string(),
            "limited by one shard, perhaps one flow: shard 5 alone is 90.0 % of lane 0's 93.0 %, \
             and the mean is 40.0 %"
        );
    }
}
