//! The thread that runs lanes.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rheostat_base::{Clock, ClockSource};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::lane::Lane;
use crate::poll::{Next, PollOutcome, PollPolicy};
use crate::service::Service;
use crate::waker::Waker;

/// How long a worker sleeps that has a device without a descriptor to block on.
const NAP: Duration = Duration::from_micros(100);
/// How long a worker sleeps at most: whatever else goes wrong, it looks again after this.
const LONGEST: Duration = Duration::from_millis(500);

/// What a worker thread works with. It gives the lanes back when it is told to stop.
pub(crate) struct Worker<S: Service> {
    pub(crate) lanes: Vec<Lane<S>>,
    pub(crate) policy: Box<dyn PollPolicy>,
    pub(crate) clock: Clock,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) waker: Arc<Waker>,
}

impl<S: Service> Worker<S> {
    /// Polls lanes as the policy says until told to stop, and returns them.
    pub(crate) fn run(mut self) -> Vec<Lane<S>> {
        let counters: Vec<_> = self.lanes.iter().map(Lane::counters).collect();
        let mut outcome = PollOutcome::default();
        let mut before = self.clock.cycles();
        // Relaxed: the flag publishes nothing; the lanes go back through the thread's join.
        while !self.stop.load(Ordering::Relaxed) {
            let idle = match self.policy.next(outcome, self.clock.now()) {
                Next::Run(index) => {
                    outcome = self.lanes[index].poll(self.clock.now());
                    let after = self.clock.cycles();
                    let spent = self.clock.nanos_between(before, after);
                    before = after;
                    counters[index].total_ns.add(spent);
                    if outcome.packets > 0 {
                        counters[index].busy_ns.add(spent);
                        continue;
                    }
                    // Lanes without shards get no packets, so polling for them is of no use, whatever
                    // the policy.
                    self.lanes.iter().all(Lane::is_parked).then_some(Next::Wait)
                }
                next => Some(next),
            };
            match idle {
                None | Some(Next::Run(_)) => continue,
                Some(Next::Sleep(duration)) => std::thread::sleep(duration),
                Some(Next::Wait) => self.wait(),
            }
            // Time asleep is every lane's idle time.
            let after = self.clock.cycles();
            let slept = self.clock.nanos_between(before, after);
            before = after;
            counters.iter().for_each(|counters| counters.total_ns.add(slept));
        }
        self.lanes
    }

    /// Blocks until a device has packets, another lane has handed some over, the mover has a command, or
    /// a timer is due.
    fn wait(&self) {
        self.waker.lie_down();
        let quiet = self.lanes.iter().all(Lane::is_quiet) && !self.stop.load(Ordering::Relaxed);
        if quiet {
            self.block();
        }
        self.waker.get_up();
    }

    fn block(&self) {
        let mut descriptors = Vec::new();
        for lane in &self.lanes {
            for descriptor in lane.wait_descriptors() {
                match descriptor {
                    Some(descriptor) => descriptors.push(descriptor),
                    // No table leads packets there, and whoever is about to change this rings.
                    None if lane.is_parked() => {}
                    None => return std::thread::sleep(NAP),
                }
            }
        }
        let due = self.lanes.iter().filter_map(Lane::next_deadline).min();
        let now = self.clock.now();
        let longest = due.map_or(LONGEST, |due| due.since(now).min(LONGEST));
        let timeout = Timespec { tv_sec: 0, tv_nsec: longest.subsec_nanos().into() };
        let waker = self.waker.as_fd();
        let descriptors = descriptors.iter().chain([&waker]);
        let mut polled: Vec<_> =
            descriptors.map(|descriptor| PollFd::new(descriptor, PollFlags::IN)).collect();
        // A device that only has an error to tell would wake the worker again at once.
        let woken = poll(&mut polled, Some(&timeout)).is_ok_and(|ready| ready > 0);
        if woken && !polled.iter().any(|fd| fd.revents().contains(PollFlags::IN)) {
            std::thread::sleep(NAP);
        }
    }
}
