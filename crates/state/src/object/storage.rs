//! How values lie in cells.

use crate::txn::{self, Outcome, Plain, Slab, Touch, Txn, Words, WordsMut, load, store, words_of};

/// How values of `T` lie in the cells of an object: [`Inline`] or [`Boxed`].
pub trait Storage<T>: sealed::Cells<T> {}

/// The value itself, which must be [`Plain`] data.
#[derive(Clone, Copy, Debug)]
pub enum Inline {}

/// A pointer to the value, which may be anything that can be cloned. A write allocates.
#[derive(Clone, Copy, Debug)]
pub enum Boxed {}

impl<T: Plain> Storage<T> for Inline {}
impl<T: Clone + Send + Sync + 'static> Storage<T> for Boxed {}

pub(super) mod sealed {
    use super::{Outcome, Slab, Touch, Txn, Words, WordsMut};

    /// What [`Storage`](super::Storage) does.
    pub trait Cells<T> {
        /// What is read before it is known to be consistent.
        type Raw: Copy;

        const WORDS: usize;
        /// Whether what lies in cells has to be freed.
        const OWNS: bool;

        fn load(words: &Words<'_>, at: usize) -> Self::Raw;
        /// The value of what a read in `txn` has returned.
        fn value(raw: Self::Raw, txn: &Txn) -> T;
        /// Makes a value ready to be written.
        fn make(value: T, txn: &mut Txn) -> Self::Raw;
        /// Writes, and returns what was there.
        fn replace(raw: Self::Raw, words: &mut WordsMut<'_>, at: usize) -> Self::Raw;
        /// Empties the place, and returns what was there.
        fn take(words: &mut WordsMut<'_>, at: usize) -> Self::Raw;
        /// Changes the value that begins a cell.
        fn change<R>(
            txn: &mut Txn,
            cell: (&Slab, usize),
            touch: Touch,
            change: impl FnOnce(&mut T) -> R,
        ) -> Outcome<R>;
        /// Frees what was replaced or taken, in its time.
        fn free(raw: Self::Raw, txn: &mut Txn);
        /// Writes before the run.
        fn fill(value: T, words: &mut [u64]);
        /// Frees what lies in a cell when no transaction can reach it any more.
        fn dispose(slab: &Slab, cell: usize, at: usize);
    }
}

impl<T: Plain> sealed::Cells<T> for Inline {
    type Raw = T;

    const WORDS: usize = words_of::<T>();
    const OWNS: bool = false;

    #[inline(always)]
    fn load(words: &Words<'_>, at: usize) -> T {
        load(words, at)
    }

    #[inline(always)]
    fn value(raw: T, _: &Txn) -> T {
        raw
    }

    #[inline(always)]
    fn make(value: T, _: &mut Txn) -> T {
        value
    }

    #[inline(always)]
    fn replace(raw: T, words: &mut WordsMut<'_>, at: usize) -> T {
        let before = load(&words.as_words(), at);
        store(words, at, &raw);
        before
    }

    #[inline(always)]
    fn take(words: &mut WordsMut<'_>, at: usize) -> T {
        load(&words.as_words(), at)
    }

    #[inline(always)]
    fn change<R>(
        txn: &mut Txn,
        (slab, index): (&Slab, usize),
        touch: Touch,
        change: impl FnOnce(&mut T) -> R,
    ) -> Outcome<R> {
        txn.update(slab, index, touch, |words| {
            let mut value = load(&words.as_words(), 0);
            let result = change(&mut value);
            store(words, 0, &value);
            result
        })
    }

    #[inline(always)]
    fn free(_: T, _: &mut Txn) {}

    fn fill(value: T, words: &mut [u64]) {
        for (word, bytes) in words.iter_mut().zip(bytemuck::bytes_of(&value).chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
    }

    fn dispose(_: &Slab, _: usize, _: usize) {}
}

impl<T: Clone + Send + Sync + 'static> sealed::Cells<T> for Boxed {
    type Raw = txn::Boxed<T>;

    const WORDS: usize = 1;
    const OWNS: bool = true;

    fn load(words: &Words<'_>, at: usize) -> txn::Boxed<T> {
        txn::Boxed::load(words, at)
    }

    fn value(raw: txn::Boxed<T>, txn: &Txn) -> T {
        raw.get(txn)
    }

    fn make(value: T, txn: &mut Txn) -> txn::Boxed<T> {
        txn::Boxed::new(value, txn)
    }

    fn replace(raw: txn::Boxed<T>, words: &mut WordsMut<'_>, at: usize) -> txn::Boxed<T> {
        raw.replace(words, at)
    }

    fn take(words: &mut WordsMut<'_>, at: usize) -> txn::Boxed<T> {
        txn::Boxed::take(words, at)
    }

    /// The copy is made before the place is touched: both need the transaction.
    fn change<R>(
        txn: &mut Txn,
        (slab, index): (&Slab, usize),
        touch: Touch,
        change: impl FnOnce(&mut T) -> R,
    ) -> Outcome<R> {
        let raw = txn.read(slab, index, touch, |words| txn::Boxed::load(words, 0))?;
        let mut value = raw.get(txn);
        let result = change(&mut value);
        let raw = txn::Boxed::new(value, txn);
        let before = txn.update(slab, index, touch, |words| raw.replace(words, 0))?;
        before.drop_later(txn);
        Ok(result)
    }

    fn free(raw: txn::Boxed<T>, txn: &mut Txn) {
        raw.drop_later(txn);
    }

    fn fill(value: T, words: &mut [u64]) {
        words[0] = txn::Boxed::before_run(value);
    }

    fn dispose(slab: &Slab, cell: usize, at: usize) {
        txn::Boxed::<T>::dispose(slab, cell, at);
    }
}
