//! Values as words.

use bytemuck::{AnyBitPattern, NoUninit};
use rheostat_base::sync::atomic::{AtomicU64, Ordering};

/// Plain data: any bytes are a value, and a value has no bytes of padding. So it can be read while it is written, and
/// thrown away when that turns out. Derive [`bytemuck::NoUninit`] and [`bytemuck::AnyBitPattern`], or
/// [`bytemuck::Pod`] and [`bytemuck::Zeroable`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no plain data, which objects shared by lanes hold",
    label = "not plain data",
    note = "numbers and arrays of them are; derive `bytemuck::{{NoUninit, AnyBitPattern}}` for a structure of them without padding; \
            `Map::boxed` holds any value"
)]
pub trait Plain: Copy + NoUninit + AnyBitPattern + Send + Sync + 'static {}

impl<T: Copy + NoUninit + AnyBitPattern + Send + Sync + 'static> Plain for T {}

/// How many words a value takes.
pub(crate) const fn words_of<T>() -> usize {
    size_of::<T>().div_ceil(8)
}

/// The data of a cell as a transaction sees it: what is there, or what it is going to write.
#[derive(Clone, Copy, Debug)]
pub enum Words<'a> {
    Shared(&'a [AtomicU64]),
    Own(&'a [u64]),
}

impl Words<'_> {
    /// One word. While another lane writes, this may be any word that was ever there.
    #[inline(always)]
    pub(crate) fn get(&self, at: usize) -> u64 {
        match self {
            // Relaxed: the version, loaded before and after, states what this is worth.
            Words::Shared(words) => words[at].load(Ordering::Relaxed),
            Words::Own(words) => words[at],
        }
    }
}

/// The data that a transaction is going to write to a cell.
#[derive(Debug)]
pub struct WordsMut<'a> {
    pub(super) words: &'a mut [u64],
    /// One bit for each of the first 63 words that was changed; the last for all behind.
    pub(super) dirty: &'a mut u64,
}

impl WordsMut<'_> {
    /// Changes one word.
    #[inline(always)]
    pub(crate) fn set(&mut self, at: usize, word: u64) {
        self.words[at] = word;
        *self.dirty |= 1 << at.min(63);
    }

    /// The same to read.
    #[inline(always)]
    pub(crate) fn as_words(&self) -> Words<'_> {
        Words::Own(self.words)
    }
}

/// What a transaction wants of a cell: for the most part a closure. Where that is called in several places, the compiler
/// may leave it a function of its own, whose result lies in memory; what was put there word by word and is fetched in larger
/// pieces has to wait until it has left the store buffer. An implementation can be inlined by force, and a closure not.
pub(crate) trait Look {
    type Seen;

    fn look(&mut self, words: &Words<'_>) -> Self::Seen;
}

impl<R, F: FnMut(&Words<'_>) -> R> Look for F {
    type Seen = R;

    #[inline(always)]
    fn look(&mut self, words: &Words<'_>) -> R {
        self(words)
    }
}

/// The value whose first word is at `at`.
#[inline(always)]
pub(crate) fn load<T: Plain>(words: &Words<'_>, at: usize) -> T {
    let mut value = T::zeroed();
    let (whole, rest) = bytemuck::bytes_of_mut(&mut value).as_chunks_mut();
    for (word, bytes) in whole.iter_mut().enumerate() {
        *bytes = words.get(at + word).to_ne_bytes();
    }
    if !rest.is_empty() {
        rest.copy_from_slice(&words.get(at + whole.len()).to_ne_bytes()[..rest.len()]);
    }
    value
}

/// Puts a value where its first word is at `at`.
#[inline(always)]
pub(crate) fn store<T: Plain>(words: &mut WordsMut<'_>, at: usize, value: &T) {
    let (whole, rest) = bytemuck::bytes_of(value).as_chunks();
    for (word, bytes) in whole.iter().enumerate() {
        words.set(at + word, u64::from_ne_bytes(*bytes));
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        words.set(at + whole.len(), u64::from_ne_bytes(last));
    }
}
