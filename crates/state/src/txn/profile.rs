//! What transactions have come to, and what stood in the way of those that were aborted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rheostat_base::counter::Counter;

use super::access::{Operation, PackedTouch, Part, Touch};
use super::objects::ObjectId;
use super::site::{Site, SiteId, Sites};

/// One of two accesses that conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Access {
    /// What it was part of.
    pub operation: Operation,
    /// The author's line. `None` when there are too many lines to number.
    pub site: Option<Site>,
}

/// Two accesses of which one aborted the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Conflict {
    /// The object.
    pub object: ObjectId,
    /// What of it both touched.
    pub part: Part,
    /// The access of the transaction that was aborted.
    pub mine: Access,
    /// The access that was in its way.
    pub theirs: Access,
    /// Whether both meant the same thing: for a map, the same key.
    pub same: bool,
}

/// How often a conflict was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConflictCount {
    /// Which one.
    pub conflict: Conflict,
    /// Aborts for that reason, of those that were noted.
    pub count: u64,
}

/// What one lane has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneProfile {
    /// Transactions that committed.
    pub commits: u64,
    /// Transactions that were aborted by a conflict.
    pub aborts: u64,
    /// Transactions that were turned away because another ran alone; they are no conflicts.
    pub turned_away: u64,
    /// Transactions that ran alone, because they had been aborted often.
    pub alone: u64,
}

/// What all lanes have done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// By lane.
    pub lanes: Vec<LaneProfile>,
    /// What was noted of conflicts, the most frequent first.
    pub conflicts: Vec<ConflictCount>,
}

impl Profile {
    pub(super) fn of(lanes: &[Arc<LaneConflicts>], sites: &Sites) -> Profile {
        let mut counts: HashMap<Conflict, u64> = HashMap::new();
        for lane in lanes {
            for (noted, count) in lane.noted.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                *counts.entry(noted.resolve(sites)).or_default() += count;
            }
        }
        let mut conflicts: Vec<_> =
            counts.into_iter().map(|(conflict, count)| ConflictCount { conflict, count }).collect();
        conflicts.sort_by_key(|c| (std::cmp::Reverse(c.count), c.conflict));
        Profile { lanes: lanes.iter().map(|lane| lane.read()).collect(), conflicts }
    }

    /// The lanes' figures together.
    pub fn total(&self) -> LaneProfile {
        self.lanes.iter().fold(LaneProfile::default(), |sum, lane| LaneProfile {
            commits: sum.commits + lane.commits,
            aborts: sum.aborts + lane.aborts,
            turned_away: sum.turned_away + lane.turned_away,
            alone: sum.alone + lane.alone,
        })
    }

    /// What has come to it since `earlier`, a profile of the same run.
    #[must_use]
    pub fn since(&self, earlier: &Profile) -> Profile {
        let before: HashMap<Conflict, u64> =
            earlier.conflicts.iter().map(|counted| (counted.conflict, counted.count)).collect();
        let lanes = self.lanes.iter().zip(&earlier.lanes).map(|(now, then)| LaneProfile {
            commits: now.commits - then.commits,
            aborts: now.aborts - then.aborts,
            turned_away: now.turned_away - then.turned_away,
            alone: now.alone - then.alone,
        });
        let count = |counted: &ConflictCount| {
            let count = counted.count - before.get(&counted.conflict).copied().unwrap_or(0);
            ConflictCount { conflict: counted.conflict, count }
        };
        let conflicts = self.conflicts.iter().map(count).filter(|counted| counted.count > 0);
        let mut conflicts: Vec<_> = conflicts.collect();
        conflicts.sort_by_key(|c| (std::cmp::Reverse(c.count), c.conflict));
        Profile { lanes: lanes.collect(), conflicts }
    }

    /// Aborts of which it was noted why.
    pub fn noted(&self) -> u64 {
        self.conflicts.iter().map(|conflict| conflict.count).sum()
    }
}

impl LaneProfile {
    /// The share of attempts that were aborted.
    pub fn abort_rate(&self) -> f64 {
        let attempts = self.commits + self.aborts;
        if attempts == 0 { 0.0 } else { self.aborts as f64 / attempts as f64 }
    }
}

/// A conflict as a lane notes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Noted {
    object: ObjectId,
    part: Part,
    mine: (Operation, u16),
    theirs: (Operation, u16),
    same: bool,
}

impl Noted {
    fn resolve(&self, sites: &Sites) -> Conflict {
        let access = |(operation, site)| Access { operation, site: sites.get(SiteId(site)) };
        Conflict {
            object: self.object,
            part: self.part,
            mine: access(self.mine),
            theirs: access(self.theirs),
            same: self.same,
        }
    }
}

/// What a lane counts, to be read by others while it runs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct LaneConflicts {
    pub(super) commits: Counter,
    pub(super) aborts: Counter,
    pub(super) turned_away: Counter,
    pub(super) alone: Counter,
    /// Locked by the lane only for an abort that is noted, by others only to read.
    noted: Mutex<HashMap<Noted, u64>>,
}

impl LaneConflicts {
    fn read(&self) -> LaneProfile {
        LaneProfile {
            commits: self.commits.get(),
            aborts: self.aborts.get(),
            turned_away: self.turned_away.get(),
            alone: self.alone.get(),
        }
    }

    /// Notes a conflict of `mine` with `theirs`, unless that is not known any more.
    #[cold]
    pub(super) fn note(&self, mine: &Touch, site: SiteId, theirs: PackedTouch) {
        let Some((operation, part, their_site, detail)) = theirs.unpack() else { return };
        let own = PackedTouch::new(mine, site).unpack();
        let noted = Noted {
            object: mine.object(),
            part,
            mine: (mine.operation(), site.0),
            theirs: (operation, their_site.0),
            same: own.is_some_and(|(.., own)| own == detail),
        };
        let mut all = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        *all.entry(noted).or_default() += 1;
    }
}
