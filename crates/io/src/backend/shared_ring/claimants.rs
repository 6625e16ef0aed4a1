//! What is known of the claimants of a ring: what they claimed, and which one the others wait for.

use std::sync::atomic::{AtomicU64, Ordering};

use rheostat_base::{Counter, Time};

use crate::sharing::{ClaimantCounters, SharingCounters};

/// The claimants of a ring. Nothing here takes part in the protocol: it is for people.
#[derive(Debug)]
pub(crate) struct Claimants {
    each: Box<[Claimant]>,
    /// Nanoseconds of the clock when a claimant first found the ring used up, plus one; 0 while it is not.
    used_up_since: AtomicU64,
    stalls: AtomicU64,
    stalled_ns: AtomicU64,
    longest_ns: AtomicU64,
}

/// One claimant. Written by itself, but for `pauses`.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Claimant {
    claims: Counter,
    packets: Counter,
    retries: Counter,
    /// The first descriptor of its claim, plus one; 0 while it has none.
    holds: AtomicU64,
    /// Times that others found the ring used up while this one had the oldest claim.
    pauses: AtomicU64,
}

impl Claimants {
    /// So many claimants without a claim.
    pub(crate) fn new(count: usize) -> Claimants {
        Claimants {
            each: (0..count).map(|_| Claimant::default()).collect(),
            used_up_since: AtomicU64::new(0),
            stalls: AtomicU64::new(0),
            stalled_ns: AtomicU64::new(0),
            longest_ns: AtomicU64::new(0),
        }
    }

    /// Claimant `number` has a claim from descriptor `first` on, of so many packets, after it lost so many races.
    #[inline]
    pub(crate) fn note_claim(
        &self,
        number: usize,
        first: u64,
        packets: u64,
        retries: u64,
        now: Time,
    ) {
        let claimant = &self.each[number];
        // Relaxed, here and below: figures for people.
        claimant.holds.store(first + 1, Ordering::Relaxed);
        claimant.claims.increment();
        claimant.packets.add(packets);
        if retries > 0 {
            claimant.retries.add(retries);
        }
        if self.used_up_since.load(Ordering::Relaxed) != 0 {
            self.end_stall(now);
        }
    }

    /// Claimant `number` is done with its claim.
    #[inline]
    pub(crate) fn note_done(&self, number: usize) {
        self.each[number].holds.store(0, Ordering::Relaxed);
    }

    /// A claimant found all descriptors claimed at `now`.
    #[cold]
    pub(crate) fn note_used_up(&self, now: Time) {
        let since = now.as_nanos() + 1;
        let begun =
            self.used_up_since.compare_exchange(0, since, Ordering::Relaxed, Ordering::Relaxed);
        if begun.is_err() {
            return;
        }
        self.stalls.fetch_add(1, Ordering::Relaxed);
        let held = |claimant: &&Claimant| claimant.holds.load(Ordering::Relaxed);
        let oldest = self.each.iter().filter(|claimant| held(claimant) != 0).min_by_key(held);
        if let Some(oldest) = oldest {
            oldest.pauses.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[cold]
    fn end_stall(&self, now: Time) {
        let since = self.used_up_since.swap(0, Ordering::Relaxed);
        if since != 0 {
            let lasted = (now.as_nanos() + 1).saturating_sub(since);
            self.stalled_ns.fetch_add(lasted, Ordering::Relaxed);
            self.longest_ns.fetch_max(lasted, Ordering::Relaxed);
        }
    }

    /// The figures now.
    pub(crate) fn sample(&self) -> SharingCounters {
        let duration = |ns: &AtomicU64| std::time::Duration::from_nanos(ns.load(Ordering::Relaxed));
        SharingCounters {
            claimants: self.each.iter().map(Claimant::sample).collect(),
            stalls: self.stalls.load(Ordering::Relaxed),
            stalled: duration(&self.stalled_ns),
            longest_stall: duration(&self.longest_ns),
            departures: None,
        }
    }
}

impl Claimant {
    fn sample(&self) -> ClaimantCounters {
        ClaimantCounters {
            claims: self.claims.get(),
            packets: self.packets.get(),
            retries: self.retries.get(),
            pauses: self.pauses.load(Ordering::Relaxed),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_ring_that_is_used_up_is_charged_to_the_claimant_with_the_oldest_claim() {
        let claimants = Claimants::new(3);
        claimants.note_claim(1, 5, 2, 0, Time::from_nanos(10));
        claimants.note_claim(2, 0, 5, 3, Time::from_nanos(10));
        claimants.note_used_up(Time::from_nanos(100));
        claimants.note_used_up(Time::from_nanos(120));
        claimants.note_done(2);
        claimants.note_claim(0, 7, 1, 0, Time::from_nanos(150));
        claimants.note_claim(0, 8, 1, 0, Time::from_nanos(900));
        let sample = claimants.sample();
        let pauses: Vec<u64> = sample.claimants.iter().map(|claimant| claimant.pauses).collect();
        assert_eq!((pauses, sample.stalls), (vec![0, 0, 1], 1));
        assert_eq!(sample.stalled, Duration::from_nanos(50));
        assert_eq!(sample.longest_stall, Duration::from_nanos(50));
        let first = ClaimantCounters { claims: 2, packets: 2, retries: 0, pauses: 0 };
        assert_eq!(sample.claimants[0], first);
        assert_eq!(sample.claimants[2].retries, 3);
    }
}
