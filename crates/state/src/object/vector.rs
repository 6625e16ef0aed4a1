//! An array.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use super::storage::{Boxed, Inline, Storage};
use crate::txn::{
    ObjectId, ObjectKind, Objects, Operation, Outcome, Part, Plain, Slab, Touch, Transactional,
};

/// A fixed number of elements, each on cache lines of its own. Conflicts: one lane writes an element that another
/// reads or writes.
pub struct Vector<T, S = Inline> {
    slab: Arc<Slab>,
    object: ObjectId,
    values: PhantomData<fn() -> (T, S)>,
}

/// Another handle of the same vector.
impl<T, S> Clone for Vector<T, S> {
    fn clone(&self) -> Vector<T, S> {
        Vector { slab: self.slab.clone(), object: self.object, values: PhantomData }
    }
}

impl<T: Plain> Vector<T> {
    /// A vector of these elements. `name` is for people.
    pub fn new(objects: &Objects, name: &str, values: impl IntoIterator<Item = T>) -> Vector<T> {
        Vector::of(objects, name, values)
    }
}

impl<T: Clone + Send + Sync + 'static> Vector<T, Boxed> {
    /// As [`Vector::new`], for elements that are not plain data.
    pub fn boxed(
        objects: &Objects,
        name: &str,
        values: impl IntoIterator<Item = T>,
    ) -> Vector<T, Boxed> {
        Vector::of(objects, name, values)
    }
}

impl<T, S: Storage<T>> Vector<T, S> {
    fn of(objects: &Objects, name: &str, values: impl IntoIterator<Item = T>) -> Vector<T, S> {
        let mut values: Vec<_> = values.into_iter().map(Some).collect();
        let len = values.len();
        let dispose: fn(&Slab) =
            |slab| (0..slab.cells()).for_each(|cell| S::dispose(slab, cell, 0));
        let slab = Slab::new(objects, len, S::WORDS, S::OWNS.then_some(dispose), |cell, words| {
            S::fill(values[cell].take().expect("each cell is filled once"), words);
        });
        let object = objects.register(name, ObjectKind::Vector, len);
        Vector { slab, object, values: PhantomData }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.slab.cells()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The object's number, for profiles.
    pub fn id(&self) -> ObjectId {
        self.object
    }

    /// Reads an element.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    ///
    /// # Panics
    /// When there is no such element, as with slices.
    #[track_caller]
    #[inline]
    pub fn read(&self, cx: &mut impl Transactional, index: usize) -> Outcome<T> {
        let touch = self.touch(Operation::Read, Location::caller());
        let txn = cx.txn();
        let raw = txn.read(&self.slab, index, touch, |words| S::load(words, 0))?;
        Ok(S::value(raw, txn))
    }

    /// Overwrites an element.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    ///
    /// # Panics
    /// As [`Vector::read`].
    #[track_caller]
    #[inline]
    pub fn write(&self, cx: &mut impl Transactional, index: usize, value: T) -> Outcome<()> {
        let touch = self.touch(Operation::Write, Location::caller());
        let txn = cx.txn();
        let raw = S::make(value, txn);
        if S::OWNS {
            // What was there must be known, to be freed.
            let before = txn.update(&self.slab, index, touch, |words| S::replace(raw, words, 0))?;
            S::free(before, txn);
            return Ok(());
        }
        txn.overwrite(&self.slab, index, touch, |words| {
            S::replace(raw, words, 0);
        })
    }

    /// Changes an element, and returns what `change` does.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    ///
    /// # Panics
    /// As [`Vector::read`].
    #[track_caller]
    #[inline]
    pub fn update<R>(
        &self,
        cx: &mut impl Transactional,
        index: usize,
        change: impl FnOnce(&mut T) -> R,
    ) -> Outcome<R> {
        let touch = self.touch(Operation::Update, Location::caller());
        S::change(cx.txn(), (&self.slab, index), touch, change)
    }

    #[inline(always)]
    fn touch(&self, operation: Operation, site: &'static Location<'static>) -> Touch {
        Touch::new(self.object, operation, Part::Element, 0, site)
    }
}

impl<T, S> fmt::Debug for Vector<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vector({} elements)", self.slab.cells())
    }
}
