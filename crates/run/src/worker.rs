//! The thread that runs lanes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rheostat_base::{Clock, ClockSource};

use crate::lane::Lane;
use crate::poll::{Next, PollOutcome, PollPolicy};
use crate::service::Service;

/// What a worker thread works with. It gives the lanes back when it is told to stop.
pub(crate) struct Worker<S: Service> {
    pub(crate) lanes: Vec<Lane<S>>,
    pub(crate) policy: Box<dyn PollPolicy>,
    pub(crate) clock: Clock,
    pub(crate) stop: Arc<AtomicBool>,
}

impl<S: Service> Worker<S> {
    /// Polls lanes as the policy says until told to stop, and returns them.
    pub(crate) fn run(mut self) -> Vec<Lane<S>> {
        let counters: Vec<_> = self.lanes.iter().map(Lane::counters).collect();
        let mut outcome = PollOutcome::default();
        let mut before = self.clock.cycles();
        // Relaxed: the flag publishes nothing; the lanes go back through the thread's join.
        while !self.stop.load(Ordering::Relaxed) {
            match self.policy.next(outcome, self.clock.now()) {
                Next::Run(index) => {
                    outcome = self.lanes[index].poll(self.clock.now());
                    let after = self.clock.cycles();
                    let spent = self.clock.nanos_between(before, after);
                    before = after;
                    counters[index].total_ns.add(spent);
                    if outcome.packets > 0 {
                        counters[index].busy_ns.add(spent);
                    }
                }
                Next::Sleep(duration) => std::thread::sleep(duration),
                // No device of this build has a descriptor to block on: give the core away instead.
                Next::Wait => std::thread::yield_now(),
            }
        }
        self.lanes
    }
}
