//! A value that lanes share, and that another takes the place of while they run: each lane sees by one load whether the value that it
//! uses is still in force, and takes the next one at a moment of its choice.

use std::fmt;
use std::sync::Arc;

use super::atomic::{AtomicU64, Ordering};
use super::{Mutex, MutexGuard};
use crate::LaneId;

/// A generation that no value has: what a follower has applied that is gone.
const GONE: u64 = u64::MAX;

/// The value in force, for all that follow it.
pub struct Succession<T> {
    /// Counts the replacements. Stored while the lock of `current` is held. Relaxed: a thread that sees a number, and then takes the
    /// lock, takes it behind the thread that stored the number, for otherwise its load would happen before that store.
    generation: AtomicU64,
    /// Held by lanes for as long as they copy a reference, and only when there is another value.
    current: Mutex<Current<T>>,
    /// What each follower has applied. No lane locks it but when it begins to follow.
    followers: Mutex<Vec<(LaneId, Arc<AtomicU64>)>>,
}

struct Current<T> {
    generation: u64,
    value: Arc<T>,
    /// Values that lanes may still use: the lanes drop none of them, whatever that takes.
    past: Vec<Arc<T>>,
}

/// One lane's part in a [`Succession`].
pub struct Follower<T> {
    succession: Arc<Succession<T>>,
    /// That of the value which the lane uses.
    generation: u64,
    /// The same once all of the lane's work has been adapted to that value; until then, a number that no value has.
    settled: u64,
    applied: Arc<AtomicU64>,
}

impl<T> Succession<T> {
    /// A succession that begins with this value, of generation 0.
    pub fn new(value: Arc<T>) -> Succession<T> {
        Succession {
            generation: AtomicU64::new(0),
            current: Mutex::new(Current { generation: 0, value, past: Vec::new() }),
            followers: Mutex::new(Vec::new()),
        }
    }

    /// The value in force, with its generation.
    pub fn current(&self) -> (u64, Arc<T>) {
        let current = lock(&self.current);
        (current.generation, current.value.clone())
    }

    /// Puts another value in force, and returns its generation, for [`Succession::pending`].
    pub fn replace(&self, value: Arc<T>) -> u64 {
        let mut current = lock(&self.current);
        let before = std::mem::replace(&mut current.value, value);
        current.past.push(before);
        current.generation += 1;
        self.generation.store(current.generation, Ordering::Relaxed);
        current.generation
    }

    /// The lanes that have not applied this generation yet, in order: no other uses a value before it. Values that no lane uses any
    /// more are dropped.
    pub fn pending(&self, generation: u64) -> Vec<LaneId> {
        let current = self.current().0;
        let mut followers = lock(&self.followers);
        // Acquire: pairs with the Release of a lane that has applied a value, so that whatever the lane did before, with the value
        // before that, has happened when the caller goes on.
        let mut applied: Vec<_> = followers
            .iter()
            .map(|(lane, applied)| (*lane, applied.load(Ordering::Acquire)))
            .collect();
        followers.retain(|(_, applied)| applied.load(Ordering::Relaxed) != GONE);
        drop(followers);
        if applied.iter().all(|(_, applied)| *applied >= current) {
            let past = std::mem::take(&mut lock(&self.current).past);
            drop(past);
        }
        applied.retain(|(_, applied)| *applied < generation);
        applied.sort_unstable();
        let mut lanes: Vec<_> = applied.into_iter().map(|(lane, _)| lane).collect();
        lanes.dedup();
        lanes
    }

    /// The part of a lane, and the value in force, with which the lane begins.
    pub fn follow(self: &Arc<Succession<T>>, lane: LaneId) -> (Follower<T>, Arc<T>) {
        let mut followers = lock(&self.followers);
        let (generation, value) = self.current();
        let applied = Arc::new(AtomicU64::new(generation));
        followers.push((lane, applied.clone()));
        drop(followers);
        let succession = self.clone();
        (Follower { succession, generation, settled: generation, applied }, value)
    }
}

impl<T> Follower<T> {
    /// Whether there is something to do: the value in use is not in force any more, or not all of the lane's work has been adapted
    /// to it ([`Follower::settle`]). One load.
    ///
    /// A lane that gets work from another one asks behind that: if the other one has applied a later value, this one sees so.
    #[inline(always)]
    pub fn is_behind(&self) -> bool {
        // Relaxed: see `Succession::generation`. Where another lane has seen a number before it handed work over, this load comes
        // behind that one's, and sees the number or a later one.
        self.succession.generation.load(Ordering::Relaxed) != self.settled
    }

    /// The number of the value in use.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The value in force, if it is another than the one in use. The lane uses it from now on, adapts its work to it, and then calls
    /// [`Follower::confirm`].
    #[cold]
    pub fn take_next(&mut self) -> Option<Arc<T>> {
        let (generation, value) = self.succession.current();
        if generation == self.generation {
            return None;
        }
        (self.generation, self.settled) = (generation, GONE);
        Some(value)
    }

    /// The lane uses no value before the one that it has taken last, for anything.
    pub fn confirm(&self) {
        // Release: pairs with the Acquire in `Succession::pending`.
        self.applied.store(self.generation, Ordering::Release);
    }

    /// All of the lane's work has been adapted to the value in use, so that nothing is to do until there is another one.
    pub fn settle(&mut self) {
        self.settled = self.generation;
    }
}

impl<T> Drop for Follower<T> {
    fn drop(&mut self) {
        // Release: as in `confirm`.
        self.applied.store(GONE, Ordering::Release);
    }
}

impl<T> fmt::Debug for Succession<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Succession").field("generation", &self.generation).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Follower<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("generation", &self.generation).finish_non_exhaustive()
    }
}

/// The lock, also if a thread panicked while it had it: no value is left half changed.
fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn apply(follower: &mut Follower<u32>) -> Option<u32> {
        let next = follower.take_next();
        follower.confirm();
        follower.settle();
        next.map(|value| *value)
    }

    #[test]
    fn a_lane_sees_that_there_is_another_value_and_reports_that_it_uses_it() {
        let succession = Arc::new(Succession::new(Arc::new(1)));
        let (mut first, value) = succession.follow(LaneId(3));
        let (mut second, _) = succession.follow(LaneId(1));
        assert_eq!((*value, first.is_behind()), (1, false));
        assert_eq!((succession.replace(Arc::new(2)), succession.replace(Arc::new(3))), (1, 2));
        assert!(first.is_behind() && second.is_behind());
        assert_eq!(succession.pending(2), [LaneId(1), LaneId(3)]);
        assert_eq!(apply(&mut first), Some(3), "the one before is left out");
        assert_eq!((first.is_behind(), first.generation()), (false, 2));
        assert_eq!(succession.pending(1), [LaneId(1)]);
        assert_eq!((apply(&mut second), apply(&mut second)), (Some(3), None));
        assert_eq!(succession.pending(2), []);
    }

    #[test]
    fn a_lane_that_has_taken_the_next_value_looks_again_until_its_work_is_adapted() {
        let succession = Arc::new(Succession::new(Arc::new(1)));
        let (mut lane, _) = succession.follow(LaneId(0));
        succession.replace(Arc::new(2));
        assert_eq!(lane.take_next().as_deref(), Some(&2));
        lane.confirm();
        assert!(lane.is_behind());
        assert_eq!((lane.take_next(), succession.pending(1)), (None, Vec::new()));
        lane.settle();
        assert!(!lane.is_behind());
    }

    #[test]
    fn a_lane_that_is_gone_is_not_waited_for_and_one_that_comes_later_begins_with_the_value_in_force()
     {
        let succession = Arc::new(Succession::new(Arc::new(1)));
        let gone = succession.follow(LaneId(0));
        let generation = succession.replace(Arc::new(2));
        let (later, value) = succession.follow(LaneId(1));
        assert_eq!((*value, later.is_behind()), (2, false));
        assert_eq!(succession.pending(generation), [LaneId(0)]);
        drop(gone);
        assert_eq!(succession.pending(generation), []);
    }

    #[test]
    fn values_that_no_lane_uses_are_dropped_by_the_thread_that_waits_for_the_lanes() {
        let succession = Arc::new(Succession::new(Arc::new(1)));
        let (mut lane, value) = succession.follow(LaneId(0));
        let of_value = Arc::downgrade(&value);
        drop(value);
        let generation = succession.replace(Arc::new(2));
        succession.pending(generation);
        assert!(of_value.upgrade().is_some(), "the lane may use it");
        assert_eq!(apply(&mut lane), Some(2));
        assert!(of_value.upgrade().is_some(), "no lane drops it");
        succession.pending(generation);
        assert!(of_value.upgrade().is_none());
    }
}

#[cfg(all(test, loom))]
#[expect(unsafe_code, reason = "cells that show which thread accesses them")]
mod models {
    use loom::cell::UnsafeCell;
    use loom::thread;

    use super::super::take_cell::TakeCell;
    use super::*;

    /// Whatever lanes did with the value before has happened once no lane is pending: the cells of that value are not accessed by
    /// two threads at once. Fails when the Release store of `confirm` is relaxed, and when the Acquire load of `pending` is.
    #[test]
    fn no_lane_uses_a_value_before_once_none_is_pending() {
        loom::model(|| {
            let before = Arc::new([UnsafeCell::new(0), UnsafeCell::new(0)]);
            let succession = Arc::new(Succession::new(before.clone()));
            let lanes = [0, 1].map(|number| {
                let (mut follower, value) = succession.follow(LaneId(number as u16));
                thread::spawn(move || {
                    // SAFETY: the cell is this lane's, until the lane confirms that it uses another value.
                    value[number].with_mut(|place| unsafe { *place += 1 });
                    if follower.is_behind() {
                        follower.take_next();
                        follower.confirm();
                    }
                    // It does not go before all is over.
                    follower
                })
            });
            let next = Arc::new([UnsafeCell::new(0), UnsafeCell::new(0)]);
            let generation = succession.replace(next);
            let pending = succession.pending(generation);
            for number in [0, 1] {
                if !pending.contains(&LaneId(number as u16)) {
                    // SAFETY: the lane has confirmed that it uses another value.
                    let count = before[number].with(|place| unsafe { *place });
                    assert_eq!(count, 1);
                }
            }
            let followers = lanes.map(|lane| lane.join().unwrap());
            drop(followers);
        });
    }

    /// A lane that gets work which another lane has adapted to a later value sees that there is one. Fails when the lane asks before
    /// it takes the work.
    #[test]
    fn work_of_a_later_generation_is_never_done_by_an_earlier_value() {
        loom::model(|| {
            let succession = Arc::new(Succession::new(Arc::new(0)));
            let work = Arc::new(TakeCell::new(0));
            let lane = |number| {
                let ((mut follower, mut value), work) =
                    (succession.follow(LaneId(number)), work.clone());
                move || {
                    let Some(mut adapted_to) = work.take() else { return };
                    if follower.is_behind() {
                        value = follower.take_next().unwrap_or(value);
                        follower.confirm();
                        follower.settle();
                    }
                    assert!(adapted_to <= follower.generation(), "the work is ahead of the lane");
                    assert_eq!(*value, follower.generation(), "the value is that of the number");
                    adapted_to = follower.generation();
                    work.put_back(adapted_to).expect("it was taken");
                }
            };
            let (first, second) = (lane(0), lane(1));
            let first = thread::spawn(first);
            let second = thread::spawn(second);
            succession.replace(Arc::new(1));
            first.join().unwrap();
            second.join().unwrap();
        });
    }
}
