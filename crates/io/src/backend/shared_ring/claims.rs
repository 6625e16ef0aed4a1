//! Which descriptors belong to which claimant.

use std::ops::Range;

use rheostat_base::sync::atomic::{AtomicU64, Ordering};

use super::completion::Completion;
use crate::backend::padded::Padded;

/// Up to so many packets are looked at one by one.
const COUNTED: usize = if cfg!(any(loom, shuttle)) { 1 } else { super::claim_size::LEAST };

/// The claims on the descriptors of one ring.
pub struct Claims {
    capacity: u64,
    /// On the same lines: a claimant that ends a claim makes the next one soon after, and then has them still.
    indices: Padded<Indices>,
}

/// What all claimants write.
struct Indices {
    /// Descriptors ever claimed.
    claimed: AtomicU64,
    /// Those of them that have been taken, and given back to the producer.
    taken: Completion,
}

/// What a descriptor that is not claimed holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Nothing yet.
    Empty,
    /// A part of a packet that goes on in the next descriptor.
    Part,
    /// A packet, or the last part of one.
    Whole,
}

/// Descriptors that one claimant alone may read: from `first` to `end`. Has to be given to [`Claims::finish`], at once or
/// after several bursts were taken of it.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "descriptors that are not finished stop the ring one lap later"]
pub struct Claim<T> {
    /// The first descriptor.
    pub first: u64,
    /// The first behind them.
    pub end: u64,
    /// The first that was not taken yet.
    next: u64,
    /// What was drawn for it.
    pub ticket: T,
    /// Races that were lost before.
    pub retries: u64,
}

/// Why there is nothing to claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoClaim {
    /// No packet waits.
    Empty,
    /// All descriptors are claimed, and the one at the tail is not done with.
    UsedUp,
}

impl<T> Claim<T> {
    /// The next descriptors to take, `limit` at most.
    #[inline]
    pub fn take(&mut self, limit: usize) -> Range<u64> {
        let first = self.next;
        self.next += (self.end - first).min(limit as u64);
        first..self.next
    }

    /// Descriptors that were not taken yet.
    #[inline]
    pub fn left(&self) -> Range<u64> {
        self.next..self.end
    }
}

impl Claims {
    /// No claims on a ring of `capacity` descriptors, a power of two.
    pub fn new(capacity: u64) -> Claims {
        assert!(capacity.is_power_of_two(), "indices are reduced by a mask");
        let claimed = AtomicU64::new(0);
        let indices = Indices { claimed, taken: Completion::new(capacity) };
        Claims { capacity, indices: Padded(indices) }
    }

    /// Descriptors ever claimed.
    pub fn claimed(&self) -> u64 {
        // Acquire: pairs with the Release of the compare-and-swap in `claim`.
        self.indices.0.claimed.load(Ordering::Acquire)
    }

    /// The oldest descriptor that is not given back.
    pub fn tail(&self) -> u64 {
        self.indices.0.taken.tail()
    }

    /// Claims up to `limit` whole packets, none beyond index `bound`. `ready` tells of an unclaimed descriptor what it
    /// holds, having acquired what the producer wrote; what it says of one that another claimant takes meanwhile is not
    /// used. `draw` is called with the number of descriptors before each attempt to claim them: of two claims, the later
    /// one's ticket was drawn later.
    ///
    /// Looks at a burst of packets at most, and a few places beyond, for each race that is lost, and a race is lost only to a claimant that has won it.
    ///
    /// # Errors
    /// [`NoClaim`] when nothing can be claimed.
    #[inline]
    pub fn claim<T>(
        &self,
        limit: usize,
        bound: u64,
        ready: impl Fn(u64) -> Readiness,
        mut draw: impl FnMut(u64) -> T,
    ) -> Result<Claim<T>, NoClaim> {
        let mut retries = 0;
        let mut first = self.claimed();
        loop {
            // Beyond this, what a descriptor says may be of the last lap: its claimant has not cleared it yet.
            let bound = bound.min(self.tail() + self.capacity);
            let end = whole_packets(first, bound, limit, &ready);
            if end == first {
                let is_used_up = first >= bound && limit > 0;
                return Err(if is_used_up { NoClaim::UsedUp } else { NoClaim::Empty });
            }
            let ticket = draw(end - first);
            // Release: pairs with the Acquire load in `claimed`, and with that of the failed exchange here: the next
            // claimant draws after this one. The descriptors themselves were acquired by `ready`.
            match self.indices.0.claimed.compare_exchange(
                first,
                end,
                Ordering::Release,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(Claim { first, end, next: first, ticket, retries }),
                Err(claimed) => {
                    first = claimed;
                    retries += 1;
                }
            }
        }
    }

    /// Gives the descriptors of a claim back. `release` gets ranges of descriptors to hand to the producer, in order.
    #[inline]
    pub fn finish<T>(&self, claim: Claim<T>, release: impl FnMut(u64, u64)) -> T {
        self.indices.0.taken.finish(claim.first, claim.end, release);
        claim.ticket
    }
}

/// Where the last of up to `limit` whole packets from `first` on ends, below `bound`.
///
/// More than a burst is not counted, as that would take the lines of all its descriptors before the race for them: the
/// producer fills descriptors in order, so all before one that is ready are ready, or claimed, and then the race is lost.
#[inline]
fn whole_packets(first: u64, bound: u64, limit: usize, ready: &impl Fn(u64) -> Readiness) -> u64 {
    let mut limit = limit;
    while limit > COUNTED {
        let end = first.saturating_add(limit as u64);
        // With packets of several descriptors these are fewer packets than `limit`.
        if end <= bound && ready(end - 1) == Readiness::Whole {
            return end;
        }
        limit = (limit / 2).max(COUNTED);
    }
    let (mut end, mut packets) = (first, 0);
    for index in first..bound {
        if packets == limit {
            break;
        }
        match ready(index) {
            Readiness::Empty => break,
            Readiness::Part => {}
            Readiness::Whole => {
                end = index + 1;
                packets += 1;
            }
        }
    }
    end
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use Readiness::{Empty, Part, Whole};

    use super::*;

    fn claim(claims: &Claims, limit: usize, ring: &[Readiness]) -> Result<(u64, u64), NoClaim> {
        let ready = |index: u64| ring.get(index as usize).copied().unwrap_or(Empty);
        claims.claim(limit, u64::MAX, ready, |_| ()).map(|claim| (claim.first, claim.end))
    }

    #[test]
    fn a_claim_ends_where_a_packet_does() {
        let claims = Claims::new(8);
        let ring = [Whole, Part, Part, Whole, Part];
        assert_eq!(claim(&claims, 32, &ring), Ok((0, 4)));
        assert_eq!(claim(&claims, 32, &ring), Err(NoClaim::Empty), "its end has not come");
        let claims = Claims::new(8);
        assert_eq!(claim(&claims, 1, &ring), Ok((0, 1)));
        assert_eq!(claim(&claims, 1, &ring), Ok((1, 4)));
        assert_eq!(claim(&claims, 0, &[Whole; 8]), Err(NoClaim::Empty));
    }

    #[test]
    fn a_ring_is_used_up_until_the_oldest_claim_is_done() {
        let claims = Claims::new(2);
        let always = |_| Whole;
        let mut claimed: Vec<_> =
            (0..2).map(|_| claims.claim(1, u64::MAX, always, |_| ()).unwrap()).collect();
        let used_up = claims.claim(1, u64::MAX, always, |_| ());
        assert_eq!(used_up, Err(NoClaim::UsedUp));
        let mut released = Vec::new();
        claims.finish(claimed.pop().unwrap(), |from, to| released.push((from, to)));
        assert_eq!((released.len(), claims.tail()), (0, 0), "the first is still being read");
        assert!(claims.claim(1, u64::MAX, always, |_| ()).is_err());
        claims.finish(claimed.pop().unwrap(), |from, to| released.push((from, to)));
        assert_eq!((released, claims.tail()), (vec![(0, 2)], 2));
        assert_eq!(claims.claim(9, u64::MAX, always, |_| ()).unwrap().end, 4);
    }

    #[test]
    fn a_bound_of_the_caller_uses_the_ring_up_too() {
        let claims = Claims::new(8);
        assert_eq!(claims.claim(9, 3, |_| Whole, |_| ()).unwrap().end, 3);
        assert_eq!(claims.claim(9, 3, |_| Whole, |_| ()), Err(NoClaim::UsedUp));
    }
}
