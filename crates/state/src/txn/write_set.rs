//! What a transaction is going to write.

use super::access::Touch;
use super::read_set::{CellRef, ReadRecord};
use super::slab::Cell;
use super::word::Word;
use super::words::{Words, WordsMut};

/// Writes up to which they are looked through one by one.
const FEW: usize = 8;

/// One cell to be written, with its data to be.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) cell: CellRef,
    /// Where its words lie in [`WriteSet::words`].
    start: usize,
    len: usize,
    dirty: u64,
    /// Its word when it was locked.
    pub(super) before: Word,
    pub(super) touch: Touch,
}

/// The writes of a transaction. Most cells that are read are not in it, which a word of 64 bits shows; for the rest
/// there is an index once there are more than a few.
#[derive(Debug, Default)]
pub(super) struct WriteSet {
    writes: Vec<Write>,
    words: Vec<u64>,
    /// One bit, chosen by its address, for each cell.
    bloom: u64,
    /// Positions in `writes` plus one, open addressing by address; a power of two, at least twice as many as writes.
    index: Vec<u32>,
}

#[inline]
fn mixed(address: usize) -> usize {
    // Cells begin at lines; multiplication spreads the rest over the upper bits.
    ((address as u64 >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

/// Of 64 bits the one that stands for an address.
#[inline(always)]
fn bloom_bit(address: usize) -> u64 {
    1 << (mixed(address) % 64)
}

impl WriteSet {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.writes.len()
    }

    pub(super) fn clear(&mut self) {
        if self.writes.is_empty() {
            return;
        }
        if self.writes.len() > FEW {
            self.index.fill(0);
        }
        self.writes.clear();
        self.words.clear();
        self.bloom = 0;
    }

    /// Whether there may be a write of this cell: certainly, if there is one, and rarely otherwise.
    #[inline(always)]
    pub(super) fn may_have(&self, cell: CellRef) -> bool {
        self.bloom != 0 && self.bloom & bloom_bit(cell.address()) != 0
    }

    /// The write of a cell, if there is one.
    #[inline]
    pub(super) fn find(&self, cell: CellRef) -> Option<usize> {
        if !self.may_have(cell) {
            return None;
        }
        self.search(cell.address(), |write| write.cell == cell)
    }

    /// The write of a cell that was read, if there is one.
    pub(super) fn of_read(&self, read: &ReadRecord) -> Option<usize> {
        let address = read.state.address();
        if self.bloom & bloom_bit(address) == 0 {
            return None;
        }
        self.search(address, |write| write.cell.is(read))
    }

    fn search(&self, address: usize, is: impl Fn(&Write) -> bool) -> Option<usize> {
        if self.writes.len() <= FEW {
            return self.writes.iter().position(is);
        }
        let mask = self.index.len() - 1;
        let mut at = mixed(address) & mask;
        loop {
            match self.index[at] {
                0 => return None,
                found if is(&self.writes[found as usize - 1]) => return Some(found as usize - 1),
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// Adds a cell with `len` words of data, which are zero. If it is `whole`, all of them will be written, otherwise
    /// those that are changed.
    pub(super) fn insert(&mut self, cell: CellRef, touch: Touch, len: usize, whole: bool) -> usize {
        let start = self.words.len();
        self.words.resize(start + len, 0);
        let dirty = if whole { u64::MAX } else { 0 };
        self.writes.push(Write { cell, start, len, dirty, before: Word::free(0), touch });
        self.bloom |= bloom_bit(cell.address());
        let at = self.writes.len() - 1;
        match self.writes.len() {
            few if few <= FEW => {}
            many if many == FEW + 1 || 2 * many > self.index.len() => self.index_all(),
            _ => self.index_one(at),
        }
        at
    }

    /// The data of all cells, while the set itself is not needed, to be filled from a cell that is read.
    pub(super) fn lend_words(&mut self) -> LentWords {
        let start = self.writes.last().map_or(0, |write| write.start);
        LentWords { words: std::mem::take(&mut self.words), start }
    }

    pub(super) fn return_words(&mut self, lent: LentWords) {
        self.words = lent.words;
    }

    fn index_all(&mut self) {
        let size = (4 * self.writes.len()).next_power_of_two().max(self.index.len());
        self.index.clear();
        self.index.resize(size, 0);
        (0..self.writes.len()).for_each(|at| self.index_one(at));
    }

    fn index_one(&mut self, write: usize) {
        let mask = self.index.len() - 1;
        let mut at = mixed(self.writes[write].cell.address()) & mask;
        while self.index[at] != 0 {
            at = (at + 1) & mask;
        }
        self.index[at] = write as u32 + 1;
    }

    /// The data a cell is going to have.
    #[inline]
    pub(super) fn words(&self, at: usize) -> Words<'_> {
        let Write { start, len, .. } = self.writes[at];
        Words::Own(&self.words[start..start + len])
    }

    /// The same to change.
    #[inline]
    pub(super) fn words_mut(&mut self, at: usize) -> WordsMut<'_> {
        let Write { start, len, dirty, .. } = &mut self.writes[at];
        WordsMut { words: &mut self.words[*start..*start + *len], dirty }
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> &Write {
        &self.writes[at]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: usize) -> &mut Write {
        &mut self.writes[at]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Write> {
        self.writes.iter()
    }

    /// Calls `write` with each word of a cell that was changed.
    #[inline]
    pub(super) fn changed(&self, at: usize, mut write: impl FnMut(usize, u64)) {
        let Write { start, len, dirty, .. } = self.writes[at];
        for (word, value) in self.words[start..start + len].iter().enumerate() {
            if dirty >> word.min(63) & 1 == 1 {
                write(word, *value);
            }
        }
    }
}

/// What [`WriteSet::lend_words`] lends.
pub(super) struct LentWords {
    words: Vec<u64>,
    /// Where those of the cell begin that was added last.
    start: usize,
}

impl LentWords {
    /// Copies the data of the cell that was added last.
    #[inline]
    pub(super) fn fill_last(&mut self, shared: &Words<'_>) {
        for (at, word) in self.words[self.start..].iter_mut().enumerate() {
            *word = shared.get(at);
        }
    }
}

impl Write {
    /// The cell.
    ///
    /// # Safety
    /// As for [`CellRef::cell`].
    #[inline]
    pub(super) unsafe fn cell<'a>(&self) -> Cell<'a> {
        // SAFETY: by the caller's word.
        unsafe { self.cell.cell() }
    }
}
