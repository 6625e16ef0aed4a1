//! How many packets a claimant asks for at once.

use rheostat_base::Time;

/// Packets of the smallest claim: a burst.
pub(super) const LEAST: usize = rheostat_packet::BURST;
/// Packets of the largest.
const MOST: usize = 256;
/// A claim may be a quarter of the ring: two claimants go on while the oldest claim is not done.
const SHARE: u64 = 4;
/// A claimant whose claim lasted less than this, in nanoseconds, asks for twice as much, and for half when it lasted twice
/// this. It takes about a microsecond to move the lines of a claim between two cores.
const TARGET: u64 = 8_000;

/// The next claim's size, of one claimant.
///
/// Claims of a burst are right while few packets wait, and while packets take long. Where a burst is done in less time than
/// the lines of a claim take between the cores, the claims are larger, so that this time is a small part. No claim grows
/// beyond what `TARGET` doubled allows, as long as packets take the time that those before them took: this bounds how long
/// packets wait behind others of their claim, while another claimant has nothing to do.
#[derive(Debug)]
pub struct ClaimSize {
    wanted: usize,
    most: usize,
    /// When the last claim was made, and whether it has as many packets as were asked for.
    latest: Option<(Time, bool)>,
}

impl ClaimSize {
    /// For a ring of `capacity` descriptors.
    pub fn new(capacity: u64) -> ClaimSize {
        let most = ((capacity / SHARE) as usize).clamp(LEAST, MOST);
        ClaimSize { wanted: LEAST, most, latest: None }
    }

    /// Packets to ask for at `now`, when the last claim is used up.
    #[inline]
    pub fn next(&mut self, now: Time) -> usize {
        if let Some((since, was_full)) = self.latest.take() {
            let lasted = now.as_nanos().saturating_sub(since.as_nanos());
            if lasted < TARGET && was_full {
                self.wanted = (2 * self.wanted).min(self.most);
            } else if lasted > 2 * TARGET {
                self.wanted = (self.wanted / 2).max(LEAST);
            }
        }
        self.wanted
    }

    /// Packets were claimed at `now`.
    #[inline]
    pub fn claimed(&mut self, packets: u64, now: Time) {
        self.latest = Some((now, packets >= self.wanted as u64));
    }

    /// No packet waited: those that come next are few.
    #[inline]
    pub fn found_none(&mut self) {
        self.wanted = LEAST;
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// Claims that each bring what was asked for, at most `waiting`, and last so long per packet, in nanoseconds.
    fn sizes(capacity: u64, steps: &[(usize, u64)]) -> Vec<usize> {
        let (mut size, mut now) = (ClaimSize::new(capacity), Time::ZERO);
        let each = steps.iter().map(|&(waiting, per_packet)| {
            let wanted = size.next(now);
            let packets = wanted.min(waiting) as u64;
            size.claimed(packets, now);
            now = Time::from_nanos(now.as_nanos() + packets * per_packet);
            wanted
        });
        each.collect()
    }

    #[test]
    fn claims_grow_while_packets_are_many_and_quick() {
        assert_eq!(sizes(1_024, &[(999, 10); 5]), [32, 64, 128, 256, 256]);
        assert_eq!(sizes(512, &[(999, 10); 4]), [32, 64, 128, 128], "a quarter of the ring");
        assert_eq!(sizes(16, &[(999, 10); 3]), [32, 32, 32]);
    }

    #[test]
    fn a_claim_that_falls_short_lets_the_next_grow_no_further() {
        let steps = [(999, 10), (50, 10), (999, 10), (999, 10)];
        assert_eq!(sizes(1_024, &steps), [32, 64, 64, 128]);
    }

    #[test]
    fn claims_of_slow_packets_stay_small_and_become_small_again() {
        assert_eq!(sizes(1_024, &[(999, 400); 4]), [32, 32, 32, 32]);
        assert_eq!(sizes(1_024, &[(999, 180); 4]), [32, 64, 64, 64]);
        let steps = [(999, 10), (999, 10), (999, 180), (999, 180), (999, 600), (999, 600)];
        assert_eq!(sizes(1_024, &steps), [32, 64, 128, 64, 64, 32]);
    }

    #[test]
    fn an_idle_claimant_begins_anew() {
        let mut size = ClaimSize::new(1_024);
        size.next(Time::ZERO);
        size.claimed(32, Time::ZERO);
        assert_eq!(size.next(Time::from_nanos(1)), 64);
        assert_eq!(size.next(Time::from_nanos(2)), 64, "the ring was used up");
        size.found_none();
        assert_eq!(size.next(Time::from_nanos(3)), LEAST);
    }
}
