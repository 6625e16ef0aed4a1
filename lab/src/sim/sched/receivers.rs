//! Receive queues, and the workers that take requests out of them: a queue for each, one for all, or a queue for each that idle
//! workers steal from.

use std::collections::VecDeque;

use rheostat_tcp::sched::{Queueing, choose_theft, member_of_connection, members_to_wake};

use super::lock::Lock;
use super::system::{SystemState, hash_of};
use super::trial::Setting;

/// What a worker finds that is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceivedRequest {
    /// A request, which it begins with.
    Request(u32),
    /// Requests, which it takes under the queue's lock until then.
    Taking(u64),
    /// Requests wait elsewhere: it looks for the queue to steal from until then.
    Looking(u64),
    Nothing,
}

/// Workers with their receive queues.
#[derive(Debug)]
pub(super) struct Receivers {
    queueing: Queueing,
    /// Requests that wait, by receive queue.
    queues: Vec<VecDeque<u32>>,
    locks: Vec<Lock>,
    /// The lengths of queues.
    lengths: Vec<u32>,
    /// Their sum.
    waiting: u32,
    /// What a worker has taken out and not begun with.
    taken: Vec<VecDeque<u32>>,
    /// Requests whose tickets are not due, by the worker that waits.
    undue: Vec<Option<u32>>,
    /// Workers that are idle, as bits.
    idle: u64,
    /// Workers that look for something to steal.
    looking: u32,
    /// The worker that was idle and took something last: the next one is another, as chance has it on a machine.
    last: usize,
    burst: u32,
    connections: u32,
}

impl Receivers {
    pub(super) fn new(setting: &Setting<'_>) -> Receivers {
        let scheduler = setting.scheduler;
        let workers = usize::from(scheduler.network_workers());
        let queues = usize::from(scheduler.receive_queues());
        Receivers {
            queueing: scheduler.name().receiving(),
            queues: vec![VecDeque::new(); queues],
            locks: vec![Lock::new(); queues],
            lengths: vec![0; queues],
            waiting: 0,
            taken: vec![VecDeque::new(); workers],
            undue: vec![None; workers],
            idle: u64::MAX >> (64 - workers),
            looking: 0,
            last: 0,
            burst: setting.burst.max(1),
            connections: setting.connections(),
        }
    }

    /// A request of this connection has arrived. Returns the idle worker that begins, if there is one.
    pub(super) fn arrive(&mut self, number: u32, connection: u32) -> Option<usize> {
        let hash = hash_of(connection, self.connections);
        let queue = usize::from(member_of_connection(hash, self.queues.len() as u16));
        self.queues[queue].push_back(number);
        self.lengths[queue] += 1;
        self.waiting += 1;
        match self.queueing {
            Queueing::Cfcfs => self.any_idle(),
            Queueing::Dfcfs | Queueing::Ws => self.is_idle(queue).then_some(queue),
        }
    }

    pub(super) fn is_idle(&self, worker: usize) -> bool {
        self.idle & (1 << worker) != 0
    }

    pub(super) fn set_idle(&mut self, worker: usize, is_idle: bool) {
        match is_idle {
            true => self.idle |= 1 << worker,
            false => self.idle &= !(1 << worker),
        }
    }

    /// Whether a worker has taken requests that it has not begun with.
    pub(super) fn has_taken(&self, worker: usize) -> bool {
        !self.taken[worker].is_empty()
    }

    /// Whether a worker finds anything.
    pub(super) fn finds(&self, worker: usize) -> bool {
        let queue = if self.queueing == Queueing::Cfcfs { 0 } else { worker };
        let may_steal = self.queueing == Queueing::Ws && self.waiting > 0;
        self.has_taken(worker) || self.lengths[queue] > 0 || may_steal
    }

    /// Requests of a poll that begins now at most: a queue of its own is received from once in it, a shared one for each request.
    pub(super) fn most_of_poll(&self, worker: usize) -> u32 {
        match self.queueing {
            Queueing::Dfcfs => self.lengths[worker],
            Queueing::Cfcfs | Queueing::Ws => u32::MAX,
        }
    }

    /// An idle worker, not always the same.
    fn any_idle(&mut self) -> Option<usize> {
        let behind = self.idle & (u64::MAX << self.last << 1);
        let of = if behind == 0 { self.idle } else { behind };
        if of == 0 {
            return None;
        }
        self.last = of.trailing_zeros() as usize;
        Some(self.last)
    }

    /// An idle worker that should look for something to steal, if more requests wait than workers look for.
    pub(super) fn thief(&mut self) -> Option<usize> {
        if self.queueing != Queueing::Ws {
            return None;
        }
        let idle = self.idle.count_ones();
        (members_to_wake(self.waiting, self.looking, idle) > 0).then(|| self.any_idle())?
    }

    /// What a worker that is free finds at `now`.
    pub(super) fn next(
        &mut self,
        state: &mut SystemState,
        worker: usize,
        now: u64,
    ) -> ReceivedRequest {
        if let Some(number) = self.taken[worker].pop_front() {
            return ReceivedRequest::Request(number);
        }
        let queue = if self.queueing == Queueing::Cfcfs { 0 } else { worker };
        if self.lengths[queue] == 0 {
            return match self.queueing == Queueing::Ws && self.waiting > 0 {
                true => self.look(state, now),
                false => ReceivedRequest::Nothing,
            };
        }
        if self.queueing != Queueing::Dfcfs {
            return self.take(state, worker, (queue, self.burst), now);
        }
        self.lengths[queue] -= 1;
        self.waiting -= 1;
        self.queues[queue].pop_front().map_or(ReceivedRequest::Nothing, ReceivedRequest::Request)
    }

    /// A worker looks for a queue to steal from.
    pub(super) fn look(&mut self, state: &mut SystemState, now: u64) -> ReceivedRequest {
        self.looking += 1;
        ReceivedRequest::Looking(now + state.costs.steal())
    }

    /// A worker has looked for a queue to steal from.
    pub(super) fn end_look(
        &mut self,
        state: &mut SystemState,
        worker: usize,
        now: u64,
    ) -> ReceivedRequest {
        self.looking -= 1;
        // What came into its own queue meanwhile is its first.
        if self.lengths[worker] > 0 {
            return self.take(state, worker, (worker, self.burst), now);
        }
        match choose_theft(worker, &self.lengths, self.burst) {
            Some(theft) => self.take(state, worker, (theft.victim, theft.requests), now),
            None => ReceivedRequest::Nothing,
        }
    }

    /// A worker takes up to `most` requests from a queue that is not empty, under its lock.
    fn take(
        &mut self,
        state: &mut SystemState,
        worker: usize,
        (queue, most): (usize, u32),
        now: u64,
    ) -> ReceivedRequest {
        let count = most.min(self.lengths[queue]);
        self.lengths[queue] -= count;
        self.waiting -= count;
        self.taken[worker].extend(self.queues[queue].drain(..count as usize));
        let (start, got) = self.locks[queue].take(worker, now);
        let cost = state.queue_lock(got);
        let end = state.stalls.end(worker, start, cost);
        self.locks[queue].give_back(end);
        ReceivedRequest::Taking(end)
    }

    /// Whether a worker may enter TCP in with a request: its ticket is due, or connections have one worker each. If not, the worker
    /// waits.
    pub(super) fn admits(&mut self, state: &mut SystemState, worker: usize, number: u32) -> bool {
        if self.queueing == Queueing::Dfcfs {
            return true;
        }
        let ticket = state.requests.get(number).ticket;
        let connection = state.requests.connection_of(number);
        let is_due = connection.due == ticket;
        if !is_due {
            connection.waiting |= 1 << worker;
            self.undue[worker] = Some(number);
        }
        is_due
    }

    /// The worker that waits for the ticket which is due now, of the connection of this request, and what it has: it is next for the
    /// connection's lock.
    pub(super) fn next_due(
        &mut self,
        state: &mut SystemState,
        number: u32,
    ) -> Option<(usize, u32)> {
        let connection = state.requests.connection_of(number);
        let (due, mut waiting) = (connection.due, connection.waiting);
        while waiting != 0 {
            let worker = waiting.trailing_zeros() as usize;
            waiting &= waiting - 1;
            let has_due = |other: &u32| state.requests.get(*other).ticket == due;
            if let Some(other) = self.undue[worker].filter(has_due) {
                self.undue[worker] = None;
                state.requests.connection_of(number).waiting &= !(1 << worker);
                return Some((worker, other));
            }
        }
        None
    }
}
