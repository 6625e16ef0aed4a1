//! Schedulers whose workers do all stages.

use std::collections::VecDeque;

use rheostat_tcp::sched::{Queueing, choose_theft, member_of_connection, members_to_wake};

use super::events::Next;
use super::lock::Lock;
use super::source::Arrival;
use super::system::{System, SystemState, hash_of};
use super::trial::Setting;

/// What a worker does until it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing: it looks at queues that are empty.
    Idle,
    /// It looks for a queue to steal from.
    Look,
    /// It takes requests from a queue, under the queue's lock.
    Take,
    /// It waits until the ticket of its request is due.
    Wait(u32),
    /// TCP in, and the application.
    Work(u32),
    /// TCP out.
    Send,
}

/// Inline workers.
#[derive(Debug)]
pub(super) struct Inline {
    state: SystemState,
    queueing: Queueing,
    /// Requests that wait, by receive queue.
    queues: Vec<VecDeque<u32>>,
    locks: Vec<Lock>,
    /// The lengths of queues.
    lengths: Vec<u32>,
    /// Their sum.
    waiting: u32,
    steps: Vec<Step>,
    /// What a worker has taken out and not begun with.
    taken: Vec<VecDeque<u32>>,
    /// Workers that are idle, as bits.
    idle: u64,
    /// Workers that look for something to steal.
    looking: u32,
    /// The worker that was idle and took something last: the next one is another, as chance has it on a machine.
    last: usize,
    burst: u32,
    connections: u32,
}

impl Inline {
    pub(super) fn new(setting: &Setting<'_>, queueing: Queueing) -> Inline {
        let (workers, queues) = (setting.scheduler.workers(), setting.scheduler.receive_queues());
        let (workers, queues) = (usize::from(workers), usize::from(queues));
        Inline {
            state: SystemState::new(setting),
            queueing,
            queues: vec![VecDeque::new(); queues],
            locks: vec![Lock::new(); queues],
            lengths: vec![0; queues],
            waiting: 0,
            steps: vec![Step::Idle; workers],
            taken: vec![VecDeque::new(); workers],
            idle: u64::MAX >> (64 - workers),
            looking: 0,
            last: 0,
            burst: setting.burst.max(1),
            connections: setting.connections(),
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
        Some(of.trailing_zeros() as usize)
    }

    fn rouse(&mut self, worker: usize, now: u64) -> u64 {
        self.idle &= !(1 << worker);
        self.state.rouse(worker, now)
    }

    fn rest(&mut self, worker: usize, now: u64) {
        self.idle |= 1 << worker;
        self.steps[worker] = Step::Idle;
        self.state.rest(worker, now);
    }

    fn set(&mut self, worker: usize, step: Step, time: u64) {
        self.steps[worker] = step;
        self.state.events.set(worker, time);
    }

    /// A worker takes up to `most` requests from a queue that is not empty, under its lock.
    fn take(&mut self, worker: usize, queue: usize, most: u32, now: u64) {
        let count = most.min(self.lengths[queue]);
        self.lengths[queue] -= count;
        self.waiting -= count;
        self.taken[worker].extend(self.queues[queue].drain(..count as usize));
        let (start, got) = self.locks[queue].take(worker, now);
        let cost = self.state.queue_lock(got);
        let end = self.state.stalls.end(worker, start, cost);
        self.locks[queue].give_back(end);
        self.set(worker, Step::Take, end);
    }

    /// A worker begins with the next request that it has taken, or looks for more.
    fn go_on(&mut self, worker: usize, now: u64) {
        if let Some(number) = self.taken[worker].pop_front() {
            self.enter(worker, number, now);
            return;
        }
        let queue = if self.queueing == Queueing::Cfcfs { 0 } else { worker };
        if self.queueing == Queueing::Dfcfs {
            match self.queues[queue].pop_front() {
                Some(number) => self.work(worker, number, now),
                None => self.rest(worker, now),
            }
        } else if self.lengths[queue] > 0 {
            self.take(worker, queue, self.burst, now);
        } else if self.queueing == Queueing::Ws && self.waiting > 0 {
            self.look(worker, now);
        } else {
            self.rest(worker, now);
        }
    }

    fn look(&mut self, worker: usize, now: u64) {
        self.looking += 1;
        let end = now + self.state.costs.steal();
        self.set(worker, Step::Look, end);
    }

    /// As many idle workers look for something to steal as there is waiting.
    fn have_looked_at(&mut self, now: u64) {
        for _ in 0..members_to_wake(self.waiting, self.looking, self.idle.count_ones()) {
            if let Some(worker) = self.any_idle() {
                let now = self.rouse(worker, now);
                self.look(worker, now);
            }
        }
    }

    /// A worker enters TCP in with a request if its ticket is due, and waits otherwise.
    fn enter(&mut self, worker: usize, number: u32, now: u64) {
        let ticket = self.state.requests.get(number).ticket;
        let connection = self.state.requests.connection_of(number);
        if connection.due != ticket {
            connection.waiting |= 1 << worker;
            self.steps[worker] = Step::Wait(number);
            return;
        }
        self.work(worker, number, now);
        // The worker that waited for this ticket is next for the lock.
        loop {
            let connection = self.state.requests.connection_of(number);
            let (due, mut waiting) = (connection.due, connection.waiting);
            if waiting == 0 {
                return;
            }
            let next = std::iter::from_fn(|| {
                let worker = (waiting != 0).then(|| waiting.trailing_zeros() as usize)?;
                waiting &= waiting - 1;
                Some(worker)
            })
            .find_map(|worker| match self.steps[worker] {
                Step::Wait(other) if self.state.requests.get(other).ticket == due => {
                    Some((worker, other))
                }
                _ => None,
            });
            let Some((worker, other)) = next else { return };
            self.state.requests.connection_of(number).waiting &= !(1 << worker);
            self.work(worker, other, now);
        }
    }

    fn work(&mut self, worker: usize, number: u32, now: u64) {
        let end = self.state.receive_and_work(worker, number, now);
        self.set(worker, Step::Work(number), end);
    }
}

impl System for Inline {
    fn arrive(&mut self, arrival: &Arrival) {
        let now = arrival.at;
        let number = self.state.requests.insert(arrival);
        let hash = hash_of(arrival.connection, self.connections);
        let queue = usize::from(member_of_connection(hash, self.queues.len() as u16));
        let is_idle = |worker: usize| self.idle & (1 << worker) != 0;
        if self.queueing == Queueing::Dfcfs {
            if is_idle(queue) {
                let now = self.rouse(queue, now);
                self.work(queue, number, now);
            } else {
                self.queues[queue].push_back(number);
            }
            return;
        }
        self.queues[queue].push_back(number);
        self.lengths[queue] += 1;
        self.waiting += 1;
        let worker = match self.queueing {
            Queueing::Cfcfs => self.any_idle(),
            _ => is_idle(queue).then_some(queue),
        };
        if let Some(worker) = worker {
            let now = self.rouse(worker, now);
            self.take(worker, queue, self.burst, now);
        } else if self.queueing == Queueing::Ws {
            self.have_looked_at(now);
        }
    }

    fn advance(&mut self, next: Next) {
        let (now, worker) = (next.time(), self.state.events.take(next));
        match self.steps[worker] {
            Step::Look => {
                self.looking -= 1;
                // What came into its own queue meanwhile is its first.
                if self.lengths[worker] > 0 {
                    self.take(worker, worker, self.burst, now);
                } else if let Some(theft) = choose_theft(worker, &self.lengths, self.burst) {
                    self.take(worker, theft.victim, theft.requests, now);
                } else {
                    self.rest(worker, now);
                }
                self.have_looked_at(now);
            }
            Step::Work(number) => {
                let end = self.state.reply(worker, number, now);
                if end > now {
                    self.set(worker, Step::Send, end);
                } else {
                    self.go_on(worker, now);
                }
            }
            Step::Take | Step::Send => self.go_on(worker, now),
            Step::Idle | Step::Wait(_) => {}
        }
    }

    fn state(&self) -> &SystemState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut SystemState {
        &mut self.state
    }
}
