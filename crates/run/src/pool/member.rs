//! A member of a pool: it takes tasks of lanes in turn and does them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rheostat_base::sync::Arc;

use super::PoolReport;
use super::channel::{Back, Lost, MemberState};

/// Tasks of one lane that a member does before it looks at the next.
const TURN: usize = 32;
/// How long a member sleeps at most: whatever else goes wrong, it looks again after this.
const LONGEST: Duration = Duration::from_millis(500);

/// One member, driven by a thread or by a test.
pub(super) struct Member<T, R, F> {
    /// One per lane.
    channels: Vec<Back<T, R>>,
    state: Arc<MemberState>,
    work: F,
    report: PoolReport,
}

impl<T, R, F: Fn(T) -> R> Member<T, R, F> {
    pub(super) fn new(
        channels: Vec<Back<T, R>>,
        state: Arc<MemberState>,
        work: F,
    ) -> Member<T, R, F> {
        Member { channels, state, work, report: PoolReport::default() }
    }

    /// What lanes know of it.
    pub(super) fn state(&self) -> Arc<MemberState> {
        self.state.clone()
    }

    /// Works, and sleeps when there is nothing to do, until told to stop and all tasks are done.
    pub(super) fn run(mut self, stop: &AtomicBool) -> PoolReport {
        loop {
            // Acquire: pairs with the Release store of the thread that stops the pool; the tasks that were given before are seen
            // below.
            let stops = stop.load(Ordering::Acquire);
            if self.round() > 0 {
                continue;
            }
            if stops {
                return self.report;
            }
            self.sleep(stop);
        }
    }

    /// Some tasks of each lane. Returns how many were done.
    fn round(&mut self) -> usize {
        let lanes = self.channels.len();
        (0..lanes).map(|lane| (0..TURN).take_while(|_| self.work_for(lane)).count()).sum()
    }

    /// Does the oldest task of a lane, if there is one. A task that panics ends neither the member nor others.
    pub(super) fn work_for(&mut self, lane: usize) -> bool {
        let Some(task) = self.channels[lane].next() else { return false };
        // What a task leaves half done is its own, or behind the shared reference that `work` is.
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.work)(task)));
        self.report.tasks += 1;
        self.report.panicked += u64::from(outcome.is_err());
        self.channels[lane].reply(outcome.map_err(|_| Lost::Panicked));
        true
    }

    /// The lanes that have tasks for this member.
    pub(super) fn lanes_with_tasks(&self) -> impl Iterator<Item = usize> {
        (0..self.channels.len()).filter(|lane| self.channels[*lane].has_tasks())
    }

    fn sleep(&self, stop: &AtomicBool) {
        let notifier = self.state.notifier().expect("a member with a thread can be woken");
        notifier.prepare_park();
        if self.lanes_with_tasks().next().is_none() && !stop.load(Ordering::Relaxed) {
            notifier.block(LONGEST);
        }
        notifier.unpark();
    }
}

impl<T, R, F> Drop for Member<T, R, F> {
    /// Notifies the lanes: what they have given since will not be done.
    fn drop(&mut self) {
        self.state.end();
        self.channels.iter().for_each(Back::wake_lane);
    }
}
