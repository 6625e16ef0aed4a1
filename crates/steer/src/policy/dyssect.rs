//! Dyssect's optimisation models (Tables 5.1 to 5.4 of the thesis): which lane works for which
//! shard, which lane takes flows of which, and how much of each shard's traffic leaves.
//!
//! | function | objective | subject to |
//! |---|---|---|
//! | [`fewest_lanes()`] | number of lanes, (5.1) | (5.2) to (5.15) |
//! | [`fewest_changes()`] | shards that move and lanes that get another offloading lane, (5.16) | (5.2) to (5.13), (5.17) to (5.20) |
//! | [`balance()`] | squared distance of all lanes from a target, and a price for changes, (5.21) | (5.2) to (5.11), (5.19), (5.20) |
//!
//! All are heuristics with a certified bound beside the answer. [`violations`] checks an assignment
//! against every constraint by name, from the definitions alone. Loads are integers, so equal
//! problems get equal answers on every machine. A [`Budget`] of steps bounds the time.
//!
//! The policy [`Dyssect`] calls them: the first every long period, one of the others every short one.
//!
//! The bilinear terms of the models go away: how much leaves a working lane is one number per lane,
//! the excess over what the lane may have, and is spread over its shards afterwards.

mod adoption;
mod answer;
mod assignment;
mod balance;
mod bound;
mod budget;
mod capacity;
mod constraint;
mod construction;
mod controller;
mod correction;
mod deepening;
mod export;
mod feasible;
mod fewest_changes;
mod fewest_lanes;
#[cfg(feature = "instances")]
pub mod instances;
mod level;
mod placement;
mod problem;
mod queue_model;
mod repair;
mod sums;
mod trend;

pub use answer::{Answer, Balanced};
pub use assignment::{Changes, FlowAssignment, LaneRole};
pub use balance::{BalanceGoal, balance};
pub use budget::Budget;
pub use capacity::{LaneLimit, WaitModel, WaitStatistic};
pub use constraint::{Constraint, Violation};
pub(super) use controller::REGISTRATION;
pub use controller::{Dyssect, Goal};
pub use feasible::{Model, violations};
pub use fewest_changes::fewest_changes;
pub use fewest_lanes::fewest_lanes;
pub use problem::{Counts, LaneSetting, Problem, ProblemError, ShardDemand};
