//! The memory of an object: cells of one size, each on cache lines of its own.
//!
//! A slab lives as long as the run's [`Objects`](super::Objects), and its cells never become anything else. So a
//! transaction may look at a cell whatever has become of it: the version shows that.

use std::sync::Arc;

use rheostat_base::sync::atomic::{AtomicU64, Ordering, fence};
use rheostat_base::sync::thread;

use super::memory::Memory;
use super::objects::Objects;
use super::word::Word;
use crate::flow_table::prefetch;

/// Words of a cache line. Models have few words, so that they end.
const LINE: usize = if cfg!(any(loom, shuttle)) { 1 } else { 8 };
/// Words in front of a cell's data: its state, and the access that wrote it last.
pub(super) const HEAD: usize = 2;

/// Equal cells.
#[derive(Debug)]
pub struct Slab {
    words: Memory,
    /// Where the first cell begins, at the start of a line.
    start: usize,
    /// Words from one cell to the next.
    stride: usize,
    /// Words of data in each.
    data: usize,
    cells: usize,
    /// Which [`Objects`] it belongs to.
    home: u64,
    /// Ends what the cells refer to.
    dispose: Option<fn(&Slab)>,
}

impl Slab {
    /// `cells` cells with `data` words each. `fill` gives the words of each cell in turn, which are zero before.
    /// `dispose` is called when no transaction can reach the slab any more.
    pub(crate) fn new(
        objects: &Objects,
        cells: usize,
        data: usize,
        dispose: Option<fn(&Slab)>,
        mut fill: impl FnMut(usize, &mut [u64]),
    ) -> Arc<Slab> {
        let stride = (HEAD + data).next_multiple_of(LINE);
        let words = Memory::new(cells * stride + LINE);
        let start = words.as_ptr().align_offset(LINE * size_of::<u64>());
        // Where that cannot be told (under Miri), cells share lines.
        let start = if start < LINE { start } else { 0 };
        let mut one = vec![0; data];
        for cell in 0..cells {
            one.fill(0);
            fill(cell, &mut one);
            let at = start + cell * stride + HEAD;
            for (word, value) in
                words[at..at + data].iter().zip(&one).filter(|(_, value)| **value != 0)
            {
                // Relaxed: no other thread has the slab yet.
                word.store(*value, Ordering::Relaxed);
            }
        }
        let slab = Slab { words, start, stride, data, cells, home: objects.number(), dispose };
        objects.keep(Arc::new(slab))
    }

    /// How many cells there are.
    pub(crate) fn cells(&self) -> usize {
        self.cells
    }

    /// Which [`Objects`] keep it.
    #[inline]
    pub(super) fn home(&self) -> u64 {
        self.home
    }

    /// One cell.
    ///
    /// # Panics
    /// When there is no such cell.
    #[inline]
    pub(super) fn cell(&self, index: usize) -> Cell<'_> {
        assert!(index < self.cells, "cell {index} of {}", self.cells);
        let at = self.start + index * self.stride;
        // SAFETY: `new` has allocated room for all cells behind the start, and never less than a line more.
        Cell { words: unsafe { self.words.get_unchecked(at..at + HEAD + self.data) } }
    }

    /// Reads a cell outside transactions, while it is not written. Waits for a writer.
    pub(crate) fn look<R>(&self, index: usize, mut read: impl FnMut(&super::Words<'_>) -> R) -> R {
        let cell = self.cell(index);
        loop {
            // As in `Txn::read`.
            let seen = cell.state().load(Ordering::Acquire);
            let value = read(&super::Words::Shared(cell.data()));
            fence(Ordering::Acquire);
            if !Word::of_raw(seen).is_locked() && cell.state().load(Ordering::Relaxed) == seen {
                return value;
            }
            thread::yield_now();
        }
    }

    /// Asks the processor to fetch a cell, if there is such a one.
    #[inline]
    pub(crate) fn prefetch(&self, index: usize) {
        if index < self.cells {
            let words = self.cell(index).words;
            for line in words.chunks(LINE) {
                prefetch(line.as_ptr().cast());
            }
        }
    }

    /// A cell's data as they happen to be.
    pub(crate) fn peek(&self, index: usize) -> super::Words<'_> {
        super::Words::Shared(self.cell(index).data())
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        if let Some(dispose) = self.dispose {
            dispose(self);
        }
    }
}

/// A cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell<'a> {
    words: &'a [AtomicU64],
}

impl<'a> Cell<'a> {
    pub(super) fn of_words(words: &'a [AtomicU64]) -> Cell<'a> {
        Cell { words }
    }

    pub(super) fn words(self) -> &'a [AtomicU64] {
        self.words
    }

    /// Its [`Word`](super::word::Word).
    #[inline]
    pub(super) fn state(self) -> &'a AtomicU64 {
        &self.words[0]
    }

    /// The [`PackedTouch`](super::access::PackedTouch) that wrote it last.
    #[inline]
    pub(super) fn writer(self) -> &'a AtomicU64 {
        &self.words[1]
    }

    /// What it holds.
    #[inline]
    pub(super) fn data(self) -> &'a [AtomicU64] {
        &self.words[HEAD..]
    }
}
