//! A bounded queue that several threads use, behind a lock that is held for the moves of items alone. Its length is published, so
//! that a look takes no lock.
//!
//! Mostly one thread takes from it and one adds to it; now and then others take from its head. A thread that finds the lock taken
//! spins, and gives its core away when that lasts: the holder may be descheduled.

use std::collections::VecDeque;

use super::atomic::{AtomicU32, Ordering};
use super::try_lock::{TryGuard, TryLock};
use super::{hint, thread};

/// Tries before a thread that waits for the lock gives its core away.
#[cfg(not(any(loom, shuttle)))]
const SPINS: u32 = 128;
#[cfg(any(loom, shuttle))]
const SPINS: u32 = 0;

/// A first-in first-out queue of a fixed capacity with a lock. Nothing allocates after [`LockedQueue::new`].
#[derive(Debug)]
pub struct LockedQueue<T> {
    items: TryLock<VecDeque<T>>,
    /// How many those are. Written under the lock, read without it, and then only to find out whether it is worth taking.
    len: AtomicU32,
    capacity: usize,
}

impl<T> LockedQueue<T> {
    /// A queue for up to `capacity` items.
    pub fn new(capacity: usize) -> LockedQueue<T> {
        let items = TryLock::new(VecDeque::with_capacity(capacity));
        LockedQueue { items, len: AtomicU32::new(0), capacity }
    }

    /// How many items there are, or were a moment ago.
    #[inline]
    pub fn len(&self) -> u32 {
        // Relaxed: whoever takes an item does so under the lock. A thread that must not miss one before it sleeps has a fence
        // between announcing that and this, as the thread that pushes has between the push and its look for sleepers.
        self.len.load(Ordering::Relaxed)
    }

    /// Whether there is nothing, or was nothing a moment ago.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends an item.
    ///
    /// # Errors
    /// The item, when the queue is full.
    pub fn push(&self, item: T) -> Result<(), T> {
        let mut items = self.lock();
        if items.len() == self.capacity {
            return Err(item);
        }
        items.push_back(item);
        self.publish(&items);
        Ok(())
    }

    /// Takes the oldest item. Takes no lock when the queue looks empty.
    pub fn pop(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let mut items = self.lock();
        let item = items.pop_front();
        self.publish(&items);
        item
    }

    /// Moves up to `most` of the oldest items to the end of `to`, in their order, and returns how many.
    pub fn take(&self, most: usize, to: &mut Vec<T>) -> usize {
        if self.is_empty() {
            return 0;
        }
        let mut items = self.lock();
        let count = most.min(items.len());
        to.extend(items.drain(..count));
        self.publish(&items);
        count
    }

    /// Appends all of `from`, in their order.
    ///
    /// # Panics
    /// When there is no room: for a caller that knows that there is.
    pub fn append(&self, from: &mut Vec<T>) {
        let mut items = self.lock();
        assert!(
            items.len() + from.len() <= self.capacity,
            "a queue has room for what is moved there"
        );
        items.extend(from.drain(..));
        self.publish(&items);
    }

    fn publish(&self, items: &VecDeque<T>) {
        // No queue is that long.
        self.len.store(items.len() as u32, Ordering::Relaxed);
    }

    fn lock(&self) -> TryGuard<'_, VecDeque<T>> {
        loop {
            for _ in 0..=SPINS {
                if let Some(items) = self.items.try_lock() {
                    return items;
                }
                hint::spin_loop();
            }
            thread::yield_now();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    //! Timed: threads.

    use super::*;
    use std::sync::Arc;

    #[test]
    fn items_leave_in_the_order_in_which_they_came_and_a_full_queue_refuses() {
        let queue = LockedQueue::new(3);
        (1..=3).for_each(|item| queue.push(item).unwrap());
        assert_eq!((queue.push(4), queue.len()), (Err(4), 3));
        let mut taken = Vec::new();
        assert_eq!((queue.take(2, &mut taken), queue.len()), (2, 1));
        assert_eq!(taken, [1, 2]);
        queue.append(&mut taken);
        assert_eq!(taken, []);
        assert_eq!([(); 4].map(|()| queue.pop()), [Some(3), Some(1), Some(2), None]);
        assert_eq!((queue.take(1, &mut taken), queue.is_empty()), (0, true));
    }

    #[test]
    fn every_item_is_taken_once_by_one_of_three_threads() {
        const ITEMS: u64 = if cfg!(miri) { 300 } else { 60_000 };
        let queue = Arc::new(LockedQueue::new(64));
        let takers: Vec<_> = (0..3)
            .map(|taker| {
                let queue = queue.clone();
                std::thread::spawn(move || {
                    let (mut sum, mut count, mut taken) = (0, 0, Vec::new());
                    let mut last = None;
                    loop {
                        match taker {
                            0 => taken.extend(queue.pop()),
                            _ => {
                                queue.take(4, &mut taken);
                            }
                        }
                        for item in taken.drain(..) {
                            if item == u64::MAX {
                                return (sum, count);
                            }
                            assert!(last.is_none_or(|last| last < item), "older items come first");
                            (sum, count, last) = (sum + item, count + 1, Some(item));
                        }
                        std::thread::yield_now();
                    }
                })
            })
            .collect();
        let push = |item| {
            while queue.push(item).is_err() {
                std::thread::yield_now();
            }
        };
        (0..ITEMS).for_each(push);
        while !queue.is_empty() {
            std::thread::yield_now();
        }
        // One end at a time, so that nobody takes two.
        for _ in 0..3 {
            push(u64::MAX);
            while !queue.is_empty() {
                std::thread::yield_now();
            }
        }
        let sums: Vec<_> = takers.into_iter().map(|taker| taker.join().unwrap()).collect();
        assert_eq!(sums.iter().map(|(_, count)| count).sum::<u64>(), ITEMS);
        assert_eq!(sums.iter().map(|(sum, _)| sum).sum::<u64>(), ITEMS * (ITEMS - 1) / 2);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;

    /// A thread adds items and takes one, another one takes two: each item is taken once, complete, and by nobody out of order.
    /// Fails when the lock's compare-and-swap or its store is relaxed.
    #[test]
    fn owner_and_thief_take_each_item_once() {
        loom::model(|| {
            let queue = Arc::new(LockedQueue::new(3));
            queue.push(Box::new(1)).unwrap();
            let thief = {
                let queue = queue.clone();
                loom::thread::spawn(move || {
                    let mut loot = Vec::new();
                    queue.take(2, &mut loot);
                    loot
                })
            };
            queue.push(Box::new(2)).unwrap();
            let mut all: Vec<_> = queue.pop().into_iter().collect();
            let loot = thief.join().unwrap();
            assert!(loot.is_sorted(), "{loot:?}");
            all.extend(loot);
            while let Some(item) = queue.pop() {
                all.push(item);
            }
            all.sort();
            assert_eq!(all, [1, 2].map(Box::new));
        });
    }
}
