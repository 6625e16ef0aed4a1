//! The thread that runs lanes.

mod sharing;
mod start;

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rheostat_base::sync::try_lock::TryGuard;
use rheostat_base::{Clock, ClockSource, LaneId};
use rheostat_io::Rest;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::sharing::SharingWorker;
pub(crate) use self::start::{Ready, Start};
use crate::cell::{LaneCell, LaneCells};
use crate::crew::Crew;
use crate::lane::Lane;
use crate::load::LoadReporting;
use crate::notifier::EventNotifier;
use crate::poll::metronome::MetronomeSettings;
use crate::poll::{Next, PollOutcome, PollPolicy};
use crate::polling::{PollingBoard, WorkerPolling};
use crate::sleep::Sleeper;

/// How long a worker sleeps that has a device which announces nothing, or packets that a device does not send.
const NAP: Duration = Duration::from_micros(100);
/// How long a worker sleeps at most: whatever else goes wrong, it looks again after this.
const LONGEST: Duration = Duration::from_millis(500);

/// What a worker thread works with.
pub(crate) struct Worker {
    /// Its number.
    pub(crate) index: usize,
    /// All lanes of the run.
    pub(crate) lanes: Arc<LaneCells>,
    pub(crate) clock: Clock,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) crew: Arc<Crew>,
    pub(crate) reporting: LoadReporting,
    pub(crate) board: Arc<PollingBoard>,
}

/// Which lanes a worker runs, and by which policy.
pub(crate) enum Shift {
    /// These, and no other worker runs them: it takes them once, and gives them back when it is told to stop.
    Bound(Vec<LaneId>, Box<dyn PollPolicy>),
    /// Those whose locks it gets.
    Shared(MetronomeSettings),
}

/// A lane that the worker has taken.
type Held<'a> = TryGuard<'a, LaneCell>;

impl Worker {
    /// Polls lanes as the policy states until told to stop.
    pub(crate) fn run(&self, shift: Shift, ready: Ready) {
        match (shift, self.crew.attendance()) {
            (Shift::Bound(lanes, policy), _) => self.run_bound(&lanes, policy, ready),
            (Shift::Shared(settings), Some(attendance)) => {
                SharingWorker::new(self, attendance, settings).run(ready);
            }
            (Shift::Shared(_), None) => unreachable!("a crew that shares lanes has an attendance"),
        }
    }

    fn run_bound(&self, bound: &[LaneId], mut policy: Box<dyn PollPolicy>, ready: Ready) {
        let take = |lane: &LaneId| self.lanes[lane.index()].try_lock();
        // Another worker has none of them, so the two lists are equally long.
        let mut lanes: Vec<_> = bound.iter().filter_map(take).collect();
        debug_assert_eq!(lanes.len(), bound.len(), "a bound lane has one worker");
        let reports = self.reporting >= LoadReporting::Lanes;
        let sleeper = Sleeper::new(self.clock.clone());
        let (mut outcome, mut counts) = (PollOutcome::default(), WorkerPolling::default());
        // Touches what polling needs, before anything may be lost.
        for cell in &mut lanes {
            cell.lane.poll(self.clock.now());
        }
        drop(ready);
        let mut now = self.clock.now();
        // Relaxed: the flag publishes nothing; the lanes go back through their cells.
        while !self.stop.load(Ordering::Relaxed) {
            let idle = match policy.next(outcome, now) {
                Next::Run(index) => {
                    let lane = &mut lanes[index].lane;
                    outcome = lane.poll(now);
                    let worked = outcome.packets > 0;
                    // The end of one poll is the start of the next: the clock is read once for both.
                    let end = self.clock.now();
                    if reports {
                        lane.note_time(now, end, worked);
                    }
                    now = end;
                    if worked {
                        continue;
                    }
                    // Lanes without shards get no packets, so polling for them is of no use, whatever
                    // the policy.
                    lanes.iter().all(|cell| cell.lane.is_parked()).then_some(Next::Wait)
                }
                next => Some(next),
            };
            match idle {
                None | Some(Next::Run(_)) => continue,
                Some(Next::Sleep(duration)) => {
                    if counts.sleeps == 0 {
                        self.warn_of_slack(&sleeper);
                    }
                    counts.sleeps += 1;
                    sleeper.sleep(duration);
                }
                Some(Next::Wait) => {
                    counts.blocks += 1;
                    self.wait(&mut lanes, &sleeper);
                }
            }
            self.board.note_worker(self.index, counts);
            now = self.clock.now();
        }
    }

    /// Reports that sleeps take longer than asked, where the kernel has refused to make them exact.
    fn warn_of_slack(&self, sleeper: &Sleeper) {
        if let Err(refused) = sleeper.slack() {
            self.board.warn(refused.to_string());
        }
    }

    /// Blocks until a device has packets, another lane has handed some over, a pool has replied, the migrator
    /// has a command, or a timer is due.
    fn wait(&self, lanes: &mut [Held<'_>], sleeper: &Sleeper) {
        let notifier = self.crew.notifier(self.index);
        notifier.prepare_park();
        match self.rest(lanes) {
            Rest::Awake => {}
            Rest::Nap => sleeper.sleep(NAP),
            rest => block(|| lanes.iter().map(|cell| &cell.lane), notifier, rest, &self.clock),
        }
        notifier.unpark();
    }

    /// What all lanes permit. They are asked twice: of several captures that are read in the order of their stamps,
    /// a device that has said which packet it has next lets another go on that was asked before.
    fn rest(&self, lanes: &mut [Held<'_>]) -> Rest {
        let now = self.clock.now();
        let mut rest = Rest::Sleep;
        for _ in 0..2 {
            for cell in lanes.iter_mut() {
                rest = rest.min(cell.lane.rest(now));
                if rest == Rest::Awake || self.stop.load(Ordering::Relaxed) {
                    return Rest::Awake;
                }
            }
        }
        rest
    }
}

/// Blocks until the worker is woken, a device of `lanes` has packets, a timer of one of them is due, or `rest` ends.
fn block<'a, L: Iterator<Item = &'a Lane>>(
    lanes: impl Fn() -> L,
    notifier: &EventNotifier,
    rest: Rest,
    clock: &Clock,
) {
    let descriptors: Vec<_> = lanes().flat_map(Lane::wait_descriptors).flatten().collect();
    let due = lanes().filter_map(Lane::next_wake).chain(rest.end()).min();
    let now = clock.now();
    let longest = due.map_or(LONGEST, |due| due.since(now).min(LONGEST));
    let timeout = Timespec { tv_sec: 0, tv_nsec: longest.subsec_nanos().into() };
    let notifier = notifier.as_fd();
    let descriptors = descriptors.iter().chain([&notifier]);
    let mut polled: Vec<_> =
        descriptors.map(|descriptor| PollFd::new(descriptor, PollFlags::IN)).collect();
    // A device that has only an error would wake the worker again at once.
    let woken = poll(&mut polled, Some(&timeout)).is_ok_and(|ready| ready > 0);
    if woken && !polled.iter().any(|fd| fd.revents().contains(PollFlags::IN)) {
        std::thread::sleep(NAP);
    }
}
