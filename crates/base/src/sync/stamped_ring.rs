//! A bounded ring from one producer to one consumer that come by for an item at a time, and may wait for each other.
//!
//! Each slot is stamped with the number of the item in it. A consumer looks at the slot in which the next item will be, and with
//! the stamp that tells of the item comes the item itself: one cache line goes from core to core where a ring with two indices
//! ([`spsc`](super::spsc)) has two, one after the other (FastForward: Giacomoni, Moseley and Vachharajani, PPoPP 2008, have an empty
//! value in place of the stamp). Slots lie on lines of their own. Where items come in bursts, the index is shared by all of a
//! burst, and slots without stamps are smaller: there the other ring is better.
//!
//! The producer reads how far the consumer has come once per lap.
#![allow(unsafe_code)]

use std::fmt;
use std::mem::MaybeUninit;

use super::atomic::{AtomicUsize, Ordering};
use super::{Arc, UnsafeCell};

struct Ring<T> {
    slots: Box<[StampedSlot<T>]>,
    mask: usize,
    /// Items taken. Written by the consumer (Release, after it moved items out), read by the producer (Acquire, before it
    /// reuses their slots).
    taken: Taken,
}

/// A line that the producer reads once per lap.
#[repr(align(128))]
struct Taken(AtomicUsize);

/// Two lines, which processors fetch together.
#[repr(align(128))]
struct StampedSlot<T> {
    /// How many items there have been, the one in this slot included; 0 before the first. Written by the producer (Release,
    /// after it moved the item in), read by the consumer (Acquire, before it moves it out).
    stamp: AtomicUsize,
    item: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: item n is written by the producer when `taken` has told it that the one a lap before was moved out, and is moved out
// by the consumer when the slot's stamp has told it that it is there. The Release and Acquire edges on both order each change of
// hands. Items cross threads, so `T: Send` is all that is needed.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above; `&Ring` gives access to items only through the two handles, of which there is one each.
unsafe impl<T: Send> Sync for Ring<T> {}

/// The writing end of a ring.
pub struct Producer<T> {
    ring: Arc<Ring<T>>,
    /// Items given.
    given: usize,
    /// Items taken, at least.
    taken: usize,
}

/// The reading end of a ring.
pub struct Consumer<T> {
    ring: Arc<Ring<T>>,
    /// Items taken.
    taken: usize,
}

/// Makes a ring for at least `capacity` items, rounded up to a power of two.
pub fn ring<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    let capacity = capacity.next_power_of_two();
    let slot = |_| StampedSlot {
        stamp: AtomicUsize::new(0),
        item: UnsafeCell::new(MaybeUninit::uninit()),
    };
    let ring = Arc::new(Ring {
        slots: (0..capacity).map(slot).collect(),
        mask: capacity - 1,
        taken: Taken(AtomicUsize::new(0)),
    });
    (Producer { ring: ring.clone(), given: 0, taken: 0 }, Consumer { ring, taken: 0 })
}

impl<T> Ring<T> {
    /// The slot of the item before which there were `before`.
    #[inline]
    fn slot(&self, before: usize) -> &StampedSlot<T> {
        &self.slots[before & self.mask]
    }
}

impl<T> Producer<T> {
    /// Appends `item`, or gives it back when the ring is full.
    ///
    /// # Errors
    /// The item.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), T> {
        if self.given.wrapping_sub(self.taken) == self.ring.slots.len() {
            // Acquire: pairs with the Release store in `Consumer::pop`; the item in the slot that is reused was moved out before.
            self.taken = self.ring.taken.0.load(Ordering::Acquire);
            if self.given.wrapping_sub(self.taken) == self.ring.slots.len() {
                return Err(item);
            }
        }
        let slot = self.ring.slot(self.given);
        slot.item.with_mut(|place| {
            // SAFETY: fewer items than there are slots are in the ring, so what this slot held was moved out.
            unsafe { (*place).write(item) };
        });
        self.given = self.given.wrapping_add(1);
        // Release: pairs with the Acquire load in `Consumer::is_empty`; the item is in its slot.
        slot.stamp.store(self.given, Ordering::Release);
        Ok(())
    }
}

impl<T> Consumer<T> {
    /// Whether nothing is ready.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Acquire: pairs with the Release store in `Producer::push`; the item is complete.
        self.ring.slot(self.taken).stamp.load(Ordering::Acquire) != self.taken.wrapping_add(1)
    }

    /// Takes the oldest item, if there is one.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let item = self.ring.slot(self.taken).item.with(|place| {
            // SAFETY: its stamp says that the item is in the slot, and `taken` moves on, so it is moved out once.
            unsafe { (*place).assume_init_read() }
        });
        self.taken = self.taken.wrapping_add(1);
        // Release: pairs with the Acquire load in `Producer::push`; the item is out of its slot.
        self.ring.taken.0.store(self.taken, Ordering::Release);
        Some(item)
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // Relaxed: both handles are gone, and the last `Arc` decrement ordered their accesses.
        let mut taken = self.taken.0.load(Ordering::Relaxed);
        while self.slot(taken).stamp.load(Ordering::Relaxed) == taken.wrapping_add(1) {
            self.slot(taken).item.with_mut(|place| {
                // SAFETY: its stamp says that the item was written, and it was not taken.
                unsafe { (*place).assume_init_drop() }
            });
            taken = taken.wrapping_add(1);
        }
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("given", &self.given).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("taken", &self.taken).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    //! Timed: threads.

    use std::collections::VecDeque;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn behaves_as_a_bounded_queue() {
        let (mut producer, mut consumer) = ring(4);
        let mut oracle = VecDeque::new();
        for step in 0..1_000_u32 {
            if (step * 7919) % 5 < 3 {
                let pushed = producer.push(step).is_ok();
                assert_eq!(pushed, oracle.len() < 4);
                oracle.extend(pushed.then_some(step));
            } else {
                assert_eq!(consumer.pop(), oracle.pop_front());
            }
            assert_eq!(consumer.is_empty(), oracle.is_empty());
        }
    }

    #[test]
    fn items_left_in_the_ring_are_dropped_once() {
        let item = Arc::new(());
        // So many that the ring is full, in its second lap, or empty.
        for (given, taken) in [(4, 0), (7, 3), (3, 3), (0, 0)] {
            let (mut producer, mut consumer) = ring(4);
            for number in 0..given {
                producer.push(item.clone()).unwrap();
                if number < taken {
                    consumer.pop().unwrap();
                }
            }
            assert_eq!(Arc::strong_count(&item), 1 + given - taken);
            drop((producer, consumer));
            assert_eq!(Arc::strong_count(&item), 1);
        }
    }

    #[test]
    fn order_survives_two_threads() {
        let total = if cfg!(miri) { 500 } else { 200_000 };
        let (mut producer, mut consumer) = ring(64);
        let writer = std::thread::spawn(move || {
            for item in 0..total {
                while producer.push(item).is_err() {
                    std::thread::yield_now();
                }
            }
        });
        for expected in 0..total {
            let item = loop {
                match consumer.pop() {
                    Some(item) => break item,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(item, expected);
        }
        writer.join().unwrap();
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::thread;

    use super::*;

    /// Every interleaving of a producer that laps a ring of two slots and its consumer: items arrive complete, once and in order.
    /// Fails when any of the four orderings above is weakened.
    #[test]
    fn items_cross_once_and_in_order() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring(2);
            let writer = thread::spawn(move || {
                let mut next = 0_u32;
                while next < 3 {
                    match producer.push(Box::new(next)) {
                        Ok(()) => next += 1,
                        Err(_) => thread::yield_now(),
                    }
                }
            });
            let mut expected = 0;
            while expected < 3 {
                match consumer.pop() {
                    Some(item) => {
                        assert_eq!(*item, expected);
                        expected += 1;
                    }
                    None => thread::yield_now(),
                }
            }
            writer.join().unwrap();
        });
    }

    /// The consumer leaves early: what it did not take is dropped once with the ring.
    #[test]
    fn a_consumer_may_leave_items_behind() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring(2);
            let writer = thread::spawn(move || {
                producer.push(Box::new(1)).is_ok() && producer.push(Box::new(2)).is_ok()
            });
            let _ = consumer.pop();
            drop(consumer);
            assert!(writer.join().unwrap());
        });
    }
}
