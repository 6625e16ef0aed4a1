//! The constraints of Tables 5.2 to 5.4 by name.

use std::fmt;

/// A constraint, by its number in the thesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Constraint {
    /// (5.2): at least one lane, and no more than there are.
    LaneCount,
    /// (5.3): each shard has one working lane among those there are.
    OneHome,
    /// (5.4): no shard belongs to a lane that does not work.
    HomeWorks,
    /// (5.5), first half: only lanes with an offloading lane offload.
    OffloadNeedsLink,
    /// (5.5), second half: only working lanes have an offloading lane, at most one.
    LinkNeedsWorking,
    /// (5.6): a working lane has a shard.
    WorkingHasShard,
    /// (5.7): no lane offloads to a lane that does not.
    LinkToOffloading,
    /// (5.8): an offloading lane serves enough working lanes.
    EnoughLinks,
    /// (5.9): no more of a shard leaves than may.
    MayLeave,
    /// (5.12): the objective of priority traffic.
    WorkingWait,
    /// (5.13): the objective of regular traffic.
    OffloadingWait,
    /// (5.14): the reserve of working lanes.
    WorkingReserve,
    /// (5.15): the reserve of offloading lanes.
    OffloadingReserve,
    /// (5.17): a working lane is not full.
    WorkingBelowFull,
    /// (5.18): an offloading lane is not full.
    OffloadingBelowFull,
    /// (5.19): the number of working lanes.
    WorkingCount,
    /// (5.20): the number of offloading lanes.
    OffloadingCount,
}

/// A constraint that does not hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Violation {
    /// Which.
    pub constraint: Constraint,
    /// The lane or shard it is about, by number; `None` for the whole.
    pub at: Option<usize>,
    /// By how much: loads in lanes' time, waits in seconds, all else in numbers.
    pub excess: f64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.constraint)?;
        if let Some(at) = self.at {
            write!(f, " at {at}")?;
        }
        write!(f, " by {}", self.excess)
    }
}
