//! What requests have in common that a worker finds in one poll.

use super::requests::SimRequest;

/// A request that takes longer, in picoseconds, is a long one: its reply and those before it leave at once.
const LONG: u64 = 5_000_000;
/// A reply waits no longer than this, in picoseconds, if the next request takes as long as the last.
const LONGEST_WAIT: u64 = 20_000_000;

/// The poll that a worker is in.
#[derive(Clone, Debug, Default)]
struct Poll {
    /// Requests that it may still begin with.
    left: u32,
    /// Whether it has found any.
    has_worked: bool,
    /// When the request at hand was begun.
    began: u64,
    /// When the oldest reply was made that waits.
    oldest: Option<u64>,
    /// Requests whose replies leave at its end.
    held: Vec<SimRequest>,
}

/// The polls of workers. A poll costs something beside its requests, and, where connections have one worker, replies leave at its end.
#[derive(Debug)]
pub(super) struct Polls {
    /// Requests of a poll at most.
    burst: u32,
    /// Whether replies wait for the end of their poll.
    holds: bool,
    /// By worker.
    all: Vec<Poll>,
}

impl Polls {
    pub(super) fn new(workers: usize, burst: u32, holds: bool) -> Polls {
        Polls { burst: burst.max(1), holds, all: vec![Poll::default(); workers] }
    }

    /// A poll of a worker begins, with so many requests at most.
    pub(super) fn begin(&mut self, worker: usize, most: u32) {
        self.all[worker].left = most.min(self.burst);
    }

    /// Whether a worker may go on with another request in its poll.
    pub(super) fn goes_on(&self, worker: usize) -> bool {
        self.all[worker].left > 0
    }

    /// A worker begins with a request.
    pub(super) fn note_request(&mut self, worker: usize, now: u64) {
        let poll = &mut self.all[worker];
        poll.left = poll.left.saturating_sub(1);
        poll.has_worked = true;
        poll.began = now;
    }

    /// The application is done with a worker's request at `now`. Returns whether replies leave at once.
    pub(super) fn note_end(&mut self, worker: usize, now: u64) -> bool {
        let poll = &mut self.all[worker];
        let took = now - poll.began;
        if !self.holds {
            if took > LONG {
                poll.left = 0;
            }
            return true;
        }
        let age = now - *poll.oldest.get_or_insert(now);
        took > LONG || age + took > LONGEST_WAIT
    }

    /// A reply waits for the end of the poll, for a long one, or until it has waited for long.
    pub(super) fn hold(&mut self, worker: usize, request: SimRequest) {
        self.all[worker].held.push(request);
    }

    /// Replies that leave now.
    pub(super) fn release(&mut self, worker: usize) -> impl Iterator<Item = SimRequest> {
        let poll = &mut self.all[worker];
        poll.oldest = None;
        poll.held.drain(..)
    }

    /// The poll ends. Returns whether it found anything.
    pub(super) fn end(&mut self, worker: usize) -> bool {
        std::mem::take(&mut self.all[worker].has_worked)
    }
}
