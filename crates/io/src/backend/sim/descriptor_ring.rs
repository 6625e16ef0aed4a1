//! The receive ring of one queue, as a NIC has it: the NIC writes a packet into a descriptor and sets
//! its done bit; the lane takes packets whose done bit is set, clears the bits, and gives the
//! descriptors back by advancing the tail.
//!
//! Both indices grow forever and are reduced by the mask, so full and empty differ. The done bits and
//! the index words are kept apart although one lane alone would need only one of them: several lanes
//! that claim descriptors of one ring ([`ClaimantSide`]) find their way by the bits and give back by the index.
#![allow(unsafe_code)]

mod claimant;

use std::mem::MaybeUninit;

use rheostat_base::sync::atomic::{AtomicU32, Ordering};
use rheostat_base::sync::{Arc, UnsafeCell};

pub(crate) use self::claimant::{ClaimantSide, HeldClaim, shared_descriptor_ring};
use crate::backend::padded::Padded;
use crate::backend::shared_ring::Claims;

/// One place for a packet. With a packet's handle of 56 bytes it is one cache line.
#[repr(align(64))]
struct Descriptor<T> {
    /// 1 while the packet is the lane's to take. Set by the NIC (Release, after the packet is
    /// written), read by the lane (Acquire, before it takes the packet), cleared by the lane.
    done: AtomicU32,
    packet: UnsafeCell<MaybeUninit<T>>,
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Descriptor<rheostat_packet::Mbuf>>() == 64);

struct Ring<T> {
    descriptors: Box<[Descriptor<T>]>,
    mask: u32,
    /// Packets ever written. Written by the NIC (Release, after the done bit), read for the backlog (Acquire), so that a
    /// backlog of n guarantees n visible done bits.
    produced: Padded<AtomicU32>,
    /// Descriptors ever given back. Written by the lane (Release, after it moved the packets out and
    /// cleared their done bits), read by the NIC (Acquire, before it writes there again).
    tail: Padded<AtomicU32>,
    /// Which descriptors belong to which claimant, where several lanes empty the ring.
    claims: Option<Claims>,
}

// SAFETY: a descriptor's packet is accessed by the NIC side while its index lies in
// [produced, tail + capacity) and by the lane side while it lies in [tail, produced) and its done bit
// is set. The Release/Acquire edges on `done` and `tail` order each change of hands. Packets cross
// threads, so `T: Send` is all that is needed.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above; `&Ring` gives access to packets only through the NIC's side and either the lane's, which are unique, or
// those of claimants, of which one alone has a claim on a descriptor.
unsafe impl<T: Send> Sync for Ring<T> {}

/// The writing side of a ring; there is one.
pub(crate) struct NicSide<T> {
    ring: Arc<Ring<T>>,
    produced: u32,
    tail_seen: u32,
}

/// The taking side of a ring; there is one.
pub(crate) struct LaneSide<T> {
    ring: Arc<Ring<T>>,
    next: u32,
}

/// Reports how many packets wait in a ring, from any thread.
pub(crate) struct Gauge<T> {
    ring: Arc<Ring<T>>,
}

/// Makes a ring of at least `capacity` descriptors, rounded up to a power of two.
pub(crate) fn descriptor_ring<T>(capacity: u32) -> (NicSide<T>, LaneSide<T>) {
    let ring = Ring::make(capacity, false);
    (NicSide { ring: ring.clone(), produced: 0, tail_seen: 0 }, LaneSide { ring, next: 0 })
}

impl<T> Ring<T> {
    fn make(capacity: u32, is_shared: bool) -> Arc<Ring<T>> {
        let capacity = capacity.clamp(1, 1 << 30).next_power_of_two();
        Arc::new(Ring {
            descriptors: (0..capacity)
                .map(|_| Descriptor {
                    done: AtomicU32::new(0),
                    packet: UnsafeCell::new(MaybeUninit::uninit()),
                })
                .collect(),
            mask: capacity - 1,
            produced: Padded(AtomicU32::new(0)),
            tail: Padded(AtomicU32::new(0)),
            claims: is_shared.then(|| Claims::new(capacity.into())),
        })
    }

    fn descriptor(&self, index: u32) -> &Descriptor<T> {
        &self.descriptors[(index & self.mask) as usize]
    }

    fn backlog(&self) -> usize {
        let tail = match &self.claims {
            // Packets that are claimed no longer wait.
            Some(claims) => claims.claimed() as u32,
            // Acquire: pairs with the lane's Release store; a thread that learns that the lane has taken the
            // packets sees what it did before it took them.
            None => self.tail.0.load(Ordering::Acquire),
        };
        // Acquire: pairs with the NIC's Release store; the done bits are set before.
        let produced = self.produced.0.load(Ordering::Acquire);
        // The lane goes by the done bits, so for a moment it may be ahead of `produced`.
        let waiting = produced.wrapping_sub(tail) as i32;
        waiting.max(0) as usize
    }
}

impl<T> NicSide<T> {
    /// Whether the next packet fits.
    pub(crate) fn has_room(&mut self) -> bool {
        let capacity = self.ring.mask + 1;
        if self.produced.wrapping_sub(self.tail_seen) == capacity {
            // Acquire: pairs with the lane's Release store of `tail`; the packets are moved out of
            // the descriptors we are about to reuse and their done bits cleared.
            self.tail_seen = self.ring.tail.0.load(Ordering::Acquire);
        }
        self.produced.wrapping_sub(self.tail_seen) < capacity
    }

    /// Writes `packet` into the next descriptor and hands it to the lane, or gives it back when the
    /// ring is full.
    pub(crate) fn put(&mut self, packet: T) -> Result<(), T> {
        if !self.has_room() {
            return Err(packet);
        }
        let descriptor = self.ring.descriptor(self.produced);
        descriptor.packet.with_mut(|place| {
            // SAFETY: there is room, so the descriptor is the NIC's, and what it held was moved out.
            unsafe { (*place).write(packet) };
        });
        // Release: pairs with the lane's Acquire load of `done`; the packet is written before.
        descriptor.done.store(1, Ordering::Release);
        self.produced = self.produced.wrapping_add(1);
        // Release: pairs with the Acquire load in `backlog`; the done bit is set before.
        self.ring.produced.0.store(self.produced, Ordering::Release);
        Ok(())
    }

    /// A view of how many packets wait.
    pub(crate) fn gauge(&self) -> Gauge<T> {
        Gauge { ring: self.ring.clone() }
    }
}

impl<T> LaneSide<T> {
    /// Takes up to `limit` packets in order, gives their descriptors back at once, and returns how
    /// many it took.
    pub(crate) fn take_each(&mut self, limit: usize, mut f: impl FnMut(T)) -> usize {
        let mut taken = 0;
        while taken < limit {
            let descriptor = self.ring.descriptor(self.next);
            // Acquire: pairs with the NIC's Release store of `done`; the packet is complete.
            if descriptor.done.load(Ordering::Acquire) == 0 {
                break;
            }
            let packet = descriptor.packet.with(|place| {
                // SAFETY: the done bit is set and only this side clears it, so the NIC wrote the
                // packet and does not touch the descriptor until the tail has passed it; the packet
                // is moved out once, because the bit is cleared before the next look.
                unsafe { (*place).assume_init_read() }
            });
            // Relaxed: published to the NIC by the Release store of `tail` below.
            descriptor.done.store(0, Ordering::Relaxed);
            self.next = self.next.wrapping_add(1);
            taken += 1;
            f(packet);
        }
        if taken > 0 {
            // Release: pairs with the NIC's Acquire load of `tail`; the packets are out of the
            // descriptors and the done bits cleared.
            self.ring.tail.0.store(self.next, Ordering::Release);
        }
        taken
    }

    /// Packets that wait.
    pub(crate) fn backlog(&self) -> usize {
        self.ring.backlog()
    }
}

impl<T> Gauge<T> {
    /// Packets that wait.
    pub(crate) fn backlog(&self) -> usize {
        self.ring.backlog()
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        for descriptor in &self.descriptors {
            // Relaxed: both sides are gone, and the last `Arc` decrement ordered their accesses.
            if descriptor.done.load(Ordering::Relaxed) == 1 {
                descriptor.packet.with_mut(|place| {
                    // SAFETY: the done bit is set, so the packet was written and never moved out.
                    unsafe { (*place).assume_init_drop() }
                });
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 256 }))]

        /// Against a bounded queue: the same packets are refused, the rest come out in order, and the
        /// backlog is exact after every step, over many laps.
        #[test]
        fn behaves_as_a_bounded_queue(
            capacity in 1_u32..9,
            steps in proptest::collection::vec((any::<bool>(), 0_usize..5), 0..200),
        ) {
            let (mut nic, mut lane) = descriptor_ring(capacity);
            let capacity = capacity.next_power_of_two() as usize;
            let mut oracle = VecDeque::new();
            let mut number = 0_u32;
            for (put, count) in steps {
                if put {
                    for _ in 0..count {
                        let fits = nic.put(number).is_ok();
                        prop_assert_eq!(fits, oracle.len() < capacity);
                        if fits {
                            oracle.push_back(number);
                        }
                        number += 1;
                    }
                } else {
                    let mut got = Vec::new();
                    lane.take_each(count, |packet| got.push(packet));
                    let expected: Vec<u32> = oracle.drain(..count.min(oracle.len())).collect();
                    prop_assert_eq!(got, expected);
                }
                prop_assert_eq!(lane.backlog(), oracle.len());
                prop_assert_eq!(nic.gauge().backlog(), oracle.len());
            }
        }
    }

    #[test]
    fn indices_may_wrap() {
        let (mut nic, mut lane) = descriptor_ring(4);
        let start = u32::MAX - 5;
        nic.produced = start;
        nic.tail_seen = start;
        nic.ring.tail.0.store(start, Ordering::Relaxed);
        nic.ring.produced.0.store(start, Ordering::Relaxed);
        lane.next = start;
        for lap in 0..20 {
            for packet in 0..4 {
                assert_eq!(nic.put(lap * 4 + packet), Ok(()));
            }
            assert_eq!(nic.put(0), Err(0));
            assert_eq!(lane.backlog(), 4);
            let mut got = Vec::new();
            assert_eq!(lane.take_each(9, |packet| got.push(packet)), 4);
            assert_eq!(got, (lap * 4..lap * 4 + 4).collect::<Vec<_>>());
        }
    }

    #[test]
    fn packets_left_in_the_ring_are_dropped_once() {
        let packet = Arc::new(());
        let (mut nic, mut lane) = descriptor_ring(8);
        for _ in 0..5 {
            nic.put(packet.clone()).unwrap();
        }
        lane.take_each(2, drop);
        assert_eq!(Arc::strong_count(&packet), 4);
        drop((nic, lane));
        assert_eq!(Arc::strong_count(&packet), 1);
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::thread;

    use super::*;

    /// Every interleaving of a NIC that laps a two-descriptor ring and the lane: packets arrive
    /// complete, once and in order. Fails when an ordering on `done` or `tail` is weakened.
    #[test]
    fn packets_cross_once_and_in_order() {
        loom::model(|| {
            let (mut nic, mut lane) = descriptor_ring(2);
            let writer = thread::spawn(move || {
                let mut next = 0_u32;
                while next < 3 {
                    match nic.put(Box::new(next)) {
                        Ok(()) => next += 1,
                        Err(_) => thread::yield_now(),
                    }
                }
            });
            let mut expected = 0;
            while expected < 3 {
                let taken = lane.take_each(2, |packet| {
                    assert_eq!(*packet, expected);
                    expected += 1;
                });
                if taken == 0 {
                    thread::yield_now();
                }
            }
            writer.join().unwrap();
        });
    }

    /// A backlog is a promise: as many packets can be taken at once. The watermark of a migration
    /// rests on it. Fails when `produced` is published without Release.
    #[test]
    fn a_backlog_can_be_taken() {
        loom::model(|| {
            let (mut nic, mut lane) = descriptor_ring(2);
            let writer = thread::spawn(move || {
                for packet in 0..2 {
                    nic.put(Box::new(packet)).unwrap();
                }
            });
            let backlog = lane.backlog();
            assert!(lane.take_each(backlog, drop) == backlog);
            writer.join().unwrap();
        });
    }
}
