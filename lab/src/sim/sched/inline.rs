//! Schedulers whose workers do all stages.

use super::receivers::{ReceivedRequest, Receivers};
use super::source::RequestArrival;
use super::system::{System, SystemState};
use super::trial::Setting;
use crate::event_queue::NextEvent;

/// What a worker does until it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InlineStep {
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
    steps: Vec<InlineStep>,
}

impl Inline {
    pub(super) fn new(setting: &Setting<'_>) -> Inline {
        Inline {
            state: SystemState::new(setting),
            receivers: Receivers::new(setting),
            steps: vec![InlineStep::Idle; usize::from(setting.scheduler.workers())],
        }
    }

    fn rouse(&mut self, worker: usize, now: u64) -> u64 {
        self.receivers.set_idle(worker, false);
        self.state.rouse(worker, now)
    }

    fn set(&mut self, worker: usize, step: InlineStep, time: u64) {
        self.steps[worker] = step;
        self.state.events.set(worker, time);
    }

    /// A worker begins with the next request of its poll, or ends it.
    fn go_on(&mut self, worker: usize, now: u64) {
        if self.receivers.has_taken(worker) || self.state.polls.goes_on(worker) {
            let found = self.receivers.next(&mut self.state, worker, now);
            if found != ReceivedRequest::Nothing {
                self.begin(worker, found, now);
                return;
            }
        }
        let end = self.state.end_poll(worker, now);
        if end > now {
            self.set(worker, InlineStep::Flush, end);
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

    fn begin(&mut self, worker: usize, found: ReceivedRequest, now: u64) {
        match found {
            ReceivedRequest::Request(number) => self.enter(worker, number, now),
            ReceivedRequest::Taking(end) => self.set(worker, InlineStep::Take, end),
            ReceivedRequest::Looking(end) => self.set(worker, InlineStep::Look, end),
            ReceivedRequest::Nothing => {
                self.receivers.set_idle(worker, true);
                self.steps[worker] = InlineStep::Idle;
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
            self.steps[worker] = InlineStep::Wait;
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
        self.set(worker, InlineStep::Work(number), end);
    }
}

impl System for Inline {
    fn arrive(&mut self, arrival: &RequestArrival) {
        let now = arrival.at;
        let number = self.state.requests.insert(arrival);
        if let Some(worker) = self.receivers.arrive(number, arrival.connection) {
            let now = self.rouse(worker, now);
            self.poll(worker, now);
        } else {
            self.rouse_thieves(now);
        }
    }

    fn advance(&mut self, next: NextEvent) {
        let (now, worker) = (next.time(), self.state.events.take(next));
        match self.steps[worker] {
            InlineStep::Look => {
                let found = self.receivers.end_look(&mut self.state, worker, now);
                let end = match found {
                    ReceivedRequest::Nothing => self.state.end_poll(worker, now),
                    _ => now,
                };
                if end > now {
                    self.set(worker, InlineStep::Flush, end);
                } else {
                    self.begin(worker, found, now);
                }
                self.rouse_thieves(now);
            }
            InlineStep::Work(number) => {
                let end = self.state.reply(worker, number, now);
                if end > now {
                    self.set(worker, InlineStep::Send, end);
                } else {
                    self.go_on(worker, now);
                }
            }
            InlineStep::Take | InlineStep::Send => self.go_on(worker, now),
            InlineStep::Flush => self.poll(worker, now),
            InlineStep::Idle | InlineStep::Wait => {}
        }
    }

    fn state(&self) -> &SystemState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut SystemState {
        &mut self.state
    }
}
