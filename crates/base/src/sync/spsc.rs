//! A bounded ring from one producer to one consumer. The handles are the proof of "one": neither can
//! be cloned, and each operation takes `&mut self`.
//!
//! Both indices grow forever and are reduced by the mask, so full and empty differ. Each side keeps a
//! stale copy of the other's index and reads the real one only when the copy shows full or empty, so
//! that in the steady state the two sides touch each other's cache line once per lap, not per item.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use super::atomic::{AtomicUsize, Ordering};
use super::{Arc, UnsafeCell};

/// Keeps what it holds on cache lines of its own (two: the adjacent-line prefetcher pairs them).
#[derive(Debug)]
#[repr(align(128))]
struct Padded<T>(T);

#[derive(Debug)]
struct SpscRing<T> {
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    mask: usize,
    /// Next slot to read. Written by the consumer (Release, after it moved items out), read by the
    /// producer (Acquire, before it reuses their slots).
    head: Padded<AtomicUsize>,
    /// Next slot to write. Written by the producer (Release, after it moved items in), read by the
    /// consumer (Acquire, before it reads them).
    tail: Padded<AtomicUsize>,
}

// SAFETY: a slot is accessed by the producer while its index lies in [tail, head + capacity) and by
// the consumer while it lies in [head, tail); the Release/Acquire edges on `tail` and `head` order
// each change of hands. Items cross threads, so `T: Send` is all that is needed.
unsafe impl<T: Send> Send for SpscRing<T> {}
// SAFETY: as above; `&Ring` gives access to slots only through the two unique handles.
unsafe impl<T: Send> Sync for SpscRing<T> {}

/// The writing end of a ring.
#[derive(Debug)]
pub struct Producer<T> {
    ring: Arc<SpscRing<T>>,
    tail: usize,
    head_seen: usize,
}

/// The reading end of a ring.
#[derive(Debug)]
pub struct Consumer<T> {
    ring: Arc<SpscRing<T>>,
    head: usize,
    tail_seen: usize,
}

/// Makes a ring for at least `capacity` items, rounded up to a power of two.
pub fn ring<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    let capacity = capacity.next_power_of_two();
    let ring = Arc::new(SpscRing {
        slots: (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
        mask: capacity - 1,
        head: Padded(AtomicUsize::new(0)),
        tail: Padded(AtomicUsize::new(0)),
    });
    (
        Producer { ring: ring.clone(), tail: 0, head_seen: 0 },
        Consumer { ring, head: 0, tail_seen: 0 },
    )
}

impl<T> SpscRing<T> {
    fn capacity(&self) -> usize {
        self.mask + 1
    }
}

impl<T> Producer<T> {
    /// Free slots, at least; the consumer may have freed more since.
    pub fn room(&mut self) -> usize {
        if self.tail.wrapping_sub(self.head_seen) == self.ring.capacity() {
            // Acquire: pairs with the consumer's Release store of `head`; its reads of the slots we
            // are about to reuse happened before.
            self.head_seen = self.ring.head.0.load(Ordering::Acquire);
        }
        self.ring.capacity() - self.tail.wrapping_sub(self.head_seen)
    }

    /// Appends `item`, or gives it back when the ring is full.
    pub fn push(&mut self, item: T) -> Result<(), T> {
        if self.room() == 0 {
            return Err(item);
        }
        self.write(item);
        self.publish();
        Ok(())
    }

    /// Appends items from `items` until it ends or the ring is full, and publishes them at once.
    /// An item that does not fit is not taken from the iterator. Returns how many went in.
    pub fn push_all(&mut self, items: &mut impl Iterator<Item = T>) -> usize {
        let before = self.tail;
        let mut room = self.room();
        while room > 0 {
            let Some(item) = items.next() else { break };
            self.write(item);
            room -= 1;
            if room == 0 {
                room = self.room();
            }
        }
        if self.tail != before {
            self.publish();
        }
        self.tail.wrapping_sub(before)
    }

    /// Items written and not yet taken, at most.
    pub fn len(&self) -> usize {
        self.tail.wrapping_sub(self.ring.head.0.load(Ordering::Acquire))
    }

    /// Whether the consumer has taken everything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn write(&mut self, item: T) {
        self.ring.slots[self.tail & self.ring.mask].with_mut(|slot| {
            // SAFETY: `room() > 0`, so this slot is the producer's; what it held was moved out.
            unsafe { (*slot).write(item) };
        });
        self.tail = self.tail.wrapping_add(1);
    }

    #[inline]
    fn publish(&mut self) {
        // Release: pairs with the consumer's Acquire load of `tail`; the slots are written before.
        self.ring.tail.0.store(self.tail, Ordering::Release);
    }
}

impl<T> Consumer<T> {
    /// Takes the oldest item, if there is one.
    pub fn pop(&mut self) -> Option<T> {
        if self.ready() == 0 {
            return None;
        }
        let item = self.read();
        self.release();
        Some(item)
    }

    /// Takes up to `limit` items in order and gives their slots back at once. Returns how many.
    pub fn pop_each(&mut self, limit: usize, mut f: impl FnMut(T)) -> usize {
        let count = self.ready().min(limit);
        for _ in 0..count {
            let item = self.read();
            f(item);
        }
        if count > 0 {
            self.release();
        }
        count
    }

    /// Items ready to be taken; looks at the producer's index.
    pub fn len(&self) -> usize {
        self.ring.tail.0.load(Ordering::Acquire).wrapping_sub(self.head)
    }

    /// Whether nothing is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn ready(&mut self) -> usize {
        if self.tail_seen == self.head {
            // Acquire: pairs with the producer's Release store of `tail`; the items are complete.
            self.tail_seen = self.ring.tail.0.load(Ordering::Acquire);
        }
        self.tail_seen.wrapping_sub(self.head)
    }

    #[inline]
    fn read(&mut self) -> T {
        let item = self.ring.slots[self.head & self.ring.mask].with(|slot| {
            // SAFETY: `ready() > 0`, so the producer wrote this slot and published it; moving the
            // item out happens once because `head` moves on.
            unsafe { (*slot).assume_init_read() }
        });
        self.head = self.head.wrapping_add(1);
        item
    }

    #[inline]
    fn release(&mut self) {
        // Release: pairs with the producer's Acquire load of `head`; the items are out of the slots.
        self.ring.head.0.store(self.head, Ordering::Release);
    }
}

impl<T> Drop for Consumer<T> {
    /// The closure of [`Consumer::pop_each`] may have panicked: items that it was given are not the ring's to drop.
    fn drop(&mut self) {
        self.release();
    }
}

impl<T> Drop for SpscRing<T> {
    fn drop(&mut self) {
        // Relaxed: both handles are gone, and the last `Arc` decrement ordered their accesses.
        let mut head = self.head.0.load(Ordering::Relaxed);
        let tail = self.tail.0.load(Ordering::Relaxed);
        while head != tail {
            self.slots[head & self.mask].with_mut(|slot| {
                // SAFETY: items in [head, tail) were written and never moved out.
                unsafe { (*slot).assume_init_drop() }
            });
            head = head.wrapping_add(1);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    //! Timed: threads.

    use super::*;
    use std::collections::VecDeque;
    use std::sync::Arc;

    #[test]
    fn behaves_as_a_bounded_queue() {
        let (mut producer, mut consumer) = ring(4);
        let mut oracle = VecDeque::new();
        for step in 0..1_000_u32 {
            if (step * 7919) % 5 < 3 {
                let pushed = producer.push(step).is_ok();
                assert_eq!(pushed, oracle.len() < 4);
                if pushed {
                    oracle.push_back(step);
                }
            } else {
                assert_eq!(consumer.pop(), oracle.pop_front());
            }
            assert_eq!(consumer.len(), oracle.len());
        }
    }

    #[test]
    fn items_left_in_the_ring_are_dropped_once() {
        let item = Arc::new(());
        let (mut producer, mut consumer) = ring(8);
        producer.push_all(&mut std::iter::repeat_n(item.clone(), 5));
        consumer.pop_each(2, drop);
        assert_eq!(Arc::strong_count(&item), 4);
        drop((producer, consumer));
        assert_eq!(Arc::strong_count(&item), 1);
    }

    #[test]
    fn an_item_that_does_not_fit_stays_with_the_iterator() {
        let (mut producer, _consumer) = ring(2);
        let mut items = 0..5;
        assert_eq!(producer.push_all(&mut items), 2);
        assert_eq!(items.next(), Some(2));
    }

    #[test]
    fn order_survives_two_threads() {
        let total = if cfg!(miri) { 500 } else { 200_000 };
        let (mut producer, mut consumer) = ring(64);
        let writer = std::thread::spawn(move || {
            let mut items = 0..total;
            while !items.is_empty() {
                if producer.push_all(&mut items) == 0 {
                    std::thread::yield_now();
                }
            }
        });
        let mut expected = 0;
        while expected < total {
            let taken = consumer.pop_each(32, |item| {
                assert_eq!(item, expected);
                expected += 1;
            });
            if taken == 0 {
                std::thread::yield_now();
            }
        }
        writer.join().unwrap();
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::thread;

    /// Every interleaving of a producer that laps a two-slot ring and its consumer: items arrive
    /// complete, once and in order. Fails when any of the four orderings above is weakened.
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

    /// The consumer leaves early: what it did not take is dropped exactly once with the ring.
    #[test]
    fn a_consumer_may_leave_items_behind() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring(2);
            let writer = thread::spawn(move || {
                producer.push_all(&mut [Box::new(1), Box::new(2)].into_iter())
            });
            let _ = consumer.pop();
            drop(consumer);
            assert_eq!(writer.join().unwrap(), 2);
        });
    }
}
