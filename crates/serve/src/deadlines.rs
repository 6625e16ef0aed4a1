//! When connections want to be called: one heap per shard, whose entries are re-armed lazily.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rheostat_base::Time;

/// Entries that are out of date beyond which the heap is built anew, beside one per connection.
const SLACK: usize = 64;

/// The earliest entry of a connection in [`Deadlines`]; kept beside the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Armed(Time);

impl Armed {
    /// There is no entry.
    pub(crate) const NEVER: Armed = Armed(Time::NEVER);
}

/// The deadlines of a shard's connections, which are named by numbers.
///
/// A deadline that moves back leaves its entry where it is, and is entered again when that comes; one that moves forward is
/// entered beside it. So most segments change nothing here. At most `2 n + 64` entries are kept for `n` connections.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    heap: BinaryHeap<Reverse<(Time, u32)>>,
}

impl Deadlines {
    /// The earliest time at which an entry comes.
    pub(crate) fn next(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |Reverse((at, _))| *at)
    }

    /// Sees to it that `number` comes at `at` at the latest. `live` is the number of connections; `armed` states what entry each
    /// has.
    pub(crate) fn arm(&mut self, number: u32, at: Time, armed: &mut Armed) {
        if at < armed.0 {
            armed.0 = at;
            self.heap.push(Reverse((at, number)));
        }
    }

    /// Whether there are so many entries out of date that [`Deadlines::rebuild`] is due.
    pub(crate) fn is_bloated(&self, live: usize) -> bool {
        self.heap.len() > 2 * live + SLACK
    }

    /// Keeps these entries alone.
    pub(crate) fn rebuild(&mut self, entries: impl Iterator<Item = (u32, Armed)>) {
        self.heap.clear();
        let armed = entries.filter(|(_, armed)| *armed != Armed::NEVER);
        self.heap.extend(armed.map(|(number, Armed(at))| Reverse((at, number))));
    }

    /// Takes out an entry that has come by `now`: a number, and when it was to come.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(u32, Time)> {
        let Reverse((at, number)) = *self.heap.peek().filter(|Reverse((at, _))| *at <= now)?;
        self.heap.pop();
        Some((number, at))
    }

    /// Whether an entry that was taken out is the connection's, which has none then; one that is out of date is not.
    pub(crate) fn is_of(at: Time, armed: &mut Armed) -> bool {
        let is = armed.0 == at;
        if is {
            *armed = Armed::NEVER;
        }
        is
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Time = Time::from_secs;

    #[test]
    fn a_deadline_that_moves_back_adds_no_entry_and_one_that_moves_forward_comes_in_time() {
        let (mut deadlines, mut armed) = (Deadlines::default(), Armed::NEVER);
        deadlines.arm(7, S(5), &mut armed);
        deadlines.arm(7, S(9), &mut armed);
        assert_eq!((deadlines.heap.len(), deadlines.next()), (1, S(5)));
        deadlines.arm(7, S(3), &mut armed);
        assert_eq!(deadlines.next(), S(3));
        assert_eq!(deadlines.pop(S(2)), None);
        let (number, at) = deadlines.pop(S(3)).unwrap();
        assert_eq!((number, Deadlines::is_of(at, &mut armed)), (7, true));
        // What is left is out of date.
        let (number, at) = deadlines.pop(S(5)).unwrap();
        assert_eq!((number, Deadlines::is_of(at, &mut armed)), (7, false));
        assert_eq!(deadlines.next(), Time::NEVER);
    }

    #[test]
    fn entries_out_of_date_do_not_pile_up() {
        let (mut deadlines, mut armed) = (Deadlines::default(), Armed::NEVER);
        for at in (0..1_000).rev() {
            deadlines.arm(1, S(at), &mut armed);
            if deadlines.is_bloated(1) {
                deadlines.rebuild([(1, armed)].into_iter());
            }
            assert!(deadlines.heap.len() <= 2 + SLACK + 1);
            assert_eq!(deadlines.next(), S(at));
        }
    }
}
