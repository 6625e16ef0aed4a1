//! The thread that runs lanes.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rheostat_base::sync::try_lock::{TryGuard, TryLock};
use rheostat_base::{Clock, ClockSource, LaneId};
use rheostat_io::Rest;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::crew::Crew;
use crate::lane::Lane;
use crate::load::LoadReporting;
use crate::poll::{Next, PollOutcome, PollPolicy};

/// How long a worker sleeps that has a device without a descriptor to block on.
const NAP: Duration = Duration::from_micros(100);
/// How long a worker sleeps at most: whatever else goes wrong, it looks again after this.
const LONGEST: Duration = Duration::from_millis(500);

/// The lanes of a run, in the order of their numbers. Each is data that whoever takes it runs; a lane whose worker panicked
/// stays taken.
pub(crate) type LaneCells = Vec<TryLock<Lane>>;

/// What a worker thread works with.
pub(crate) struct Worker {
    /// All lanes of the run.
    pub(crate) lanes: Arc<LaneCells>,
    /// Those that this worker runs, and no other: it takes them once, and gives them back when it is told to stop.
    pub(crate) bound: Vec<LaneId>,
    pub(crate) policy: Box<dyn PollPolicy>,
    pub(crate) clock: Clock,
    pub(crate) stop: Arc<AtomicBool>,
    /// Its number.
    pub(crate) index: usize,
    pub(crate) crew: Arc<Crew>,
    pub(crate) reporting: LoadReporting,
}

/// A lane that the worker has taken.
type Held<'a> = TryGuard<'a, Lane>;

impl Worker {
    /// Polls its lanes as the policy says until told to stop.
    pub(crate) fn run(mut self) {
        let cells = self.lanes.clone();
        let take = |lane: &LaneId| cells[lane.index()].try_lock();
        // Another worker has none of them, so the two lists are equally long.
        let mut lanes: Vec<_> = self.bound.iter().filter_map(take).collect();
        debug_assert_eq!(lanes.len(), self.bound.len(), "a bound lane has one worker");
        let reports = self.reporting >= LoadReporting::Lanes;
        let mut outcome = PollOutcome::default();
        let mut now = self.clock.now();
        // Relaxed: the flag publishes nothing; the lanes go back through their cells.
        while !self.stop.load(Ordering::Relaxed) {
            let idle = match self.policy.next(outcome, now) {
                Next::Run(index) => {
                    outcome = lanes[index].poll(now);
                    let worked = outcome.packets > 0;
                    // The end of one poll is the start of the next: the clock is read once for both.
                    let end = self.clock.now();
                    if reports {
                        lanes[index].note_time(now, end, worked);
                    }
                    now = end;
                    if worked {
                        continue;
                    }
                    // Lanes without shards get no packets, so polling for them is of no use, whatever
                    // the policy.
                    lanes.iter().all(|lane| lane.is_parked()).then_some(Next::Wait)
                }
                next => Some(next),
            };
            match idle {
                None | Some(Next::Run(_)) => continue,
                Some(Next::Sleep(duration)) => std::thread::sleep(duration),
                Some(Next::Wait) => self.wait(&mut lanes),
            }
            now = self.clock.now();
        }
    }

    /// Blocks until a device has packets, another lane has handed some over, a pool has replied, the mover
    /// has a command, or a timer is due.
    fn wait(&self, lanes: &mut [Held<'_>]) {
        let waker = self.crew.waker(self.index);
        waker.lie_down();
        match self.rest(lanes) {
            Rest::Awake => {}
            Rest::Nap => std::thread::sleep(NAP),
            Rest::Sleep => self.block(lanes),
        }
        waker.get_up();
    }

    /// What all lanes permit. They are asked twice: of several captures that are read in the order of their stamps,
    /// a device that has said which packet it has next lets another go on that was asked before.
    fn rest(&self, lanes: &mut [Held<'_>]) -> Rest {
        let now = self.clock.now();
        let mut rest = Rest::Sleep;
        for _ in 0..2 {
            for lane in lanes.iter_mut() {
                rest = rest.min(lane.rest(now));
                if rest == Rest::Awake || self.stop.load(Ordering::Relaxed) {
                    return Rest::Awake;
                }
            }
        }
        rest
    }

    fn block(&self, lanes: &[Held<'_>]) {
        let descriptors: Vec<_> =
            lanes.iter().flat_map(|lane| lane.wait_descriptors()).flatten().collect();
        let due = lanes.iter().filter_map(|lane| lane.next_wake()).min();
        let now = self.clock.now();
        let longest = due.map_or(LONGEST, |due| due.since(now).min(LONGEST));
        let timeout = Timespec { tv_sec: 0, tv_nsec: longest.subsec_nanos().into() };
        let waker = self.crew.waker(self.index).as_fd();
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
