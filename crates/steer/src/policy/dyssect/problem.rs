//! What the models are given.

use rheostat_base::ShardId;
use thiserror::Error;

use super::super::Load;
use super::{FlowAssignment, LaneLimit};

/// The work a shard makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardDemand {
    /// L_s: all of it.
    pub load: Load,
    /// L_s · r_max: the part that belongs to flows that may leave their working lane.
    pub may_leave: Load,
}

/// What lanes there are, and what they may be given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneSetting {
    /// |C|: how many lanes there are.
    pub lanes: usize,
    /// How much work a working lane may have.
    pub working: LaneLimit,
    /// How much work an offloading lane may have.
    pub offloading: LaneLimit,
    /// How many working lanes an offloading lane serves at least: 2 in (5.8).
    pub min_working_per_offloading: usize,
}

/// n_w and n_o: how many lanes have which role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Working lanes.
    pub working: usize,
    /// Offloading lanes.
    pub offloading: usize,
}

impl Counts {
    /// Both together.
    pub fn lanes(self) -> usize {
        self.working.saturating_add(self.offloading)
    }
}

/// Why figures are not a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProblemError {
    /// There is nothing to assign, or more than lanes can be told apart for.
    #[error("{0} shards; there have to be 1 to {max}", max = Problem::MAX_SHARDS)]
    Shards(usize),
    /// There is nothing to assign it to.
    #[error("{0} lanes; there have to be 1 to {max}", max = Problem::MAX_LANES)]
    Lanes(usize),
    /// More of a shard may leave than there is of it.
    #[error("of {shard}, {may_leave} may leave, but its load is {load}")]
    MayLeave {
        /// The shard.
        shard: ShardId,
        /// What may leave.
        may_leave: Load,
        /// What there is.
        load: Load,
    },
    /// A coefficient of variation is negative or no number.
    #[error("a squared coefficient of variation has to be a number from 0 up")]
    Variation,
    /// A lane may be more than full.
    #[error("a lane may have at most 100 % of its time, not {0}")]
    Highest(Load),
    /// An offloading lane would serve none.
    #[error("an offloading lane serves at least 1 working lane, not 0")]
    WorkingPerOffloading,
    /// Roles are more than lanes or shards, or offloading lanes too many for working lanes.
    #[error(
        "{working} working and {offloading} offloading lanes do not fit {lanes} lanes, {shards} shards and at \
             least {least} working lanes per offloading lane"
    )]
    Counts {
        /// Working lanes.
        working: usize,
        /// Offloading lanes.
        offloading: usize,
        /// Lanes there are.
        lanes: usize,
        /// Shards there are.
        shards: usize,
        /// Working lanes per offloading lane.
        least: usize,
    },
    /// The previous assignment is one of other shards or other lanes.
    #[error(
        "the previous assignment is not one of {shards} shards on {lanes} lanes with their roles"
    )]
    Previous {
        /// Shards there are.
        shards: usize,
        /// Lanes there are.
        lanes: usize,
    },
}

/// Shards and the lanes they are to be assigned to. Sound by construction.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    shards: Vec<ShardDemand>,
    setting: LaneSetting,
}

impl Problem {
    /// The most shards: entries of the largest indirection tables.
    pub const MAX_SHARDS: usize = 1 << 15;
    /// The most lanes.
    pub const MAX_LANES: usize = 1 << 12;

    /// A problem of these shards and lanes.
    ///
    /// # Errors
    /// [`ProblemError`] names the first figure that makes no sense.
    pub fn new(shards: Vec<ShardDemand>, setting: LaneSetting) -> Result<Problem, ProblemError> {
        if !(1..=Problem::MAX_SHARDS).contains(&shards.len()) {
            return Err(ProblemError::Shards(shards.len()));
        }
        if !(1..=Problem::MAX_LANES).contains(&setting.lanes) {
            return Err(ProblemError::Lanes(setting.lanes));
        }
        if setting.min_working_per_offloading == 0 {
            return Err(ProblemError::WorkingPerOffloading);
        }
        for limit in [setting.working, setting.offloading] {
            if limit.highest > Load::FULL {
                return Err(ProblemError::Highest(limit.highest));
            }
            if limit.wait.is_some_and(|wait| !wait.is_sound()) {
                return Err(ProblemError::Variation);
            }
        }
        for (shard, &ShardDemand { load, may_leave }) in (0..).map(ShardId).zip(&shards) {
            if may_leave > load {
                return Err(ProblemError::MayLeave { shard, may_leave, load });
            }
        }
        Ok(Problem { shards, setting })
    }

    /// The shards' work, by number.
    pub fn shards(&self) -> &[ShardDemand] {
        &self.shards
    }

    /// The lanes.
    pub fn setting(&self) -> &LaneSetting {
        &self.setting
    }

    /// Whether so many lanes can have these roles: (5.2), (5.6) and (5.8).
    ///
    /// # Errors
    /// [`ProblemError::Counts`].
    pub fn check_counts(&self, counts: Counts) -> Result<(), ProblemError> {
        let Counts { working, offloading } = counts;
        let (lanes, shards) = (self.setting.lanes, self.shards.len());
        let least = self.setting.min_working_per_offloading;
        let fits = (1..=shards).contains(&working)
            && counts.lanes() <= lanes
            && offloading.saturating_mul(least) <= working;
        if fits {
            return Ok(());
        }
        Err(ProblemError::Counts { working, offloading, lanes, shards, least })
    }

    /// Whether `previous` is an assignment of these shards to these lanes, feasible or not.
    pub(super) fn check_previous(&self, previous: &FlowAssignment) -> Result<(), ProblemError> {
        let (shards, lanes) = (self.shards.len(), self.setting.lanes);
        let lengths = previous.home.len() == shards
            && previous.offloaded.len() == shards
            && previous.roles.len() == lanes
            && previous.links.len() == lanes;
        let targets = previous.home.iter().chain(previous.links.iter().flatten());
        if lengths && targets.into_iter().all(|lane| lane.index() < lanes) {
            return Ok(());
        }
        Err(ProblemError::Previous { shards, lanes })
    }
}
