//! An RX ring that several lanes empty at once: the kernel's ring as it is, with claims on its descriptors
//! ([`crate::backend::shared_ring`]).
//!
//! Positions of the kernel have 32 bits, indices of claims 64: position 0 of a new ring is index 0, or whatever position the
//! ring stands at. The kernel gets descriptors back in its own order, by the consumer's word, which the holder of the release
//! lock writes.
#![allow(unsafe_code)]

use std::cell::Cell;

use rheostat_base::sync::atomic::Ordering;

use super::ring::{Consumer, PacketMemory};
use crate::backend::shared_ring::{Claim, Claims, NoClaim, Readiness};

/// The reading end of a ring, for any number of claimants.
pub(super) struct ClaimedRing<M> {
    memory: M,
    /// The position of index 0.
    start: u32,
    claims: Claims,
}

/// Descriptors that were claimed and not read.
#[must_use = "descriptors that are claimed and not given back stop the ring one lap later"]
pub(super) struct Claimed<'a, M> {
    ring: &'a ClaimedRing<M>,
    claim: Claim<u32>,
}

/// Descriptors that were read.
#[must_use = "descriptors that are not given back stop the ring one lap later"]
pub(super) struct Taken<'a, M> {
    ring: &'a ClaimedRing<M>,
    claim: Claim<u32>,
}

impl<M: PacketMemory> ClaimedRing<M> {
    /// Lets claimants have the reading end of a ring.
    pub(super) fn new(consumer: Consumer<M>) -> ClaimedRing<M> {
        let (memory, start) = consumer.into_parts();
        ClaimedRing { claims: Claims::new(memory.size().into()), start, memory }
    }

    /// How many descriptors the ring has.
    pub(super) fn size(&self) -> u64 {
        self.memory.size().into()
    }

    fn position(&self, index: u64) -> u32 {
        self.start.wrapping_add(index as u32)
    }

    /// Descriptors that wait and are not claimed.
    #[inline]
    pub(super) fn backlog(&self) -> u32 {
        self.waiting_from(self.claims.claimed())
    }

    /// Descriptors claimed so far.
    pub(super) fn claimed(&self) -> u64 {
        self.claims.claimed()
    }

    /// The index behind everything that has come.
    pub(super) fn end(&self) -> u64 {
        let claimed = self.claims.claimed();
        claimed + u64::from(self.waiting_from(claimed))
    }

    /// Descriptors from index `claimed` on, which was read just now.
    fn waiting_from(&self, claimed: u64) -> u32 {
        // Relaxed: a figure. What is claimed was produced before, and is seen to be: its claimant had seen it, and the index
        // was acquired from it.
        let produced = self.memory.producer().load(Ordering::Relaxed);
        produced.wrapping_sub(self.position(claimed)).min(self.memory.size())
    }

    /// Whether everything below `end` was read and given back.
    pub(super) fn has_read(&self, end: u64) -> bool {
        self.claims.tail() >= end
    }

    /// Claims up to `limit` whole packets, none beyond index `bound`. `draw` is called with the number of descriptors: of two
    /// claims, the later one's number was drawn later.
    ///
    /// # Errors
    /// [`NoClaim`] when nothing can be claimed.
    #[inline]
    pub(super) fn claim(
        &self,
        limit: usize,
        bound: u64,
        draw: impl FnMut(u64) -> u32,
    ) -> Result<Claimed<'_, M>, NoClaim> {
        // Acquire: pairs with the kernel's Release; the descriptors below are complete. Once for a burst: the kernel writes
        // the word all the time.
        let produced = || self.memory.producer().load(Ordering::Acquire);
        let seen = Cell::new(produced());
        let ready = |index| {
            let position = self.position(index);
            let is_produced =
                || (1..=self.memory.size()).contains(&seen.get().wrapping_sub(position));
            if !is_produced() {
                seen.set(produced());
                // More than the ring holds is nonsense, or of a ring that has gone on without this claimant.
                if !is_produced() {
                    return Readiness::Empty;
                }
            }
            match self.memory.continues(position) {
                true => Readiness::Part,
                false => Readiness::Whole,
            }
        };
        let claim = self.claims.claim(limit, bound, ready, draw)?;
        Ok(Claimed { ring: self, claim })
    }
}

impl<'a, M: PacketMemory> Claimed<'a, M> {
    /// The first descriptor and the first behind them.
    pub(super) fn range(&self) -> (u64, u64) {
        (self.claim.first, self.claim.end)
    }

    /// How many packets they are.
    pub(super) fn packets(&self) -> usize {
        let ends = |index: &u64| !self.ring.memory.continues(self.ring.position(*index));
        (self.claim.first..self.claim.end).filter(ends).count()
    }

    /// What was drawn for the claim.
    pub(super) fn ticket(&self) -> u32 {
        self.claim.ticket
    }

    /// Races that were lost before.
    pub(super) fn retries(&self) -> u64 {
        self.claim.retries
    }

    /// Reads the descriptors, in order.
    #[inline]
    pub(super) fn take(self, mut f: impl FnMut(M::Entry)) -> Taken<'a, M> {
        let Claimed { ring, claim } = self;
        for index in claim.first..claim.end {
            // SAFETY: it was produced when the claim was made, and the kernel does not write there again before the consumer's
            // word has passed it, for which this claim has to be finished.
            f(unsafe { ring.memory.read(ring.position(index)) });
        }
        Taken { ring, claim }
    }
}

impl<M: PacketMemory> Taken<'_, M> {
    /// Gives the descriptors back to the kernel, once those before them are given back.
    #[inline]
    pub(super) fn finish(self) {
        let Taken { ring, claim } = self;
        ring.claims.finish(claim, |_, end| {
            // Release: pairs with the kernel's Acquire; this claimant and, by the done bits, the others have read the entries.
            ring.memory.consumer().store(ring.position(end), Ordering::Release);
        });
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    //! Timed: threads.

    use std::sync::atomic::{AtomicU64, Ordering as StdOrdering};
    use std::thread;

    use super::super::ring::Producer;
    use super::super::ring::heap::HeapRing;
    use super::*;

    /// Positions wrap soon after.
    const START: u32 = u32::MAX - 10;

    fn ring(size: u32) -> (Producer<HeapRing<u64>>, ClaimedRing<HeapRing<u64>>, HeapRing<u64>) {
        let memory = HeapRing::new(size, START);
        let ring = ClaimedRing::new(Consumer::new(memory.clone()));
        (Producer::new(memory.clone()), ring, memory)
    }

    /// Claims up to `limit` packets, reads them and gives them back.
    fn take(ring: &ClaimedRing<HeapRing<u64>>, limit: usize) -> Result<Vec<u64>, NoClaim> {
        let mut got = Vec::new();
        ring.claim(limit, u64::MAX, |_| 0)?.take(|entry| got.push(entry)).finish();
        Ok(got)
    }

    #[test]
    fn what_was_produced_is_claimed_once_and_given_back_in_order() {
        let (mut kernel, ring, _) = ring(8);
        let mut produced = 0;
        for round in 0..100 {
            for _ in 0..kernel.room(5).min(5) {
                kernel.put(produced);
                produced += 1;
            }
            kernel.publish();
            let before = ring.end() - u64::from(ring.backlog());
            assert_eq!((ring.end(), before), (produced, round * 5));
            let early = ring.claim(2, u64::MAX, |_| 0).unwrap();
            assert_eq!((early.range(), early.packets()), ((before, before + 2), 2));
            assert_eq!(take(&ring, 32), Ok((before + 2..before + 5).collect()));
            assert_eq!((ring.backlog(), kernel.room(8)), (0, 3), "the first two are being read");
            assert!(!ring.has_read(before + 1));
            let mut got = Vec::new();
            early.take(|entry| got.push(entry)).finish();
            assert_eq!(got, [before, before + 1]);
            assert_eq!((kernel.room(8), ring.has_read(before + 5)), (8, true));
            assert_eq!(take(&ring, 1), Err(NoClaim::Empty));
        }
    }

    #[test]
    fn a_packet_of_several_descriptors_is_not_cut() {
        let (mut kernel, ring, memory) = ring(16);
        for (entry, continues) in [(0, true), (1, true), (2, false), (3, false), (4, true)] {
            memory.set_continues(START.wrapping_add(entry), continues);
            kernel.put(entry.into());
        }
        kernel.publish();
        let claim = ring.claim(1, u64::MAX, |descriptors| descriptors as u32).unwrap();
        assert_eq!((claim.range(), claim.packets(), claim.ticket()), ((0, 3), 1, 3));
        claim.take(|_| ()).finish();
        assert_eq!(take(&ring, 32), Ok(vec![3]), "the end of the third has not come");
        assert_eq!((take(&ring, 32), ring.backlog()), (Err(NoClaim::Empty), 1));
        kernel.put(5);
        kernel.publish();
        assert_eq!(take(&ring, 32), Ok(vec![4, 5]));
    }

    #[test]
    fn a_claimant_that_ended_between_claim_and_done_stops_the_others_when_the_ring_is_used_up() {
        let (mut kernel, ring, _) = ring(4);
        (0..4).for_each(|entry| kernel.put(entry));
        kernel.publish();
        let lost = ring.claim(1, u64::MAX, |_| 0).unwrap();
        assert_eq!(take(&ring, 32), Ok(vec![1, 2, 3]));
        assert_eq!((take(&ring, 32), kernel.room(1)), (Err(NoClaim::UsedUp), 0));
        assert_eq!(ring.backlog(), 0);
        drop(lost);
        assert_eq!(take(&ring, 32), Err(NoClaim::UsedUp), "its descriptor is not given back");
    }

    #[test]
    fn positions_that_cannot_be_yield_nothing() {
        let (_, ring, memory) = ring(4);
        for ahead in [5, u32::MAX, 1 << 31] {
            memory.spoil_producer(START.wrapping_add(ahead));
            assert_eq!(take(&ring, 32), Err(NoClaim::Empty), "{ahead}");
            assert!(ring.backlog() <= 4);
        }
        memory.spoil_producer(START.wrapping_add(1));
        assert_eq!(take(&ring, 32), Ok(vec![0]));
    }

    /// A kernel that laps the ring, and claimants on threads of their own: entry n is at index n, comes once, and stamps follow
    /// the ring.
    fn soak(size: u32, claimants: usize, count: u64) {
        let (mut kernel, ring, _) = ring(size);
        let (taken, drawn) = (AtomicU64::new(0), AtomicU64::new(0));
        let stamps: Vec<AtomicU64> = (0..count).map(|_| AtomicU64::new(0)).collect();
        let empty = || {
            while taken.load(StdOrdering::Relaxed) < count {
                let draw = |count| drawn.fetch_add(count, StdOrdering::Relaxed) as u32;
                let Ok(claimed) = ring.claim(7, u64::MAX, draw) else {
                    thread::yield_now();
                    continue;
                };
                let ((first, end), stamp) = (claimed.range(), u64::from(claimed.ticket()) + 1);
                let mut index = first;
                let done = claimed.take(|entry| {
                    assert_eq!(entry, index);
                    let before = stamps[index as usize].swap(stamp, StdOrdering::Relaxed);
                    assert_eq!(before, 0, "each comes once");
                    index += 1;
                });
                done.finish();
                taken.fetch_add(end - first, StdOrdering::Relaxed);
            }
        };
        thread::scope(|scope| {
            (0..claimants).for_each(|_| drop(scope.spawn(empty)));
            for entry in 0..count {
                while kernel.room(1) == 0 {
                    thread::yield_now();
                }
                kernel.put(entry);
                kernel.publish();
            }
        });
        assert_eq!((taken.into_inner(), ring.backlog()), (count, 0));
        assert!(ring.has_read(count) && kernel.room(size) == size);
        assert!(stamps.is_sorted_by_key(|stamp| stamp.load(StdOrdering::Relaxed)));
    }

    #[test]
    fn nothing_is_lost_doubled_or_given_back_early() {
        soak(1, 2, 20_000);
        soak(64, 3, 100_000);
        soak(256, 4, 100_000);
        soak(1_024, 2, 200_000);
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::thread;
    use rheostat_base::sync::Arc;

    use super::super::ring::Producer;
    use super::super::ring::heap::HeapRing;
    use super::*;

    type Ring = ClaimedRing<HeapRing<u64>>;

    fn ring() -> (Producer<HeapRing<u64>>, Arc<Ring>) {
        let memory = HeapRing::new(2, u32::MAX);
        (Producer::new(memory.clone()), Arc::new(ClaimedRing::new(Consumer::new(memory))))
    }

    fn attempt(ring: &Ring, got: &mut Vec<u64>) {
        let Ok(claimed) = ring.claim(1, u64::MAX, |_| 0) else { return };
        claimed.take(|entry| got.push(entry)).finish();
    }

    /// A claimant that looks while the kernel writes gets complete entries. Fails when the load of the producer's word is
    /// weakened.
    #[test]
    fn an_entry_that_is_claimed_is_complete() {
        loom::model(|| {
            let (mut kernel, ring) = ring();
            let writer = thread::spawn(move || {
                kernel.put(7);
                kernel.publish();
            });
            let mut got = Vec::new();
            (0..2).for_each(|_| attempt(&ring, &mut got));
            writer.join().unwrap();
            attempt(&ring, &mut got);
            assert_eq!(got, [7]);
        });
    }

    /// A kernel that laps a ring of two, and two claimants, of which one is the kernel's thread: each entry comes complete and
    /// once. Fails when the store of the consumer's word is weakened.
    #[test]
    fn entries_cross_once_through_a_ring_that_is_lapped() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let (mut kernel, ring) = ring();
            kernel.put(0);
            kernel.publish();
            let other = {
                let ring = ring.clone();
                thread::spawn(move || {
                    let mut got = Vec::new();
                    attempt(&ring, &mut got);
                    got
                })
            };
            let (mut got, mut next) = (Vec::new(), 1);
            while next < 3 {
                if kernel.room(1) == 0 {
                    attempt(&ring, &mut got);
                    thread::yield_now();
                    continue;
                }
                kernel.put(next);
                kernel.publish();
                next += 1;
            }
            got.extend(other.join().unwrap());
            (0..3).for_each(|_| attempt(&ring, &mut got));
            got.sort_unstable();
            assert_eq!(got, [0, 1, 2]);
            assert_eq!((kernel.room(2), ring.backlog()), (2, 0));
        });
    }
}
