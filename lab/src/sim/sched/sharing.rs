//! Processor sharing: what a scheduler that preempts at no cost would do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::source::RequestArrival;
use super::system::{System, SystemState};
use super::trial::Setting;
use crate::event_queue::NextEvent;

/// All requests in the service share the workers equally, each at most one of them (M/G/k-PS). TCP is part of a request's work; hand-offs and
/// locks cost nothing.
#[derive(Debug)]
pub(super) struct Sharing {
    state: SystemState,
    workers: f64,
    /// By the work that each request in service has had when it is done, if it came at the beginning: those with the least leave first.
    requests: BinaryHeap<Reverse<(u64, u32)>>,
    /// The work that a request has had which came at the beginning.
    attained: f64,
    /// The time of `attained`.
    updated: u64,
}

impl Sharing {
    pub(super) fn new(setting: &Setting<'_>) -> Sharing {
        Sharing {
            state: SystemState::new(setting),
            workers: f64::from(setting.scheduler.workers()),
            requests: BinaryHeap::new(),
            attained: 0.0,
            updated: 0,
        }
    }

    /// The part of a worker that each request has.
    fn rate(&self) -> f64 {
        (self.workers / self.requests.len().max(1) as f64).min(1.0)
    }

    fn update(&mut self, now: u64) {
        self.attained += now.saturating_sub(self.updated) as f64 * self.rate();
        self.updated = now;
    }

    fn set_next(&mut self, now: u64) {
        if let Some(Reverse((work, _))) = self.requests.peek() {
            let left = (f64::from_bits(*work) - self.attained).max(0.0);
            self.state.events.set(0, now + (left / self.rate()).ceil() as u64);
        }
    }
}

impl System for Sharing {
    fn arrive(&mut self, arrival: &RequestArrival) {
        self.update(arrival.at);
        let number = self.state.requests.insert(arrival);
        let work = arrival.service + self.state.costs.network();
        // Bits of positive numbers are ordered as the numbers.
        self.requests.push(Reverse(((self.attained + work as f64).to_bits(), number)));
        self.set_next(arrival.at);
    }

    fn advance(&mut self, next: NextEvent) {
        let now = next.time();
        self.state.events.take(next);
        self.update(now);
        if let Some(Reverse((_, number))) = self.requests.pop() {
            let connection = self.state.requests.get(number).connection;
            if !self.state.requests.complete(number) {
                self.state.meter.waited_for_order += 1;
            }
            while let Some(request) = self.state.requests.take_ready(connection) {
                self.state.meter.record(&request, now);
            }
        }
        self.set_next(now);
    }

    fn state(&self) -> &SystemState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut SystemState {
        &mut self.state
    }
}
