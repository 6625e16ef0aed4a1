//! The taking side of a descriptor ring that several lanes empty: one handle for each.

use std::ops::Range;

use rheostat_base::sync::Arc;
use rheostat_base::sync::atomic::Ordering;

use super::{NicSide, Ring};
use crate::backend::shared_ring::{Claim, Claims, NoClaim, Readiness};

/// The handle of one claimant; there is any number of them.
pub(crate) struct ClaimantSide<T> {
    ring: Arc<Ring<T>>,
}

/// Descriptors that were claimed and hold their packets still.
#[must_use = "packets that are claimed and not taken stop the ring one lap later"]
pub(crate) struct Claimed<'a, T> {
    side: &'a ClaimantSide<T>,
    claim: Claim<()>,
}

/// A claim that is set aside between two bursts that are taken of it. Belongs to the ring on which it was made.
#[must_use = "packets that are claimed and not taken stop the ring one lap later"]
pub(crate) struct HeldClaim {
    claim: Claim<()>,
    /// The address of the ring.
    ring: usize,
}

/// Descriptors whose packets were taken.
#[must_use = "descriptors that are not given back stop the ring one lap later"]
pub(crate) struct Taken<'a, T> {
    side: &'a ClaimantSide<T>,
    claim: Claim<()>,
}

/// Makes a ring of at least `capacity` descriptors, rounded up to a power of two, that any number of claimants empty.
pub(crate) fn shared_descriptor_ring<T>(capacity: u32) -> (NicSide<T>, ClaimantSide<T>) {
    let ring = Ring::make(capacity, true);
    (NicSide { ring: ring.clone(), produced: 0, tail_seen: 0 }, ClaimantSide { ring })
}

impl<T> Clone for ClaimantSide<T> {
    fn clone(&self) -> ClaimantSide<T> {
        ClaimantSide { ring: self.ring.clone() }
    }
}

impl<T> ClaimantSide<T> {
    fn claims(&self) -> &Claims {
        self.ring.claims.as_ref().expect("made with the ring")
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(&*self.ring).addr()
    }

    /// How many descriptors the ring has.
    pub(crate) fn capacity(&self) -> u64 {
        u64::from(self.ring.mask) + 1
    }

    /// The oldest descriptor that is not given back.
    #[cfg(test)]
    pub(crate) fn tail(&self) -> u64 {
        self.claims().tail()
    }

    /// Packets that wait and are not claimed.
    pub(crate) fn backlog(&self) -> usize {
        self.ring.backlog()
    }

    /// Claims up to `limit` packets, none beyond index `bound`.
    ///
    /// # Errors
    /// [`NoClaim`] when none can be claimed.
    #[inline]
    pub(crate) fn claim(&self, limit: usize, bound: u64) -> Result<Claimed<'_, T>, NoClaim> {
        // Acquire: pairs with the NIC's Release store of `done`; the packet is complete.
        let ready =
            |index: u64| match self.ring.descriptor(index as u32).done.load(Ordering::Acquire) {
                0 => Readiness::Empty,
                _ => Readiness::Whole,
            };
        let claim = self.claims().claim(limit, bound, ready, |_| ())?;
        Ok(Claimed { side: self, claim })
    }

    /// Goes on with a claim that was set aside.
    ///
    /// # Panics
    /// When it was made on another ring.
    #[inline]
    pub(crate) fn resume(&self, HeldClaim { claim, ring }: HeldClaim) -> Claimed<'_, T> {
        assert_eq!(ring, self.address(), "a claim belongs to its ring");
        Claimed { side: self, claim }
    }
}

impl<'a, T> Claimed<'a, T> {
    /// The first descriptor and the first behind them.
    pub(crate) fn range(&self) -> (u64, u64) {
        (self.claim.first, self.claim.end)
    }

    /// Races that were lost before.
    pub(crate) fn retries(&self) -> u64 {
        self.claim.retries
    }

    /// Takes all packets that are left, in order.
    #[cfg(test)]
    #[inline]
    pub(crate) fn take(mut self, f: impl FnMut(T)) -> Taken<'a, T> {
        self.take_some(usize::MAX, f);
        let Claimed { side, claim } = self;
        Taken { side, claim }
    }

    /// Takes up to `limit` packets, in order; returns their descriptors.
    #[inline]
    pub(crate) fn take_some(&mut self, limit: usize, mut f: impl FnMut(T)) -> Range<u64> {
        let range = self.claim.take(limit);
        for index in range.clone() {
            let descriptor = self.side.ring.descriptor(index as u32);
            let packet = descriptor.packet.with(|place| {
                // SAFETY: the done bit of this descriptor, or of a later one, which the NIC sets after it, was seen set in
                // this lap, so the NIC wrote the packet, and it does not touch the descriptor until the tail has passed
                // it, for which this claim has to be finished. No other claimant has a claim on it. The packet is moved
                // out once, because a claim gives each descriptor once.
                unsafe { (*place).assume_init_read() }
            });
            // Relaxed: published to the other claimants and to the NIC by the Release of the done bits, and from there by
            // those of the tails.
            descriptor.done.store(0, Ordering::Relaxed);
            f(packet);
        }
        range
    }

    /// Gives the descriptors back if all packets were taken, or else sets the claim aside.
    #[inline]
    pub(crate) fn finish_or_hold(self) -> Option<HeldClaim> {
        let Claimed { side, claim } = self;
        if claim.left().is_empty() {
            Taken { side, claim }.finish();
            return None;
        }
        Some(HeldClaim { claim, ring: side.address() })
    }
}

impl HeldClaim {
    /// Packets that were not taken yet.
    pub(crate) fn left(&self) -> usize {
        let left = self.claim.left();
        (left.end - left.start) as usize
    }
}

impl<T> Taken<'_, T> {
    /// Gives the descriptors back to the NIC, once those before them are given back.
    #[inline]
    pub(crate) fn finish(self) {
        let Taken { side, claim } = self;
        let ring = &side.ring;
        side.claims().finish(claim, |_, end| {
            // Release: pairs with the NIC's Acquire load of `tail`; the packets are out of the descriptors and the done
            // bits cleared.
            ring.tail.0.store(end as u32, Ordering::Release);
        });
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    //! Timed: threads.

    use std::sync::Arc as StdArc;
    use std::sync::atomic::{AtomicU64, Ordering as StdOrdering};
    use std::thread;

    use super::*;

    /// Descriptors of a short run; `.ci/soak shared` asks for more.
    const DESCRIPTORS: u64 = 400_000;

    #[test]
    fn a_claimant_that_is_paused_stops_the_others_only_when_the_ring_is_used_up() {
        let (mut nic, claimant) = shared_descriptor_ring(4);
        (0..4).for_each(|packet| nic.put(packet).unwrap());
        let paused = claimant.claim(1, u64::MAX).unwrap();
        let mut got = Vec::new();
        let others = |got: &mut Vec<u32>| {
            claimant
                .claim(32, u64::MAX)
                .map(|claimed| claimed.take(|packet| got.push(packet)).finish())
        };
        assert_eq!(others(&mut got), Ok(()));
        assert_eq!(got, [1, 2, 3], "they go on with the rest of the ring");
        assert_eq!(others(&mut got), Err(NoClaim::UsedUp));
        assert_eq!(nic.put(4), Err(4), "and the NIC gets no descriptor back");
        paused.take(|packet| got.push(packet)).finish();
        assert_eq!(claimant.tail(), 4);
        nic.put(4).unwrap();
        assert_eq!(others(&mut got), Ok(()));
        assert_eq!(got, [1, 2, 3, 0, 4]);
        assert_eq!(others(&mut got), Err(NoClaim::Empty));
    }

    #[test]
    fn a_claim_is_taken_in_bursts_and_given_back_after_the_last() {
        let (mut nic, claimant) = shared_descriptor_ring(8);
        (0..5).for_each(|packet| nic.put(packet).unwrap());
        let mut got = Vec::new();
        let mut claimed = claimant.claim(32, u64::MAX).unwrap();
        assert_eq!(claimed.take_some(2, |packet| got.push(packet)), 0..2);
        let held = claimed.finish_or_hold().expect("three are left");
        assert_eq!((held.left(), claimant.tail(), claimant.backlog()), (3, 0, 0));
        let mut claimed = claimant.resume(held);
        assert_eq!(claimed.take_some(9, |packet| got.push(packet)), 2..5);
        assert!(claimed.finish_or_hold().is_none());
        assert_eq!((got, claimant.tail()), ((0..5).collect(), 5));
    }

    #[test]
    #[should_panic(expected = "a claim belongs to its ring")]
    fn a_claim_is_not_taken_from_another_ring() {
        let (mut nic, claimant) = shared_descriptor_ring(8);
        let (_, other) = shared_descriptor_ring::<i32>(8);
        nic.put(1).unwrap();
        let held = claimant.claim(1, u64::MAX).unwrap().finish_or_hold().unwrap();
        let _ = other.resume(held);
    }

    /// Packets that are many are claimed without a look at each, and no more of them than there are.
    #[test]
    fn many_packets_are_claimed_at_once() {
        let (mut nic, claimant) = shared_descriptor_ring(256);
        (0..200).for_each(|packet| nic.put(packet).unwrap());
        let claim = |limit| {
            let claimed = claimant.claim(limit, u64::MAX).map(|claimed| {
                let range = claimed.range();
                let mut packets = range.0 as u32..;
                claimed.take(|packet| assert_eq!(Some(packet), packets.next())).finish();
                range
            });
            claimed.ok()
        };
        assert_eq!(claim(128), Some((0, 128)));
        assert_eq!(claim(128), Some((128, 192)), "the half of it, of which all are there");
        assert_eq!(claim(128), Some((192, 200)));
        assert_eq!(claim(128), None);
        // One lap on, nothing of the last lap is claimed again.
        (200..456).for_each(|packet| nic.put(packet).unwrap());
        assert_eq!(claim(512), Some((200, 456)));
    }

    #[test]
    fn packets_left_in_a_ring_with_a_lost_claim_are_dropped_once() {
        let packet = StdArc::new(());
        let (mut nic, claimant) = shared_descriptor_ring(8);
        (0..5).for_each(|_| nic.put(packet.clone()).unwrap());
        claimant.claim(2, u64::MAX).unwrap().take(drop).finish();
        // A claimant that ended between claim and done: its packets are still in the ring.
        drop(claimant.claim(1, u64::MAX).unwrap());
        assert_eq!(StdArc::strong_count(&packet), 4);
        drop((nic, claimant));
        assert_eq!(StdArc::strong_count(&packet), 1);
    }

    /// Claims packets until `count` were, and checks that each is the one that the NIC wrote into this descriptor in this
    /// lap, and that the one before it there was taken.
    fn empty(
        claimant: &ClaimantSide<u64>,
        taken: &AtomicU64,
        laps: &[AtomicU64],
        count: u64,
    ) -> u64 {
        let capacity = claimant.capacity();
        let mut claims = 0;
        while taken.load(StdOrdering::Relaxed) < count {
            let Ok(claimed) = claimant.claim(32, u64::MAX) else {
                thread::yield_now();
                continue;
            };
            claims += 1;
            let (first, end) = claimed.range();
            let mut index = first;
            let done = claimed.take(|packet| {
                assert_eq!(packet, index, "packet n is in descriptor n");
                let lap = &laps[(index % capacity) as usize];
                let before = lap.swap(index + 1, StdOrdering::Relaxed);
                let expected = (index + 1).saturating_sub(capacity);
                assert_eq!(before, expected, "each lap comes once, in order");
                index += 1;
            });
            done.finish();
            taken.fetch_add(end - first, StdOrdering::Relaxed);
        }
        claims
    }

    fn soak(descriptors: u32, claimants: usize, count: u64) {
        let (mut nic, claimant) = shared_descriptor_ring(descriptors);
        let taken = AtomicU64::new(0);
        let laps: Vec<AtomicU64> = (0..claimant.capacity()).map(|_| AtomicU64::new(0)).collect();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..claimants)
                .map(|_| {
                    let (claimant, taken, laps) = (claimant.clone(), &taken, &laps);
                    scope.spawn(move || empty(&claimant, taken, laps, count))
                })
                .collect();
            for packet in 0..count {
                let mut packet = packet;
                while let Err(back) = nic.put(packet) {
                    packet = back;
                    thread::yield_now();
                }
            }
            let claims: Vec<u64> =
                threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            println!(
                "{descriptors} descriptors, {claimants} claimants: {count} packets, claims {claims:?}"
            );
        });
        assert_eq!(taken.into_inner(), count, "nothing was lost or doubled");
        assert_eq!((claimant.tail(), claimant.backlog()), (count, 0));
    }

    /// Rings of one descriptor, of one word of done bits and of several; two to four claimants on however many cores. The
    /// variable sets how many descriptors the longest of them passes.
    #[test]
    fn nothing_is_lost_doubled_or_given_back_early() {
        let count = std::env::var("RHEO_SHARED_DESCRIPTORS").ok();
        let count = count.map_or(DESCRIPTORS, |count| count.parse().expect("a number"));
        soak(1, 2, count.min(DESCRIPTORS) / 10);
        soak(64, 3, count / 10);
        soak(256, 4, count / 10);
        soak(1_024, 2, count);
    }
}
