//! The end of a transaction.

use rheostat_base::sync::atomic::{Ordering, fence};
use rheostat_base::sync::hint;

use super::abort::{Abort, Outcome};
use super::access::PackedTouch;
use super::objects::Registry;
use super::reading::touch_of;
use super::transaction::{SPINS, Txn};
use super::word::Word;

impl Txn {
    /// Makes what the transaction wrote take effect, all at once.
    ///
    /// # Errors
    /// [`Abort`] when it has met a conflict, now or before. It is over then, too, and has left no trace.
    ///
    /// # Panics
    /// When no transaction runs.
    #[inline]
    pub fn commit(&mut self) -> Outcome<()> {
        self.close()?;
        // What was read is as it was at the time of the snapshot, so the transaction could have run then.
        if self.writes.is_empty() {
            // After the one that wrote last.
            self.committed(2 * self.snapshot + 1);
            return Ok(());
        }
        let done = self.write_all();
        match done {
            Ok(time) => self.committed(2 * time),
            Err(Abort) => self.roll_back(),
        }
        done.map(|_| ())
    }

    /// Writes, and returns the time at which that took effect.
    fn write_all(&mut self) -> Outcome<u64> {
        for at in 0..self.writes.len() {
            if let Err(theirs) = self.lock(at) {
                self.unlock(at);
                let mine = self.writes.get(at).touch;
                return Err(self.conflict(mine, theirs));
            }
        }
        let Registry { clock, .. } = self.objects.registry();
        let Some(time) = clock.tick(self.alone) else {
            self.unlock(self.writes.len());
            return Err(self.turn_away());
        };
        // With the next time after the snapshot, no transaction has committed since, and none has while this one runs alone;
        // others may hold locks, but only until they abort.
        if !self.alone
            && time != self.snapshot + 1
            && let Err((mine, theirs)) = self.validate()
        {
            self.unlock(self.writes.len());
            return Err(self.conflict(mine, theirs));
        }
        // The writing end of the edge *lock*.
        fence(Ordering::Release);
        for at in 0..self.writes.len() {
            let write = self.writes.get(at);
            // SAFETY: the slabs of cells in the write set are among those that `objects` keep.
            let cell = unsafe { write.cell() };
            self.writes
                .changed(at, |word, value| cell.data()[word].store(value, Ordering::Relaxed));
            let site = self.sites.number(write.touch.site, &self.objects.registry().sites);
            let touch = PackedTouch::new(&write.touch, site);
            cell.writer().store(touch.raw(), Ordering::Relaxed);
            // The writing end of the edge *release*.
            cell.state().store(Word::free(time).raw(), Ordering::Release);
        }
        Ok(time)
    }

    /// Locks one of the cells to be written. The error is the access that holds it.
    fn lock(&mut self, at: usize) -> Result<(), PackedTouch> {
        let touch = self.writes.get(at).touch;
        let site = self.sites.number(touch.site, &self.objects.registry().sites);
        let locked = Word::locked(self.lane().0 as u8, PackedTouch::new(&touch, site));
        let alone = self.alone;
        let write = self.writes.get_mut(at);
        // SAFETY: the slabs of cells in the write set are among those that `objects` keep.
        let state = unsafe { write.cell() }.state();
        let mut spins = 0;
        loop {
            let word = Word::of_raw(state.load(Ordering::Relaxed));
            if !word.is_locked() {
                // Acquire: what is written now comes after what the last owner wrote.
                let swap = state.compare_exchange_weak(
                    word.raw(),
                    locked.raw(),
                    Ordering::Acquire,
                    Ordering::Relaxed,
                );
                if swap.is_ok() {
                    write.before = word;
                    return Ok(());
                }
            } else if alone {
                super::gate::wait_until(|| state.load(Ordering::Relaxed) != word.raw());
                continue;
            }
            spins += 1;
            if spins > SPINS && !alone {
                return Err(word.touch());
            }
            hint::spin_loop();
        }
    }

    /// Takes the locks on the first `count` cells back.
    #[cold]
    fn unlock(&self, count: usize) {
        for write in self.writes.iter().take(count) {
            // SAFETY: the slabs of cells in the write set are among those that `objects` keep.
            let state = unsafe { write.cell() }.state();
            // Release: nothing was written, but the next lock must not be seen before this.
            state.store(write.before.raw(), Ordering::Release);
        }
    }

    /// Whether what was read is still so, while all cells to be written are locked. States what is not.
    fn validate(&self) -> Result<(), (super::Touch, PackedTouch)> {
        for read in &self.reads {
            // SAFETY: the slabs of cells in the read set are among those that `objects` keep.
            let cell = unsafe { read.state.cell() };
            // Relaxed: what others lock and write with an earlier time is seen, by the edge *time*.
            let word = Word::of_raw(cell.state().load(Ordering::Relaxed));
            if word == read.seen {
                continue;
            }
            let own = self.writes.of_read(read).map(|at| self.writes.get(at).before);
            if own != Some(read.seen) {
                // The lock may be this transaction's own, and then does not name the faster writer.
                let theirs = match own {
                    Some(_) => PackedTouch::of_raw(cell.writer().load(Ordering::Relaxed)),
                    None => touch_of(cell, word),
                };
                return Err((read.touch, theirs));
            }
        }
        Ok(())
    }
}
