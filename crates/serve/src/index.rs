//! Where connections are, by the hash of their keys.
//!
//! An open table of 8 bytes for each cell, so that a lane can ask for the cell of a packet while it handles others, and most
//! lookups read one line. A cell has 32 bits of the hash, which is keyed with a secret, so other connections are seldom looked at.

use rheostat_base::sync::prefetch::prefetch_for_write;
use rheostat_state::FlowHash;

/// A cell in which nothing is.
const EMPTY: u32 = u32::MAX;
/// Cells at first.
const FIRST: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Cell {
    tag: u32,
    slot: u32,
}

/// Slots by hash. At most three quarters of the cells are taken.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// None, or a power of two.
    cells: Box<[Cell]>,
    len: usize,
}

/// What the table keeps of a hash.
pub(crate) fn tag_of(hash: FlowHash) -> u32 {
    (hash.0 ^ hash.0 >> 32) as u32
}

impl Index {
    /// Asks for the first cell of `tag`.
    #[inline]
    pub(crate) fn prefetch(&self, tag: u32) {
        if let Some(cell) = self.cells.get(self.home(tag)) {
            prefetch_for_write(cell);
        }
    }

    /// A slot that may be the one of `tag`: the first that has it.
    #[inline]
    pub(crate) fn candidate(&self, tag: u32) -> Option<u32> {
        self.find(tag, |_| true)
    }

    /// The slot with this tag of which `is_it` is true.
    #[inline]
    pub(crate) fn find(&self, tag: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.cells.is_empty() {
            return None;
        }
        let mut at = self.home(tag);
        loop {
            let cell = self.cells[at];
            if cell.slot == EMPTY {
                return None;
            }
            if cell.tag == tag && is_it(cell.slot) {
                return Some(cell.slot);
            }
            at = self.behind(at);
        }
    }

    /// Enters a slot that is not here.
    pub(crate) fn insert(&mut self, tag: u32, slot: u32) {
        if 4 * (self.len + 1) > 3 * self.cells.len() {
            self.grow();
        }
        self.place(Cell { tag, slot });
        self.len += 1;
    }

    /// Takes a slot out, if it is here.
    pub(crate) fn remove(&mut self, tag: u32, slot: u32) {
        if self.cells.is_empty() {
            return;
        }
        let mut at = self.home(tag);
        while self.cells[at].slot != slot {
            if self.cells[at].slot == EMPTY {
                return;
            }
            at = self.behind(at);
        }
        self.len -= 1;
        // Those behind move up, as far as that brings them no further than home.
        let (mut free, mut next) = (at, self.behind(at));
        while self.cells[next].slot != EMPTY {
            let way = |from: usize| next.wrapping_sub(from) & (self.cells.len() - 1);
            if way(self.home(self.cells[next].tag)) >= way(free) {
                self.cells[free] = self.cells[next];
                free = next;
            }
            next = self.behind(next);
        }
        self.cells[free].slot = EMPTY;
    }

    fn place(&mut self, cell: Cell) {
        let mut at = self.home(cell.tag);
        while self.cells[at].slot != EMPTY {
            at = self.behind(at);
        }
        self.cells[at] = cell;
    }

    #[cold]
    fn grow(&mut self) {
        let size = (2 * self.cells.len()).max(FIRST);
        let empty = Cell { tag: 0, slot: EMPTY };
        let old = std::mem::replace(&mut self.cells, vec![empty; size].into_boxed_slice());
        old.into_iter().filter(|cell| cell.slot != EMPTY).for_each(|cell| self.place(cell));
    }

    /// Of no meaning without cells.
    #[inline]
    fn home(&self, tag: u32) -> usize {
        tag as usize & self.cells.len().wrapping_sub(1)
    }

    #[inline]
    fn behind(&self, at: usize) -> usize {
        (at + 1) & (self.cells.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn what_was_entered_is_found_until_it_is_taken_out_however_tags_collide() {
        let (mut index, mut model) = (Index::default(), HashMap::new());
        let mut state = 1_u64;
        for turn in 0..20_000_u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Few tags, which share homes and wrap round the end.
            let tag = ((state >> 33) % 97) as u32 | 0xf0;
            let slot = (state >> 45) as u32 % 40;
            match model.remove(&slot) {
                Some(old) => index.remove(old, slot),
                None => {
                    index.insert(tag, slot);
                    model.insert(slot, tag);
                }
            }
            assert_eq!(index.len, model.len(), "turn {turn}");
            for (slot, tag) in &model {
                assert_eq!(index.find(*tag, |found| found == *slot), Some(*slot), "turn {turn}");
            }
        }
        model.into_iter().for_each(|(slot, tag)| index.remove(tag, slot));
        assert!((0..=u8::MAX.into()).all(|tag| index.candidate(tag).is_none()));
    }

    #[test]
    fn a_slot_that_is_not_here_is_not_taken_out() {
        let mut index = Index::default();
        index.remove(3, 1);
        index.insert(3, 1);
        index.remove(3, 2);
        index.remove(4, 1);
        assert_eq!(index.candidate(3), Some(1));
    }
}
