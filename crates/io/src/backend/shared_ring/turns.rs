//! Leaving in the order of claims: what a claimant made of its claim waits until everything before it has left.
//!
//! A claim's *turn* is open from the claim until its lane has nothing more to add, and then closed. Closed turns are done in
//! the sense of [`Completion`]: the contiguous prefix leaves, under a lock that is tried; a lane that closes a turn before its
//! predecessors leaves what it has there and goes on, so that no lane waits for another. Lanes wait only when turns are used
//! up: as many descriptors may be claimed and not have left as the ring has.

use rheostat_base::sync::try_lock::TryLock;

use super::completion::Completion;

/// A closed turn, and the end of its claim.
type Slot<T> = TryLock<Option<(T, u64)>>;

/// The turns of the claims of one ring, each with a `T` that leaves when it comes.
pub struct Turns<T> {
    capacity: u64,
    completion: Completion,
    /// By the first descriptor of a claim: what leaves, and the end of the claim. Never contended: written before the done
    /// bits are set, and taken by the holder of the release lock behind them.
    slots: Box<[Slot<T>]>,
    /// The first descriptor of the next turn to leave. Under the release lock.
    next: TryLock<u64>,
}

impl<T> Turns<T> {
    /// No turn yet, for a ring of `capacity` descriptors, a power of two.
    pub fn new(capacity: u64) -> Turns<T> {
        Turns {
            capacity,
            completion: Completion::new(capacity),
            slots: (0..capacity).map(|_| TryLock::new(None)).collect(),
            next: TryLock::new(0),
        }
    }

    /// The descriptor below which claims must stay, so that each finds a place for its turn.
    #[inline]
    pub fn bound(&self) -> u64 {
        self.completion.tail() + self.capacity
    }

    /// Everything below has left.
    pub fn tail(&self) -> u64 {
        self.completion.tail()
    }

    /// Closes the turn of the claim from `first` to `end`, which lies below [`Turns::bound`]: `turn` leaves through `leave`
    /// now, with all that it held up, or when what is before it has left. `leave` is called in the order of claims, by one
    /// thread at a time.
    pub fn close(&self, first: u64, end: u64, turn: T, mut leave: impl FnMut(T)) {
        let place = |index: u64| (index & (self.capacity - 1)) as usize;
        *self.slots[place(first)].try_lock().expect("a turn is closed once") = Some((turn, end));
        self.completion.finish(first, end, |_, end| {
            let mut next = self.next.try_lock().expect("the release lock is held");
            // The end may lie within a claim, some of whose done bits were not seen yet: its turn is complete all the same.
            while *next < end {
                let slot = self.slots[place(*next)]
                    .try_lock()
                    .expect("a closed turn is left alone")
                    .take();
                let (turn, behind) = slot.expect("a closed turn is there");
                leave(turn);
                *next = behind;
            }
        });
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn turns_leave_in_the_order_of_claims_whichever_is_closed_first() {
        let turns = Turns::new(8);
        let mut left = Vec::new();
        for (first, end) in [(3, 4), (1, 3), (0, 1), (5, 8), (4, 5)] {
            turns.close(first, end, first, |turn| left.push(turn));
            if first == 1 {
                assert_eq!((turns.tail(), turns.bound()), (0, 8), "the first is still open");
            }
        }
        assert_eq!(left, [0, 1, 3, 4, 5]);
        assert_eq!((turns.tail(), turns.bound()), (8, 16));
    }

    #[test]
    fn turns_come_round() {
        let turns = Turns::new(4);
        let mut left = Vec::new();
        for first in (0..100).step_by(2) {
            turns.close(first + 1, first + 2, first + 1, |turn| left.push(turn));
            turns.close(first, first + 1, first, |turn| left.push(turn));
        }
        assert_eq!(left, (0..100).collect::<Vec<_>>());
    }
}
