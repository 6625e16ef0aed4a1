//! Values that are not plain data: a cell holds a pointer to one that never changes. To change it is to put another in
//! its place; the old one is freed once every lane has rested (`quiescence.rs`).

use std::marker::PhantomData;
use std::ptr::NonNull;

use super::Txn;
use super::quiescence::{Epochs, Mark};
use super::slab::Slab;
use super::words::{Words, WordsMut};

/// A pointer as a cell holds it; zero for none.
#[derive(Debug)]
pub struct Boxed<T> {
    word: u64,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Boxed<T> {
    fn clone(&self) -> Boxed<T> {
        *self
    }
}

impl<T> Copy for Boxed<T> {}

impl<T: Clone + Send + Sync + 'static> Boxed<T> {
    const NONE: Boxed<T> = Boxed { word: 0, value: PhantomData };

    /// Makes a value for a cell that no lane sees yet.
    pub(crate) fn before_run(value: T) -> u64 {
        Box::into_raw(Box::new(value)).expose_provenance() as u64
    }

    /// The pointer in a cell.
    #[inline]
    pub(crate) fn load(words: &Words<'_>, at: usize) -> Boxed<T> {
        Boxed { word: words.get(at), value: PhantomData }
    }

    /// Puts a pointer into a cell, and returns the one before.
    pub(crate) fn replace(self, words: &mut WordsMut<'_>, at: usize) -> Boxed<T> {
        let before = Boxed::load(&words.as_words(), at);
        words.set(at, self.word);
        before
    }

    /// Takes the pointer out of a cell.
    pub(crate) fn take(words: &mut WordsMut<'_>, at: usize) -> Boxed<T> {
        Boxed::NONE.replace(words, at)
    }

    fn pointer(self) -> Option<NonNull<T>> {
        NonNull::new(std::ptr::with_exposed_provenance_mut(self.word as usize))
    }

    /// The value, for a pointer that `txn` has read: what [`Txn::read`] has returned and nothing else.
    pub(crate) fn get(self, _txn: &Txn) -> T {
        let pointer = self.pointer().expect("an occupied cell holds a value");
        // SAFETY: only this type writes the cells of such objects, with boxes of `T`. The pointer was in its cell
        // while the transaction ran (the read was validated), and its lane has not rested since; so if it was taken
        // out, it is not freed yet. What it points to never changes.
        unsafe { pointer.as_ref() }.clone()
    }

    /// A pointer to a value that is freed unless `txn` commits.
    pub(crate) fn new(value: T, txn: &mut Txn) -> Boxed<T> {
        let word = Boxed::before_run(value);
        let boxed = Boxed { word, value: PhantomData };
        txn.boxes.fresh.extend(boxed.garbage());
        boxed
    }

    /// Frees the value once no lane can refer to it, if `txn` commits.
    pub(crate) fn drop_later(self, txn: &mut Txn) {
        txn.boxes.stale.extend(self.garbage());
    }

    fn garbage(self) -> Option<Garbage> {
        self.pointer().map(|pointer| Garbage { pointer: pointer.cast(), free: free::<T> })
    }

    /// Frees what word `at` of a cell of a slab points to, when no transaction can reach the slab any more.
    pub(crate) fn dispose(slab: &Slab, cell: usize, at: usize) {
        // Dropped, which frees the value.
        drop(Boxed::<T>::load(&slab.peek(cell), at).garbage().map(Freed));
    }
}

/// # Safety
/// `pointer` must come from a box of `T` that is freed nowhere else.
unsafe fn free<T>(pointer: NonNull<()>) {
    // SAFETY: by the caller's word.
    drop(unsafe { Box::from_raw(pointer.cast::<T>().as_ptr()) });
}

/// A value of some type that has to be freed.
#[derive(Debug)]
pub(super) struct Garbage {
    pointer: NonNull<()>,
    free: unsafe fn(NonNull<()>),
}

// SAFETY: it stands for a `Box<T>` with `T: Send`.
unsafe impl Send for Garbage {}

/// Garbage that is freed with this.
#[derive(Debug)]
struct Freed(Garbage);

impl Drop for Freed {
    fn drop(&mut self) {
        // SAFETY: a pointer becomes `Freed` once: as `fresh` of a transaction that did not commit, so that no cell
        // holds it; as `stale` of one that did, so that no cell holds it any more, and after every lane has rested;
        // or with its slab. The function was made with its type.
        unsafe { (self.0.free)(self.0.pointer) };
    }
}

/// Values that a lane has made and taken out.
#[derive(Debug, Default)]
pub(super) struct Boxes {
    /// Made by the transaction that runs.
    fresh: Vec<Garbage>,
    /// Taken out by it.
    stale: Vec<Garbage>,
    /// Taken out by transactions that have committed.
    limbo: Vec<(Mark, Freed)>,
}

impl Boxes {
    /// What was made is in the objects now, and what was taken out is not.
    #[inline]
    pub(super) fn commit(&mut self, epochs: &Epochs) {
        self.fresh.clear();
        if !self.stale.is_empty() {
            let mark = epochs.mark();
            self.limbo.extend(self.stale.drain(..).map(|garbage| (mark, Freed(garbage))));
        }
    }

    /// What was made never went anywhere.
    #[inline]
    pub(super) fn roll_back(&mut self) {
        self.fresh.drain(..).map(Freed).for_each(drop);
        self.stale.clear();
    }

    /// Frees what no lane can refer to any more.
    #[inline]
    pub(super) fn collect(&mut self, epochs: &Epochs) {
        if !self.limbo.is_empty() {
            let passed = epochs.passed();
            self.limbo.retain(|(mark, _)| *mark > passed);
        }
    }

    /// What is left, for others to free.
    pub(super) fn leave(&mut self) -> Vec<impl Send + use<>> {
        std::mem::take(&mut self.limbo)
    }
}
