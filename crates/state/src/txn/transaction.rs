//! A transaction while it runs.

use std::fmt;
use std::sync::Arc;

use rheostat_base::{LaneId, Time};

use super::abort::{Abort, Outcome};
use super::access::{PackedTouch, Touch};
use super::boxes::Boxes;
use super::gate::wait_until;
use super::objects::{Objects, Registry};
use super::profile::LaneConflicts;
use super::read_set::{CellRef, ReadRecord};
use super::site::SiteCache;
use super::slab::Slab;
use super::words::{Words, WordsMut};
use super::write_set::WriteSet;

/// How often a transaction looks whether a lock is gone, before it takes that for a conflict.
pub(super) const SPINS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 64 };

/// What the operations of shared objects take: something with a transaction in it.
pub trait Transactional {
    /// The transaction that runs.
    fn txn(&mut self) -> &mut Txn;
}

/// Where a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransactionPhase {
    /// Between two transactions.
    Between,
    /// In one.
    Open,
    /// In one that met a conflict: there is no way to commit.
    Conflicted,
}

/// A lane's transactions, of which one runs at a time. It is made once and used again, so that no transaction
/// allocates. Aligned, so that no two lanes write to one line (or to its neighbour, which is fetched with it).
#[repr(align(128))]
pub struct Txn {
    pub(super) objects: Objects,
    lane: LaneId,
    now: Time,
    /// Of the objects: which slabs are theirs.
    pub(super) home: u64,
    pub(super) phase: TransactionPhase,
    /// Turned away because another ran alone.
    pub(super) turned_away: bool,
    /// Runs alone.
    pub(super) alone: bool,
    /// Memory is seen as it was at this time.
    pub(super) snapshot: u64,
    /// When the transaction before this one took effect.
    pub(super) committed_at: u64,
    pub(super) reads: Vec<ReadRecord>,
    pub(super) writes: WriteSet,
    pub(super) boxes: Boxes,
    pub(super) sites: SiteCache,
    metrics: Arc<LaneConflicts>,
    sample: u32,
    /// Aborts until one is noted.
    until_sample: u32,
    resting: bool,
}

impl Txn {
    /// The transactions of `lane`. A lane has one such value.
    ///
    /// # Panics
    /// When the objects were made for fewer lanes.
    pub fn new(objects: &Objects, lane: LaneId) -> Txn {
        let metrics = objects.registry().metrics[lane.index()].clone();
        Txn {
            objects: objects.clone(),
            lane,
            now: Time::ZERO,
            home: objects.number(),
            phase: TransactionPhase::Between,
            turned_away: false,
            alone: false,
            snapshot: 0,
            committed_at: 0,
            reads: Vec::new(),
            writes: WriteSet::default(),
            boxes: Boxes::default(),
            sites: SiteCache::new(),
            metrics,
            sample: objects.sample(),
            until_sample: 1,
            resting: true,
        }
    }

    /// Begins a transaction at `now`; one that was not committed is given up.
    #[inline]
    pub fn begin(&mut self, now: Time) {
        if self.phase != TransactionPhase::Between {
            self.roll_back();
        }
        let Registry { clock, epochs, .. } = self.objects.registry();
        if self.resting {
            epochs.begin(self.lane.index());
            self.resting = false;
        }
        if self.turned_away && !self.alone {
            wait_until(|| !clock.is_closed());
        }
        self.turned_away = false;
        self.now = now;
        self.phase = TransactionPhase::Open;
        self.snapshot = clock.now();
    }

    /// Makes the next transaction run alone: it waits for its turn, and then nothing conflicts with it. Without
    /// effect while one runs.
    #[cold]
    pub fn make_serial(&mut self) {
        if self.phase == TransactionPhase::Between && !self.alone {
            let Registry { gate, clock, .. } = self.objects.registry();
            gate.enter(clock);
            self.alone = true;
            self.metrics.alone.increment();
        }
    }

    /// Whether the transaction has met a conflict, and has to be run again. What returns [`Abort`] otherwise has
    /// given up by itself.
    #[inline]
    pub fn is_conflicted(&self) -> bool {
        self.phase == TransactionPhase::Conflicted
    }

    /// Gives the transaction up: it never was.
    pub fn roll_back(&mut self) {
        if self.phase == TransactionPhase::Between {
            return;
        }
        self.boxes.roll_back();
        self.end();
    }

    /// The lane refers to no shared memory until it begins the next transaction: at the end of a burst, and before it
    /// sleeps. Ends the transaction that runs, if one does.
    pub fn rest(&mut self) {
        self.roll_back();
        self.leave_gate();
        if !self.resting {
            let epochs = &self.objects.registry().epochs;
            epochs.rest(self.lane.index());
            self.resting = true;
            self.boxes.collect(epochs);
        }
    }

    /// Goes on at another time: a transaction may be about several packets.
    #[inline]
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// The time that was given to [`Txn::begin`], or to [`Txn::set_now`] since.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// When the last transaction that committed took effect: all those of a run are as if they had run in the order
    /// of these numbers. Those with the same number only read.
    pub fn committed_at(&self) -> u64 {
        self.committed_at
    }

    /// The lane whose transactions these are.
    #[inline]
    pub fn lane(&self) -> LaneId {
        self.lane
    }

    /// The objects that these are transactions on.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Notes the reason of one in `n` aborts from now on; of each with 1.
    pub fn sample_every(&mut self, n: u32) {
        self.sample = n.max(1);
        self.until_sample = self.until_sample.min(self.sample);
    }

    /// Changes a cell with `change`, which sees what it holds.
    ///
    /// # Panics
    /// As [`Txn::read`].
    #[inline(always)]
    pub(crate) fn update<R>(
        &mut self,
        slab: &Slab,
        index: usize,
        touch: Touch,
        change: impl FnOnce(&mut WordsMut<'_>) -> R,
    ) -> Outcome<R> {
        self.enter(slab)?;
        let cell = slab.cell(index);
        let name = CellRef::new(cell);
        let at = match self.writes.find(name) {
            Some(at) => at,
            None => {
                let at = self.writes.insert(name, touch, cell.data().len(), false);
                let mut copy = self.writes.lend_words();
                let read = self.read_shared(cell, touch, |shared: &Words<'_>| {
                    copy.fill_last(shared);
                });
                self.writes.return_words(copy);
                read?;
                at
            }
        };
        Ok(change(&mut self.writes.words_mut(at)))
    }

    /// Overwrites all of a cell with `fill`, which sees zeros, or what the transaction wrote before.
    ///
    /// # Panics
    /// As [`Txn::read`].
    #[inline]
    pub(crate) fn overwrite(
        &mut self,
        slab: &Slab,
        index: usize,
        touch: Touch,
        fill: impl FnOnce(&mut WordsMut<'_>),
    ) -> Outcome<()> {
        self.enter(slab)?;
        let cell = slab.cell(index);
        let name = CellRef::new(cell);
        let at = match self.writes.find(name) {
            Some(at) => at,
            None => self.writes.insert(name, touch, cell.data().len(), true),
        };
        fill(&mut self.writes.words_mut(at));
        Ok(())
    }

    /// Ends all hope for the transaction, whose access met another lane's.
    #[cold]
    pub(super) fn conflict(&mut self, mine: Touch, theirs: PackedTouch) -> Abort {
        self.phase = TransactionPhase::Conflicted;
        self.metrics.aborts.increment();
        self.until_sample -= 1;
        if self.until_sample == 0 {
            self.until_sample = self.sample;
            let site = self.sites.number(mine.site, &self.objects.registry().sites);
            self.metrics.note(&mine, site, theirs);
        }
        Abort
    }

    /// As [`Txn::conflict`], where nothing but another's turn to run alone is in the way.
    #[cold]
    pub(super) fn turn_away(&mut self) -> Abort {
        self.phase = TransactionPhase::Conflicted;
        self.turned_away = true;
        self.metrics.turned_away.increment();
        Abort
    }

    /// Begins the end of a transaction that is to commit.
    pub(super) fn close(&mut self) -> Outcome<()> {
        assert!(self.phase != TransactionPhase::Between, "there is a transaction to commit");
        if self.phase == TransactionPhase::Conflicted {
            self.roll_back();
            return Err(Abort);
        }
        Ok(())
    }

    pub(super) fn committed(&mut self, at: u64) {
        self.committed_at = at;
        self.metrics.commits.increment();
        self.boxes.commit(&self.objects.registry().epochs);
        self.end();
    }

    fn end(&mut self) {
        self.reads.clear();
        self.writes.clear();
        self.phase = TransactionPhase::Between;
        self.leave_gate();
    }

    fn leave_gate(&mut self) {
        if self.alone {
            let Registry { gate, clock, .. } = self.objects.registry();
            gate.leave(clock);
            self.alone = false;
        }
    }
}

impl Transactional for Txn {
    #[inline]
    fn txn(&mut self) -> &mut Txn {
        self
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        self.rest();
        self.objects.bequeath(self.boxes.leave());
    }
}

impl fmt::Debug for Txn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Txn { lane, phase, alone, snapshot, reads, writes, .. } = self;
        write!(f, "Txn {{ lane: {lane:?}, phase: {phase:?}, alone: {alone}, ")?;
        write!(f, "snapshot: {snapshot}, reads: {}, writes: {} }}", reads.len(), writes.len())
    }
}
