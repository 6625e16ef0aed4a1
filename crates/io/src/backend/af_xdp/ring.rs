//! The four kinds of ring that an AF_XDP socket shares with the kernel: single producer, single
//! consumer, one of them the kernel.
//!
//! Both positions grow forever and are reduced by the mask, so full and empty differ. The kernel's end
//! uses `smp_load_acquire` and `smp_store_release` (net/xdp/xsk_queue.h), so the edges are the same as
//! between two threads, and models play the kernel with the other handle of the same ring.
#![allow(unsafe_code)]

use rheostat_base::sync::atomic::{AtomicU32, Ordering};

#[cfg(not(any(loom, shuttle)))]
use crate::sys::ring_mapping::RingMapping;
#[cfg(not(any(loom, shuttle)))]
use crate::sys::xdp_socket::{CONTINUED, Descriptor};
#[cfg(not(any(loom, shuttle)))]
use rheostat_base::sync::Arc;

/// Where a ring lies: memory shared with the kernel, or in models memory of the process.
pub(super) trait RingMemory: Clone {
    /// What the ring carries. Every pattern of bits is a value.
    type Entry: Copy;

    /// How many entries there are: a power of two.
    fn size(&self) -> u32;
    /// How many entries were ever produced. Written by the producer (Release, after the entries), read
    /// by the consumer (Acquire, before it reads them).
    fn producer(&self) -> &AtomicU32;
    /// How many entries were ever consumed. Written by the consumer (Release, after it read the
    /// entries), read by the producer (Acquire, before it writes there again).
    fn consumer(&self) -> &AtomicU32;
    /// Flags of the kernel.
    fn flags(&self) -> u32;

    /// # Safety
    /// The entry at `position` was produced, and is not written again before this returns: the position lies
    /// in the consumer's part of the ring, or the caller keeps the producer from writing.
    unsafe fn read(&self, position: u32) -> Self::Entry;
    /// # Safety
    /// `position` lies in the producer's part of the ring: consumed, or never used.
    unsafe fn write(&self, position: u32, entry: Self::Entry);
}

/// A ring of buffers, each of which holds a packet or a part of one.
pub(super) trait PacketMemory: RingMemory {
    /// Whether the packet at `position` goes on in the next entry. May be asked while the producer writes there; what is
    /// returned then means nothing.
    fn continues(&self, position: u32) -> bool;
}

/// The writing end.
#[derive(Debug)]
pub(super) struct Producer<M> {
    memory: M,
    /// The next position to write; ahead of the shared word by what is not published yet.
    next: u32,
    consumer_seen: u32,
}

/// The reading end.
#[derive(Debug)]
pub(super) struct Consumer<M> {
    memory: M,
    /// The next position to read; ahead of the shared word by what is not released yet.
    next: u32,
    producer_seen: u32,
}

/// Reports how full a ring is, from any thread.
#[derive(Clone, Debug)]
pub(super) struct Gauge<M>(M);

impl<M: RingMemory> Producer<M> {
    /// Takes the writing end of a ring, of which there may be no other.
    pub(super) fn new(memory: M) -> Producer<M> {
        // Relaxed: the word is ours.
        let next = memory.producer().load(Ordering::Relaxed);
        let consumer_seen = memory.consumer().load(Ordering::Acquire);
        Producer { memory, next, consumer_seen }
    }

    /// Free entries, at least; the consumer may have freed more since.
    #[inline]
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        if self.free() < wanted {
            // Acquire: pairs with the consumer's Release store; its reads of the entries we are about
            // to reuse happened before.
            self.consumer_seen = self.memory.consumer().load(Ordering::Acquire);
        }
        self.free()
    }

    /// None when the other side's word is nonsense.
    fn free(&self) -> u32 {
        self.memory.size().saturating_sub(self.next.wrapping_sub(self.consumer_seen))
    }

    /// Writes an entry, which the consumer sees once it is published. There must be room.
    #[inline]
    pub(super) fn put(&mut self, entry: M::Entry) {
        assert!(self.free() > 0, "a writer has made sure of room");
        // SAFETY: there is room, so the consumer is done with the entry.
        unsafe { self.memory.write(self.next, entry) };
        self.next = self.next.wrapping_add(1);
    }

    /// Hands what was written to the consumer.
    #[inline]
    pub(super) fn publish(&mut self) {
        // Release: pairs with the consumer's Acquire load; the entries are written before.
        self.memory.producer().store(self.next, Ordering::Release);
    }

    /// A view of the ring.
    pub(super) fn gauge(&self) -> Gauge<M> {
        Gauge(self.memory.clone())
    }
}

impl<M: RingMemory> Consumer<M> {
    /// Takes the reading end of a ring, of which there may be no other.
    pub(super) fn new(memory: M) -> Consumer<M> {
        // Relaxed: the word is ours.
        let next = memory.consumer().load(Ordering::Relaxed);
        Consumer { memory, next, producer_seen: next }
    }

    /// Takes the next entry; its place is given back with [`Consumer::release`].
    #[inline]
    pub(super) fn take(&mut self) -> Option<M::Entry> {
        if self.next == self.producer_seen {
            // Acquire: pairs with the producer's Release store; the entries are complete.
            let produced = self.memory.producer().load(Ordering::Acquire);
            // More than the ring holds is nonsense: nothing is taken then.
            if produced.wrapping_sub(self.next) > self.memory.size() {
                return None;
            }
            self.producer_seen = produced;
            if self.next == produced {
                return None;
            }
        }
        // SAFETY: the position is before what the producer has published, and not released.
        let entry = unsafe { self.memory.read(self.next) };
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Gives the places of what was taken back to the producer.
    #[inline]
    pub(super) fn release(&mut self) {
        // Release: pairs with the producer's Acquire load; the entries are read before.
        self.memory.consumer().store(self.next, Ordering::Release);
    }

    /// A view of the ring.
    pub(super) fn gauge(&self) -> Gauge<M> {
        Gauge(self.memory.clone())
    }

    /// The ring, and the next position to read.
    pub(super) fn into_parts(self) -> (M, u32) {
        (self.memory, self.next)
    }
}

impl<M: RingMemory> Gauge<M> {
    /// Entries produced and not yet released.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        // Acquire: pairs with the consumer's Release; a thread that sees entries consumed sees what the consumer did before it
        // released them.
        let consumed = self.0.consumer().load(Ordering::Acquire);
        // Acquire: pairs with the producer's Release.
        let produced = self.0.producer().load(Ordering::Acquire);
        // Both move between the two loads, and only forward.
        produced.wrapping_sub(consumed).min(self.0.size())
    }

    /// The entries that were produced and not yet consumed, in order.
    ///
    /// # Safety
    /// The caller keeps the producer from writing meanwhile.
    pub(super) unsafe fn unconsumed(&self) -> impl Iterator<Item = M::Entry> + '_ {
        let waiting = self.waiting();
        let first = self.produced().wrapping_sub(waiting);
        // SAFETY: these entries were produced, and are not written by the caller's promise.
        (0..waiting).map(move |at| unsafe { self.0.read(first.wrapping_add(at)) })
    }

    /// The entries that were consumed, the last first: as many as the ring still holds. Where fewer were ever
    /// produced, zeroes follow.
    ///
    /// # Safety
    /// The caller keeps the producer from writing meanwhile.
    pub(super) unsafe fn consumed_last(&self) -> impl Iterator<Item = M::Entry> + '_ {
        let waiting = self.waiting();
        let next = self.produced().wrapping_sub(waiting);
        // SAFETY: the producer overwrites these when the ring comes round to them, which is not now. A ring
        // starts as zeroes, and every pattern of bits is a value.
        (1..=self.0.size() - waiting)
            .map(move |back| unsafe { self.0.read(next.wrapping_sub(back)) })
    }

    /// Entries produced since the start, modulo 2^32.
    pub(super) fn produced(&self) -> u32 {
        // Acquire: pairs with the producer's Release.
        self.0.producer().load(Ordering::Acquire)
    }

    /// Whether all entries have been consumed of which `produced` were produced.
    pub(super) fn has_consumed(&self, produced: u32) -> bool {
        // Acquire: pairs with the consumer's Release, as above.
        let consumed = self.0.consumer().load(Ordering::Acquire);
        consumed.wrapping_sub(produced) as i32 >= 0
    }

    /// Whether the kernel waits to be told to go on.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        const NEED_WAKEUP: u32 = 1;
        self.0.flags() & NEED_WAKEUP != 0
    }
}

#[cfg(not(any(loom, shuttle)))]
impl<T: Copy> RingMemory for Arc<RingMapping<T>> {
    type Entry = T;

    fn size(&self) -> u32 {
        RingMapping::size(self)
    }

    fn producer(&self) -> &AtomicU32 {
        RingMapping::producer(self)
    }

    fn consumer(&self) -> &AtomicU32 {
        RingMapping::consumer(self)
    }

    fn flags(&self) -> u32 {
        RingMapping::flags(self)
    }

    #[inline]
    unsafe fn read(&self, position: u32) -> T {
        // SAFETY: by the contract of the trait's method.
        unsafe { RingMapping::read(self, position) }
    }

    #[inline]
    unsafe fn write(&self, position: u32, entry: T) {
        // SAFETY: by the contract of the trait's method.
        unsafe { RingMapping::write(self, position, entry) }
    }
}

#[cfg(not(any(loom, shuttle)))]
impl PacketMemory for Arc<RingMapping<Descriptor>> {
    #[inline]
    fn continues(&self, position: u32) -> bool {
        let place = std::mem::offset_of!(Descriptor, options);
        // SAFETY: a descriptor has an aligned word of 32 bits there.
        let options = unsafe { RingMapping::word(self, position, place) };
        // Relaxed: the caller has acquired what the producer wrote.
        options.load(Ordering::Relaxed) & CONTINUED != 0
    }
}

#[cfg(test)]
pub(super) mod heap {
    //! A ring in the process's own memory, on which a test or a model plays the kernel.

    use rheostat_base::sync::atomic::AtomicBool;
    use rheostat_base::sync::{Arc, UnsafeCell};

    use super::*;

    #[derive(Clone)]
    pub(crate) struct HeapRing<T>(Arc<Parts<T>>);

    struct Parts<T> {
        producer: AtomicU32,
        consumer: AtomicU32,
        flags: AtomicU32,
        entries: Box<[UnsafeCell<T>]>,
        /// Whether the packet of an entry goes on in the next one.
        continues: Box<[AtomicBool]>,
    }

    // SAFETY: entries are accessed by the contracts of `read` and `write` only, under which the two
    // ends never meet.
    unsafe impl<T: Send> Send for Parts<T> {}
    // SAFETY: as above.
    unsafe impl<T: Send> Sync for Parts<T> {}

    impl<T: Copy + Default> HeapRing<T> {
        /// An empty ring whose positions start at `start`.
        pub(crate) fn new(size: u32, start: u32) -> HeapRing<T> {
            assert!(size.is_power_of_two());
            HeapRing(Arc::new(Parts {
                producer: AtomicU32::new(start),
                consumer: AtomicU32::new(start),
                flags: AtomicU32::new(0),
                entries: (0..size).map(|_| UnsafeCell::new(T::default())).collect(),
                continues: (0..size).map(|_| AtomicBool::new(false)).collect(),
            }))
        }

        /// Whether the packet that the producer writes to `position` next goes on behind it.
        #[cfg(not(any(loom, shuttle)))]
        pub(crate) fn set_continues(&self, position: u32, continues: bool) {
            self.place(position).store(continues, Ordering::Relaxed);
        }

        fn place(&self, position: u32) -> &AtomicBool {
            &self.0.continues[position as usize & (self.0.continues.len() - 1)]
        }

        /// Overwrites a word as only a broken kernel would.
        #[cfg(not(any(loom, shuttle)))]
        pub(crate) fn spoil_producer(&self, value: u32) {
            self.0.producer.store(value, Ordering::Release);
        }
    }

    impl<T: Copy> RingMemory for HeapRing<T> {
        type Entry = T;

        fn size(&self) -> u32 {
            self.0.entries.len() as u32
        }

        fn producer(&self) -> &AtomicU32 {
            &self.0.producer
        }

        fn consumer(&self) -> &AtomicU32 {
            &self.0.consumer
        }

        fn flags(&self) -> u32 {
            self.0.flags.load(Ordering::Relaxed)
        }

        unsafe fn read(&self, position: u32) -> T {
            let entry = &self.0.entries[(position & (self.size() - 1)) as usize];
            // SAFETY: by the contract of the trait's method.
            entry.with(|entry| unsafe { *entry })
        }

        unsafe fn write(&self, position: u32, value: T) {
            let entry = &self.0.entries[(position & (self.size() - 1)) as usize];
            // SAFETY: by the contract of the trait's method.
            entry.with_mut(|entry| unsafe { *entry = value });
        }
    }

    impl<T: Copy + Default> PacketMemory for HeapRing<T> {
        fn continues(&self, position: u32) -> bool {
            self.place(position).load(Ordering::Relaxed)
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::collections::VecDeque;

    use super::heap::HeapRing;
    use super::*;

    #[test]
    fn behaves_as_a_bounded_queue_also_where_positions_wrap() {
        let ring = HeapRing::<u64>::new(4, u32::MAX - 10);
        let (mut producer, mut consumer) = (Producer::new(ring.clone()), Consumer::new(ring));
        let gauge = producer.gauge();
        let mut oracle = VecDeque::new();
        for step in 0..1_000_u64 {
            if (step * 7_919) % 5 < 3 {
                assert_eq!(producer.room(4) as usize, 4 - oracle.len());
                if oracle.len() < 4 {
                    producer.put(step);
                    producer.publish();
                    oracle.push_back(step);
                }
            } else {
                assert_eq!(consumer.take(), oracle.pop_front());
                consumer.release();
            }
            assert_eq!(gauge.waiting() as usize, oracle.len());
        }
    }

    #[test]
    fn what_is_not_published_is_not_seen_and_what_is_not_released_is_not_reused() {
        let ring = HeapRing::<u64>::new(2, 0);
        let (mut producer, mut consumer) = (Producer::new(ring.clone()), Consumer::new(ring));
        producer.put(1);
        assert_eq!(consumer.take(), None);
        producer.put(2);
        producer.publish();
        assert_eq!((consumer.take(), consumer.take()), (Some(1), Some(2)));
        assert_eq!(producer.room(1), 0);
        consumer.release();
        assert_eq!(producer.room(1), 2);
    }

    #[test]
    fn a_position_that_cannot_be_yields_nothing() {
        let ring = HeapRing::<u64>::new(4, 0);
        let mut consumer = Consumer::new(ring.clone());
        ring.spoil_producer(5);
        assert_eq!(consumer.take(), None);
        ring.spoil_producer(u32::MAX);
        assert_eq!(consumer.take(), None);
        assert!(consumer.gauge().waiting() <= 4);
        ring.spoil_producer(1);
        assert_eq!(consumer.take(), Some(0));
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::thread;

    use super::heap::HeapRing;
    use super::*;

    /// Every interleaving of a producer that laps a two-entry ring and its consumer: entries arrive
    /// complete, once and in order. Fails when any of the four orderings above is weakened, whichever
    /// of the two is the kernel.
    #[test]
    fn entries_cross_once_and_in_order() {
        loom::model(|| {
            let ring = HeapRing::<u64>::new(2, u32::MAX);
            let (mut producer, mut consumer) = (Producer::new(ring.clone()), Consumer::new(ring));
            let writer = thread::spawn(move || {
                let mut next = 0;
                while next < 3 {
                    if producer.room(1) == 0 {
                        thread::yield_now();
                        continue;
                    }
                    producer.put(next);
                    producer.publish();
                    next += 1;
                }
            });
            let mut expected = 0;
            while expected < 3 {
                match consumer.take() {
                    Some(entry) => {
                        assert_eq!(entry, expected);
                        consumer.release();
                        expected += 1;
                    }
                    None => thread::yield_now(),
                }
            }
            writer.join().unwrap();
        });
    }
}
