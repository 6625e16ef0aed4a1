//! What a transaction reads.

use rheostat_base::sync::atomic::{Ordering, fence};
use rheostat_base::sync::hint;

use super::abort::{Abort, Outcome};
use super::access::{PackedTouch, Touch};
use super::gate::wait_until;
use super::read_set::{CellRef, ReadRecord};
use super::slab::{Cell, Slab};
use super::transaction::{SPINS, TransactionPhase, Txn};
use super::word::Word;
use super::words::{Look, Words};

impl Txn {
    /// Reads a cell with `read`, which may be called more than once and on words that do not belong together; what it
    /// returns in the end is of words that do.
    ///
    /// # Panics
    /// Outside a transaction, and on objects of another run.
    #[inline(always)]
    pub(crate) fn read<R>(
        &mut self,
        slab: &Slab,
        index: usize,
        touch: Touch,
        read: impl FnMut(&Words<'_>) -> R,
    ) -> Outcome<R> {
        self.look(slab, index, touch, read)
    }

    /// As [`Txn::read`], with more than a closure.
    #[inline(always)]
    pub(crate) fn look<L: Look>(
        &mut self,
        slab: &Slab,
        index: usize,
        touch: Touch,
        look: L,
    ) -> Outcome<L::Seen> {
        self.enter(slab)?;
        let cell = slab.cell(index);
        if self.writes.may_have(CellRef::new(cell)) {
            return self.look_closely(cell, touch, look);
        }
        self.read_shared(cell, touch, look)
    }

    /// As above, of a cell that the transaction probably writes itself. Apart, so that what is left can be inlined.
    #[inline(never)]
    fn look_closely<L: Look>(
        &mut self,
        cell: Cell<'_>,
        touch: Touch,
        mut look: L,
    ) -> Outcome<L::Seen> {
        match self.writes.find(CellRef::new(cell)) {
            None => self.read_shared(cell, touch, look),
            Some(own) => Ok(look.look(&self.writes.words(own))),
        }
    }

    #[inline(always)]
    pub(super) fn enter(&self, slab: &Slab) -> Outcome<()> {
        // Also what makes it safe to keep cells: these objects, which live as long as this value, keep the slab.
        if self.phase == TransactionPhase::Open && slab.home() == self.home {
            return Ok(());
        }
        Err(self.refuse(slab))
    }

    #[cold]
    fn refuse(&self, slab: &Slab) -> Abort {
        assert!(slab.home() == self.home, "an object of another run");
        assert!(self.phase != TransactionPhase::Between, "objects are used in transactions");
        Abort
    }

    /// Reads what is no write of the transaction itself. Nearly always, the cell is not locked.
    #[inline(always)]
    pub(super) fn read_shared<L: Look>(
        &mut self,
        cell: Cell<'_>,
        touch: Touch,
        mut look: L,
    ) -> Outcome<L::Seen> {
        match try_read(cell, &mut look) {
            Ok((seen, value)) => self.remember(cell, seen, touch).map(|()| value),
            Err(word) => self.read_contended(cell, word, touch, look),
        }
    }

    /// As above, of a cell that was found locked or changing, with this word.
    #[cold]
    fn read_contended<L: Look>(
        &mut self,
        cell: Cell<'_>,
        mut word: Word,
        touch: Touch,
        mut look: L,
    ) -> Outcome<L::Seen> {
        let mut spins = 0;
        loop {
            match (word.is_locked(), self.alone) {
                // Its holder has its commit time, and waits for no other transaction.
                (true, true) => wait_until(|| cell.state().load(Ordering::Relaxed) != word.raw()),
                (_, false) if spins == SPINS => {
                    return Err(self.conflict(touch, touch_of(cell, word)));
                }
                (true, false) => hint::spin_loop(),
                (false, _) => {}
            }
            spins += u32::from(!self.alone);
            match try_read(cell, &mut look) {
                Ok((seen, value)) => return self.remember(cell, seen, touch).map(|()| value),
                Err(now) => word = now,
            }
        }
    }

    /// Notes what was read, for the transaction has to have seen all of it at one time.
    #[inline(always)]
    fn remember(&mut self, cell: Cell<'_>, seen: Word, touch: Touch) -> Outcome<()> {
        self.reads.push(ReadRecord::new(cell, seen, touch));
        if seen.version() > self.snapshot { self.extend() } else { Ok(()) }
    }

    /// Moves the snapshot to now, if all that was read, the last included, is still as it was.
    #[cold]
    fn extend(&mut self) -> Outcome<()> {
        let now = self.objects.registry().clock.now();
        for read in &self.reads {
            // SAFETY: `enter` has found the cell's slab among those that `objects` keep.
            let cell = unsafe { read.state.cell() };
            // Relaxed: a lock of a transaction that committed up to `now` is seen, by the edge *time*.
            let word = Word::of_raw(cell.state().load(Ordering::Relaxed));
            if word != read.seen {
                let (mine, theirs) = (read.touch, touch_of(cell, word));
                return Err(self.conflict(mine, theirs));
            }
        }
        self.snapshot = now;
        Ok(())
    }
}

/// Reads an unlocked cell, and returns the word that it has all the while; else one that it has now.
#[inline(always)]
fn try_read<L: Look>(cell: Cell<'_>, look: &mut L) -> Result<(Word, L::Seen), Word> {
    // Acquire: the reading end of the edge *release*.
    let seen = Word::of_raw(cell.state().load(Ordering::Acquire));
    if seen.is_locked() {
        return Err(seen);
    }
    let value = look.look(&Words::Shared(cell.data()));
    // The reading end of the edge *lock*: if a word that was read belongs to a write, the next load sees that write's
    // lock, or what came after.
    fence(Ordering::Acquire);
    let now = Word::of_raw(cell.state().load(Ordering::Relaxed));
    if now == seen { Ok((seen, value)) } else { Err(now) }
}

/// The access that writes a cell with this word, or wrote it last.
pub(super) fn touch_of(cell: Cell<'_>, word: Word) -> PackedTouch {
    match word.is_locked() {
        true => word.touch(),
        // Possibly of a later write than the one in question: good enough to name it.
        false => PackedTouch::of_raw(cell.writer().load(Ordering::Relaxed)),
    }
}
