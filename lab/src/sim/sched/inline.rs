//! Schedulers whose workers do all stages.

use super::receivers::{Found, Receivers};
use super::source::Arrival;
use super::system::{System, SystemState};
use super::trial::Setting;
use crate::event_queue::Next;

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
    Wait,
    /// TCP in, and the application.
    Work(u32),
    /// TCP out.
    Send,
    /// The rest of a poll.
    Flush,
}

/// Inline workers.
#[derive(Debug)]
pub(super) struct Inline {
    state: SystemState,
    receivers: Receivers,
    steps: Vec<Step>,
}

impl Inline {
    pub(super) fn new(setting: &Setting<'_>) -> Inline {
        Inline {
            state: SystemState::new(setting),
            receivers: Receivers::new(setting),
            steps: vec![Step::Idle; usize::from(setting.scheduler.workers())],
        }
    }

    fn rouse(&mut self, worker: usize, now: u64) -> u64 {
        self.receivers.set_idle(worker, false);
        self.state.rouse(worker, now)
    }

    fn set(&mut self, worker: usize, step: Step, time: u64) {
        self.steps[worker] = step;
        self.state.events.set(worker, time);
    }

    /// A worker begins with the next request of its poll, or ends it.
    fn go_on(&mut self, worker: usize, now: u64) {
        if self.receivers.has_taken(worker) || self.state.polls.goes_on(worker) {
            let found = self.receivers.next(&mut self.state, worker, now);
            if found != Found::Nothing {
                self.begin(worker, found, now);
                return;
            }
        }
        let end = self.state.end_poll(worker, now);
        if end > now {
            self.set(worker, Step::Flush, end);
        } else {
            self.poll(worker, now);
        }
    }

    /// A worker begins a poll.
    fn poll(&mut self, worker: usize, now: u64) {
        self.state.polls.begin(worker, self.receivers.most_of_poll(worker));
        let found = self.receivers.next(&mut self.state, worker, now);
        self.begin(worker, found, now);
    }

    fn begin(&mut self, worker: usize, found: Found, now: u64) {
        match found {
            Found::Request(number) => self.enter(worker, number, now),
            Found::Taking(end) => self.set(worker, Step::Take, end),
            Found::Looking(end) => self.set(worker, Step::Look, end),
            Found::Nothing => {
                self.receivers.set_idle(worker, true);
                self.steps[worker] = Step::Idle;
                self.state.rest(worker, now);
            }
        }
    }

    /// As many idle workers look for something to steal as there is waiting.
    fn rouse_thieves(&mut self, now: u64) {
        while let Some(worker) = self.receivers.thief() {
            let start = self.rouse(worker, now);
            self.state.polls.begin(worker, u32::MAX);
            let found = self.receivers.look(&mut self.state, start);
            self.begin(worker, found, start);
        }
    }

    /// A worker enters TCP in with a request if its ticket is due, and waits otherwise.
    fn enter(&mut self, worker: usize, number: u32, now: u64) {
        if !self.receivers.admits(&mut self.state, worker, number) {
            self.steps[worker] = Step::Wait;
            return;
        }
        self.work(worker, number, now);
        while let Some((worker, other)) = self.receivers.next_due(&mut self.state, number) {
            self.work(worker, other, now);
        }
    }

    fn work(&mut self, worker: usize, number: u32, now: u64) {
        let received = self.state.receive(worker, number, now);
        let service = self.state.requests.get(number).service;
        let end = self.state.stalls.end(worker, received, service);
        self.set(worker, Step::Work(number), end);
    }
}

impl System for Inline {
    fn arrive(&mut self, arrival: &Arrival) {
        let now = arrival.at;
        let number = self.state.requests.insert(arrival);
        if let Some(worker) = self.receivers.arrive(number, arrival.connection) {
            let now = self.rouse(worker, now);
            self.poll(worker, now);
        } else {
            self.rouse_thieves(now);
        }
    }

    fn advance(&mut self, next: Next) {
        let (now, worker) = (next.time(), self.state.events.take(next));
        match self.steps[worker] {
            Step::Look => {
                let found = self.receivers.end_look(&mut self.state, worker, now);
                let end = match found {
                    Found::Nothing => self.state.end_poll(worker, now),
                    _ => now,
                };
                if end > now {
                    self.set(worker, Step::Flush, end);
                } else {
                    self.begin(worker, found, now);
                }
                self.rouse_thieves(now);
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
            Step::Flush => self.poll(worker, now),
            Step::Idle | Step::Wait => {}
        }
    }

    fn state(&self) -> &SystemState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut SystemState {
        &mut self.state
    }
}
