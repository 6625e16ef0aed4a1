//! A bounded ring from one producer to one consumer whose items cross one at a time: each slot says itself whether it is full, so an
//! item crosses with the cache lines that it fills. In [`spsc`](super::spsc) an index on a line of its own tells of items, which
//! costs less where several come at once, and a transfer of a line more where one comes alone.
//!
//! The handles are the proof of "one": neither can be cloned, and each operation takes `&mut self`.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use super::atomic::{AtomicBool, Ordering};
use super::prefetch::prefetch_for_write;
use super::{Arc, UnsafeCell};

/// Keeps its item on cache lines of its own (two: the adjacent-line prefetcher pairs them).
#[derive(Debug)]
#[repr(align(128))]
struct Slot<T> {
    /// Whether the item is the consumer's. Set by the producer (Release, after it moved the item in) and read by the consumer (Acquire,
    /// before it moves it out); cleared by the consumer (Release, after that) and read by the producer (Acquire, before the next).
    is_full: AtomicBool,
    item: UnsafeCell<MaybeUninit<T>>,
}

#[derive(Debug)]
struct Ring<T> {
    slots: Box<[Slot<T>]>,
    mask: usize,
}

// SAFETY: an item is accessed by the consumer while its slot is full and by the producer while it is not; the Release/Acquire edges on
// `is_full` order each change of hands. Items cross threads, so `T: Send` is all that is needed.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above; `&Ring` gives access to items only through the two unique handles.
unsafe impl<T: Send> Sync for Ring<T> {}

/// The writing end of a ring.
#[derive(Debug)]
pub struct Producer<T> {
    ring: Arc<Ring<T>>,
    /// The next slot to fill.
    tail: usize,
}

/// The reading end of a ring.
#[derive(Debug)]
pub struct Consumer<T> {
    ring: Arc<Ring<T>>,
    /// The next slot to empty.
    head: usize,
}

/// Slots at least: the one that the producer asks for ahead is not the one that the consumer empties.
const LEAST: usize = if cfg!(loom) { 1 } else { 8 };

/// Makes a ring for at least `capacity` items, rounded up to a power of two.
pub fn slot_ring<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    let capacity = capacity.max(LEAST).next_power_of_two();
    let slot =
        |_| Slot { is_full: AtomicBool::new(false), item: UnsafeCell::new(MaybeUninit::uninit()) };
    let ring = Arc::new(Ring { slots: (0..capacity).map(slot).collect(), mask: capacity - 1 });
    (Producer { ring: ring.clone(), tail: 0 }, Consumer { ring, head: 0 })
}

impl<T> Producer<T> {
    /// Appends `item`, or gives it back when the ring is full.
    pub fn push(&mut self, item: T) -> Result<(), T> {
        let Ring { slots, mask } = &*self.ring;
        let slot = &slots[self.tail & mask];
        // Acquire: pairs with the consumer's Release store; it has moved the slot's last item out.
        if slot.is_full.load(Ordering::Acquire) {
            return Err(item);
        }
        slot.item.with_mut(|place| {
            // SAFETY: the slot is not full, so it is the producer's; what it held was moved out.
            unsafe { (*place).write(item) };
        });
        // Release: pairs with the consumer's Acquire loads; the item is complete.
        slot.is_full.store(true, Ordering::Release);
        self.tail = self.tail.wrapping_add(1);
        // The consumer had it last.
        prefetch_for_write(&slots[self.tail & mask]);
        Ok(())
    }
}

impl<T> Consumer<T> {
    /// Takes the oldest item, if there is one.
    pub fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let slot = &self.ring.slots[self.head & self.ring.mask];
        let item = slot.item.with(|place| {
            // SAFETY: the slot is full, so the producer has written it; it is moved out once, since it is empty afterwards.
            unsafe { (*place).assume_init_read() }
        });
        // Release: pairs with the producer's Acquire load; the item is out of the slot.
        slot.is_full.store(false, Ordering::Release);
        self.head = self.head.wrapping_add(1);
        Some(item)
    }

    /// Whether nothing is ready.
    pub fn is_empty(&self) -> bool {
        let slot = &self.ring.slots[self.head & self.ring.mask];
        // Acquire: pairs with the producer's Release store; the item is complete.
        !slot.is_full.load(Ordering::Acquire)
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        for slot in &self.slots {
            // Relaxed: both handles are gone, and the last `Arc` decrement ordered their accesses.
            if slot.is_full.load(Ordering::Relaxed) {
                slot.item.with_mut(|place| {
                    // SAFETY: the slot is full: its item was written and not moved out.
                    unsafe { (*place).assume_init_drop() }
                });
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    //! Timed: threads.

    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_bounded_queue(steps in prop::collection::vec(any::<bool>(), 1..200)) {
            let (mut producer, mut consumer) = slot_ring(8);
            let mut oracle = VecDeque::new();
            for (number, pushes) in steps.into_iter().enumerate() {
                if pushes {
                    let pushed = producer.push(number).is_ok();
                    prop_assert_eq!(pushed, oracle.len() < 8);
                    oracle.extend(pushed.then_some(number));
                } else {
                    prop_assert_eq!(consumer.pop(), oracle.pop_front());
                }
                prop_assert_eq!(consumer.is_empty(), oracle.is_empty());
            }
        }
    }

    #[test]
    fn items_left_in_the_ring_are_dropped_once() {
        let item = Arc::new(());
        let (mut producer, mut consumer) = slot_ring(8);
        (0..5).for_each(|_| producer.push(item.clone()).unwrap());
        consumer.pop();
        assert_eq!(Arc::strong_count(&item), 5);
        drop((producer, consumer));
        assert_eq!(Arc::strong_count(&item), 1);
    }

    #[test]
    fn threads_pass_items_in_order() {
        const ITEMS: u64 = 20_000;
        let (mut producer, mut consumer) = slot_ring(8);
        let writer = std::thread::spawn(move || {
            for number in 0..ITEMS {
                while producer.push(number).is_err() {
                    std::thread::yield_now();
                }
            }
        });
        for expected in 0..ITEMS {
            let item = std::iter::from_fn(|| {
                let item = consumer.pop();
                item.is_none().then(std::thread::yield_now);
                Some(item)
            });
            assert_eq!(item.flatten().next(), Some(expected));
        }
        writer.join().unwrap();
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::thread;

    /// Every interleaving of a producer that laps a two-slot ring and its consumer: items arrive complete, once and in order. Fails
    /// when any of the four orderings above is weakened.
    #[test]
    fn items_cross_once_and_in_order() {
        loom::model(|| {
            let (mut producer, mut consumer) = slot_ring(2);
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

    /// The consumer leaves early: what it did not take is dropped exactly once with the ring.
    #[test]
    fn a_consumer_may_leave_items_behind() {
        loom::model(|| {
            let (mut producer, mut consumer) = slot_ring(2);
            let writer =
                thread::spawn(move || [1, 2].map(|item| producer.push(Box::new(item)).is_ok()));
            let _ = consumer.pop();
            drop(consumer);
            assert_eq!(writer.join().unwrap(), [true; 2]);
        });
    }
}
