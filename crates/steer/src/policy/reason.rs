//! Why a plan is as it is, for people.

use std::fmt;
use std::time::Duration;

use rheostat_base::{LaneId, ShardId};

use super::{Cause, Class, Load, SquaredLoad};

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
    /// Lanes are above the mean, but no move was found that is worth it: none makes the load more even,
    /// or the policy takes it for even enough.
    NoBetter {
        /// The squared imbalance that remains.
        squared: SquaredLoad,
        /// How many attempts or steps it took to find that out.
        steps: usize,
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
        /// What the most loaded of those that take its shards would have.
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
    /// A lane is above the threshold, but has no second shard, or no other lane could take half.
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
    /// The long period asks for other numbers of lanes.
    LaneCounts {
        /// Working lanes.
        working: usize,
        /// Offloading lanes.
        offloading: usize,
        /// Fewer than this would not do for certain; `None` if no number would.
        bound: Option<usize>,
        /// Whether the load is expected to grow on.
        ahead: bool,
    },
    /// All lanes have what they may have for the objectives, or less.
    WithinObjectives {
        /// What a working lane may have.
        most: Load,
        /// What the most loaded lane has.
        highest: Load,
    },
    /// Shards, links and roles change so that lanes have what they may have.
    Changes {
        /// Shards that move and lanes that get another offloading lane.
        changes: usize,
        /// Fewer than this would not do for certain, where it is known.
        bound: Option<usize>,
    },
    /// Shards move so that lanes would have what they may have if the load grew at once.
    Readiness {
        /// Shards that move and lanes that get another offloading lane.
        changes: usize,
        /// By so much of itself.
        growth: Load,
    },
    /// No change was found that violates less.
    NoFewerViolations {
        /// Constraints that are violated.
        violations: usize,
        /// Whether the search ended because its budget did.
        cut: bool,
    },
    /// An objective is not met with the lanes that run.
    ObjectiveMissed {
        /// Of which class.
        class: Class,
        /// By how much, on the lane where it is most.
        by: Duration,
    },
    /// No load would meet an objective, so lanes are limited by their load alone.
    OutOfReach {
        /// Of which class.
        class: Class,
        /// The objective.
        limit: Duration,
    },
    /// The load is more than the lanes that run can process.
    LanesFull {
        /// How much more, on the lane where it is most.
        excess: Load,
    },
    /// One flow is more than a lane may have.
    HeavyFlow {
        /// Its shard.
        shard: ShardId,
        /// Its load.
        load: Load,
        /// What a lane may have.
        most: Load,
    },
    /// No shard moves, because the device's table was rewritten a short time ago.
    RewriteCosts {
        /// What that took.
        took: Duration,
    },
    /// `auto` asked this policy.
    Chosen {
        /// Its name.
        policy: &'static str,
        /// Why.
        cause: Cause,
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
            Reason::NoBetter { squared, .. } => {
                write!(f, "nothing is moved for a squared imbalance of {squared}")
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
            Reason::LaneCounts { working, offloading, bound, ahead } => {
                write!(f, "{working} lanes are to work and {offloading} to offload")?;
                match bound {
                    Some(bound) if *bound == working + offloading => {
                        write!(f, ", the fewest that can meet the objectives")?;
                    }
                    Some(bound) => write!(f, "; fewer than {bound} could not meet the objectives")?,
                    None => write!(f, "; no number of lanes meets the objectives")?,
                }
                if *ahead { write!(f, "; the load is growing") } else { Ok(()) }
            }
            Reason::WithinObjectives { most, highest } => write!(
                f,
                "within the objectives: the most loaded lane is at {highest}, working lanes may have {most}"
            ),
            Reason::Changes { changes, bound: Some(bound) } if changes == bound => {
                write!(f, "{changes} changes meet the objectives, fewer do not")
            }
            Reason::Changes { changes, .. } => write!(f, "{changes} changes"),
            Reason::Readiness { changes, growth } => {
                write!(f, "{changes} changes, so that the load could grow by {growth} at once")
            }
            Reason::NoFewerViolations { violations, cut } => {
                write!(
                    f,
                    "{violations} constraints are violated, and no change was found that helps"
                )?;
                if *cut { write!(f, " in the time there was") } else { Ok(()) }
            }
            Reason::ObjectiveMissed { class, by } => {
                write!(f, "the objective of {class} traffic will be missed by {by:.1?}")
            }
            Reason::OutOfReach { class, limit } => write!(
                f,
                "no load meets the objective of {class} traffic, {limit:?}: lanes are limited by load alone"
            ),
            Reason::LanesFull { excess } => {
                write!(f, "the lanes that run lack {excess} of a lane's time")
            }
            Reason::HeavyFlow { shard, load, most } => write!(
                f,
                "one flow of {shard} is {load} of a lane, and a lane may have {most}: it needs a faster core"
            ),
            Reason::RewriteCosts { took } => {
                write!(f, "no shard moves: rewriting the device's table takes {took:.1?}")
            }
            Reason::Chosen { policy, cause } => {
                write!(f, "auto asks {policy}: ")?;
                match cause {
                    Cause::Objectives => write!(f, "there are latency objectives"),
                    Cause::HeavyShard { load } => {
                        write!(f, "a shard is at {load}, and its flows can leave")
                    }
                    Cause::Rewriting { took } => {
                        write!(f, "rewriting the device's table takes {took:.1?}")
                    }
                    Cause::Coarse { lanes, heaviest } => {
                        write!(
                            f,
                            "{lanes} lanes are active, and the heaviest shard is at {heaviest}"
                        )
                    }
                    Cause::Fine => write!(f, "lanes are few and shards light"),
                    Cause::OneLane => write!(f, "one lane is all there may be"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_reads_as_a_sentence() {
        let reason = Reason::OneShard {
            lane: LaneId(0),
            load: Load::from_percent(93),
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
