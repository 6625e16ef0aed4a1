//! A value that every lane changes and few read: counters, for one.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::Time;

use crate::txn::{
    ObjectId, ObjectKind, Objects, Operation, Outcome, Part, Plain, Slab, Touch, Transactional,
    Txn, load, store, words_of,
};

/// Where the merged value lies in its cell, behind whether there is one and when it was merged.
const VALUE: usize = 2;

/// A value of which each lane has its share. A lane changes its own, so changes never conflict with each other; a
/// read merges all shares, unless they were merged not long ago. Conflicts: one lane merges while another changes its
/// share.
pub struct Distributed<T> {
    shares: Arc<Slab>,
    merged: Arc<Slab>,
    object: ObjectId,
    identity: T,
    merge: fn(&mut T, &T),
    max_staleness: Duration,
}

/// Another handle of the same value.
impl<T: Clone> Clone for Distributed<T> {
    fn clone(&self) -> Distributed<T> {
        Distributed {
            shares: self.shares.clone(),
            merged: self.merged.clone(),
            object: self.object,
            identity: self.identity.clone(),
            merge: self.merge,
            max_staleness: self.max_staleness,
        }
    }
}

impl<T: Plain> Distributed<T> {
    /// The same value, for callers that read what is at most `max_staleness` old.
    #[must_use]
    pub fn read_within(self, max_staleness: Duration) -> Distributed<T> {
        Distributed { max_staleness, ..self }
    }

    /// A value whose shares are `identity` in the beginning. `merge` adds a share to what is merged already, in any
    /// order. What is read is at most `max_staleness` old.
    pub fn new(
        objects: &Objects,
        name: &str,
        identity: T,
        merge: fn(&mut T, &T),
        max_staleness: Duration,
    ) -> Distributed<T> {
        use super::storage::sealed::Cells;
        let (lanes, words) = (objects.lanes(), words_of::<T>());
        Distributed {
            shares: Slab::new(objects, lanes, words, None, |_, words| {
                super::Inline::fill(identity, words);
            }),
            merged: Slab::new(objects, 1, VALUE + words, None, |_, _| ()),
            object: objects.register(name, ObjectKind::Distributed, lanes),
            identity,
            merge,
            max_staleness,
        }
    }

    /// The object's number, for profiles.
    pub fn id(&self) -> ObjectId {
        self.object
    }

    /// How old what is read may be.
    pub fn max_staleness(&self) -> Duration {
        self.max_staleness
    }

    /// Changes the lane's own share.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    #[track_caller]
    #[inline]
    pub fn update(&self, cx: &mut impl Transactional, change: impl FnOnce(&mut T)) -> Outcome<()> {
        let touch = self.touch(Operation::Update, Part::Share, Location::caller());
        let txn = cx.txn();
        let lane = txn.lane().index();
        txn.update(&self.shares, lane, touch, |words| {
            let mut value = load(&words.as_words(), 0);
            change(&mut value);
            store(words, 0, &value);
        })
    }

    /// Reads the value: what was merged last, or, if that is too old, the shares as they are now.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    #[track_caller]
    #[inline]
    pub fn read(&self, cx: &mut impl Transactional) -> Outcome<T> {
        let site = Location::caller();
        let txn = cx.txn();
        if self.max_staleness.is_zero() {
            return self.merge_all(txn, site);
        }
        let touch = self.touch(Operation::Read, Part::Merged, site);
        let now = txn.now();
        let (exists, at, value) = txn.read(&self.merged, 0, touch, |words| {
            (words.get(0), words.get(1), load(words, VALUE))
        })?;
        if exists == 1 && now.since(Time::from_nanos(at)) <= self.max_staleness {
            return Ok(value);
        }
        let value = self.merge_all(txn, site)?;
        txn.overwrite(&self.merged, 0, touch, |words| {
            words.set(0, 1);
            words.set(1, now.as_nanos());
            store(words, VALUE, &value);
        })?;
        Ok(value)
    }

    fn merge_all(&self, txn: &mut Txn, site: &'static Location<'static>) -> Outcome<T> {
        let touch = self.touch(Operation::Read, Part::Share, site);
        let mut sum = self.identity;
        for lane in 0..self.shares.cells() {
            let share = txn.read(&self.shares, lane, touch, |words| load(words, 0))?;
            (self.merge)(&mut sum, &share);
        }
        Ok(sum)
    }

    /// The shares merged outside transactions, for figures: while lanes run, of slightly different moments.
    pub fn total(&self) -> T {
        let mut sum = self.identity;
        for lane in 0..self.shares.cells() {
            (self.merge)(&mut sum, &self.shares.look(lane, |words| load(words, 0)));
        }
        sum
    }

    #[inline(always)]
    fn touch(&self, operation: Operation, part: Part, site: &'static Location<'static>) -> Touch {
        Touch::new(self.object, operation, part, 0, site)
    }
}

impl<T> fmt::Debug for Distributed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Distributed({} lanes)", self.shares.cells())
    }
}
