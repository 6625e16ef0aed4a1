//! Values as words.

use bytemuck::{AnyBitPattern, NoUninit};
use rheostat_base::sync::atomic::{AtomicU64, Ordering};

/// Plain data: any bytes are a value, and a value has no bytes of padding. So it can be read while it is written, and
/// thrown away when that turns out. Derive [`bytemuck::NoUninit`] and [`bytemuck::AnyBitPattern`], or
/// [`bytemuck::Pod`] and [`bytemuck::Zeroable`].
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
            // Relaxed: the version, loaded before and after, says what this is worth.
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

/// The value whose first word is at `at`.
#[inline(always)]
pub(crate) fn load<T: Plain>(words: &Words<'_>, at: usize) -> T {
    let mut value = T::zeroed();
    for (word, bytes) in bytemuck::bytes_of_mut(&mut value).chunks_mut(8).enumerate() {
        bytes.copy_from_slice(&words.get(at + word).to_ne_bytes()[..bytes.len()]);
    }
    value
}

/// Puts a value where its first word is at `at`.
#[inline(always)]
pub(crate) fn store<T: Plain>(words: &mut WordsMut<'_>, at: usize, value: &T) {
    for (word, bytes) in bytemuck::bytes_of(value).chunks(8).enumerate() {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        words.set(at + word, u64::from_ne_bytes(whole));
    }
}
