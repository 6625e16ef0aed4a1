//! What all schedulers are simulated with.

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::drawn::{DrawnCosts, Stalls};
use super::lock::Got;
use super::meter::SchedMeter;
use super::polls::Polls;
use super::requests::SimRequests;
use super::source::RequestArrival;
use super::trial::Setting;
use crate::event_queue::{EventQueue, NextEvent};
use crate::sim::pauses::Pauses;

/// A service under a scheduler.
pub(super) trait System {
    /// A request arrives.
    fn arrive(&mut self, arrival: &RequestArrival);

    /// A worker is due.
    fn advance(&mut self, next: NextEvent);

    fn state(&self) -> &SystemState;

    fn state_mut(&mut self) -> &mut SystemState;
}

/// The state that all schedulers have.
#[derive(Debug)]
pub(super) struct SystemState {
    pub(super) events: EventQueue,
    pub(super) requests: SimRequests,
    pub(super) costs: DrawnCosts,
    pub(super) stalls: Stalls,
    pub(super) meter: SchedMeter,
    pub(super) polls: Polls,
    /// Since when a worker has had nothing to do.
    idle_since: Vec<u64>,
    /// Picoseconds after which an idle worker sleeps.
    spin: u64,
    shares_connections: bool,
}

impl SystemState {
    pub(super) fn new(setting: &Setting<'_>) -> SystemState {
        let workers = usize::from(setting.scheduler.workers());
        let pauses = |worker: usize| {
            Pauses::of(setting.noise?, setting.seed ^ (0x70_u64 << 32) ^ worker as u64).into()
        };
        let random = SmallRng::seed_from_u64(setting.seed ^ 0xC057);
        SystemState {
            events: EventQueue::new(workers),
            requests: SimRequests::new(setting.connections()),
            costs: DrawnCosts::new(setting.costs, random),
            stalls: Stalls { workers: (0..workers).map_while(pauses).collect() },
            meter: SchedMeter::new(),
            polls: Polls::new(workers, setting.costs.poll_burst, setting.holds_replies()),
            idle_since: vec![0; workers],
            spin: setting.spin.map_or(u64::MAX, |spin| spin.as_nanos() as u64 * 1_000),
            shares_connections: setting.scheduler.shares_connections(),
        }
    }

    /// A worker has nothing to do from `now` on.
    pub(super) fn rest(&mut self, worker: usize, now: u64) {
        self.idle_since[worker] = now;
    }

    /// When a worker that had nothing to do begins with what came at `now`.
    pub(super) fn rouse(&mut self, worker: usize, now: u64) -> u64 {
        let idle = now.saturating_sub(self.idle_since[worker]);
        if idle > self.spin { now + self.costs.wake() } else { now }
    }

    /// A worker does TCP in for a request, from `now` on or as soon as it has the connection's lock. Returns when that is done.
    pub(super) fn receive(&mut self, worker: usize, number: u32, now: u64) -> u64 {
        self.polls.note_request(worker, now);
        let mut work = self.costs.tcp_in();
        if !self.shares_connections {
            return self.stalls.end(worker, now, work);
        }
        let connection = self.requests.connection_of(number);
        if connection.lock.holder() != worker {
            work += self.costs.connection_move();
        }
        work += self.costs.sharing();
        let connection = self.requests.connection_of(number);
        connection.due = connection.due.wrapping_add(1);
        let (start, got) = connection.lock.take(worker, now);
        let cost = self.connection_lock(got);
        let end = self.stalls.end(worker, start, cost + work);
        self.requests.connection_of(number).lock.give_back(end);
        end
    }

    /// The application is done with a request at `now`: the worker sends its reply, and those that waited for it. Returns when the
    /// worker is free.
    pub(super) fn reply(&mut self, worker: usize, number: u32, now: u64) -> u64 {
        let connection = self.requests.get(number).connection;
        if !self.requests.complete(number) {
            self.meter.waited_for_order += 1;
            return now;
        }
        let mut time = now;
        if self.shares_connections {
            let (start, got) =
                self.requests.connections[connection as usize].lock.take(worker, now);
            let cost = self.connection_lock(got);
            time = self.stalls.end(worker, start, cost);
        }
        let leaves = self.polls.note_end(worker, now);
        while let Some(request) = self.requests.take_ready(connection) {
            let cost = self.costs.tcp_out();
            time = self.stalls.end(worker, time, cost);
            match leaves {
                true => self.meter.record(&request, time),
                false => self.polls.hold(worker, request),
            }
        }
        if self.shares_connections {
            self.requests.connections[connection as usize].lock.give_back(time);
        }
        if leaves {
            self.release_replies(worker, time);
        }
        time
    }

    fn release_replies(&mut self, worker: usize, now: u64) {
        for request in self.polls.release(worker) {
            self.meter.record(&request, now);
        }
    }

    /// A worker's poll ends: replies that waited for it leave. Returns when the worker is done with the poll.
    pub(super) fn end_poll(&mut self, worker: usize, now: u64) -> u64 {
        if !self.polls.end(worker) {
            return now;
        }
        self.release_replies(worker, now);
        let cost = self.costs.flush();
        self.stalls.end(worker, now, cost)
    }

    fn connection_lock(&mut self, got: Got) -> u64 {
        match got {
            Got::Again => self.costs.connection_same(),
            Got::FromOther | Got::AfterWait => self.costs.connection_other(),
        }
    }

    /// How long a queue's lock is held that was got so.
    pub(super) fn queue_lock(&mut self, got: Got) -> u64 {
        match got {
            Got::Again => self.costs.queue_free(),
            Got::FromOther => self.costs.queue_taken(),
            Got::AfterWait => self.costs.queue_contended(),
        }
    }
}

/// The hash of a connection, evenly spread over all values.
pub(super) fn hash_of(connection: u32, connections: u32) -> u32 {
    ((u64::from(connection) << 32) / u64::from(connections.max(1))) as u32
}
