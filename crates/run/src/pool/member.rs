//! A member of a pool: it takes tasks of lanes in turn and does them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rheostat_base::choice::{IdleAction, IdlePolicy};
use rheostat_base::sync::{Arc, hint};

use super::channel::{Answer, Back, Lost, MemberState, Outcome, Task};
use super::slots::PoolSlot;

/// Tasks of one lane that a member does before it looks at the next.
const TURN: usize = 32;
/// Hints to the core that make a pause between two looks.
const PAUSE: usize = 8;
/// How long a member sleeps at most: whatever else goes wrong, it looks again after this.
const LONGEST: Duration = Duration::from_millis(500);

/// What connects a member with lanes. When it is dropped, lanes learn that the member does nothing any more.
pub(super) struct Seat<T, R> {
    /// One per lane that the member works for.
    pub(super) channels: Vec<Back<T, R>>,
    state: Arc<MemberState>,
    is_looking: bool,
}

/// One member, driven by a thread or by a test.
pub(super) struct Member<T, R, M> {
    seat: Seat<T, R>,
    work: M,
    done: TasksDone,
}

/// What a member has done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TasksDone {
    /// Tasks, those included that panicked.
    pub(super) tasks: u64,
    pub(super) panicked: u64,
}

/// A task that a member has taken from a queue, where nobody else would find it. When the member panics before it answers, the lane
/// learns that the task is lost.
struct TaskInHand<'a, T, R> {
    channel: &'a mut Back<T, R>,
    place: PoolSlot,
}

impl<T, R> Seat<T, R> {
    pub(super) fn new(channels: Vec<Back<T, R>>, state: Arc<MemberState>) -> Seat<T, R> {
        Seat { channels, state, is_looking: false }
    }

    /// What lanes know of the member.
    pub(super) fn state(&self) -> Arc<MemberState> {
        self.state.clone()
    }

    /// The lanes that have tasks for this member.
    fn lanes_with_tasks(&self) -> impl Iterator<Item = usize> {
        (0..self.channels.len()).filter(|lane| self.channels[*lane].has_tasks())
    }

    /// The member has nothing to do, and looks.
    pub(super) fn look(&mut self) {
        if !self.is_looking {
            self.is_looking = true;
            self.channels.iter_mut().for_each(Back::look);
        }
    }

    /// The member has found something to do.
    pub(super) fn stop_looking(&mut self) {
        if std::mem::take(&mut self.is_looking) {
            self.channels.iter_mut().for_each(Back::stop_looking);
        }
    }

    fn sleep(&mut self, stop: &AtomicBool) {
        let may_sleep = self.prepare_sleep() && !stop.load(Ordering::Relaxed);
        // Without it, the member was made to be stepped, and this is a pause.
        let Some(notifier) = self.state.notifier() else { return };
        if may_sleep {
            notifier.block(LONGEST);
        }
        notifier.unpark();
    }

    /// Announces that the member sleeps. Returns whether it may: whether there is no task that it may take.
    pub(super) fn prepare_sleep(&mut self) -> bool {
        self.is_looking = false;
        // Before the fence of what follows.
        self.channels.iter_mut().for_each(Back::doze);
        if let Some(notifier) = self.state.notifier() {
            notifier.prepare_park();
        }
        self.lanes_with_tasks().next().is_none()
    }
}

impl<T, R> Drop for Seat<T, R> {
    /// Notifies the lanes: what they have given since will not be done.
    fn drop(&mut self) {
        self.stop_looking();
        self.state.end();
        self.channels.iter().for_each(Back::wake_lane);
    }
}

impl<T, R> TaskInHand<'_, T, R> {
    fn answer(self, outcome: Outcome<R>) {
        self.channel.reply(Answer { place: self.place, outcome });
        std::mem::forget(self);
    }
}

impl<T, R> Drop for TaskInHand<'_, T, R> {
    fn drop(&mut self) {
        self.channel.reply(Answer { place: self.place, outcome: Err(Lost::Ended) });
    }
}

impl<T, R, M: FnMut(T) -> R> Member<T, R, M> {
    /// A member that does tasks by `work`.
    pub(super) fn new(seat: Seat<T, R>, work: M) -> Member<T, R, M> {
        Member { seat, work, done: TasksDone::default() }
    }

    /// Works, and spins, pauses and sleeps when there is nothing to do, until told to stop and all tasks are done.
    pub(super) fn run(mut self, stop: &AtomicBool, idle: IdlePolicy) -> TasksDone {
        let mut empty_looks = 0_u32;
        loop {
            // Acquire: pairs with the Release store of the thread that stops the pool; the tasks that were given before are seen
            // below.
            let stops = stop.load(Ordering::Acquire);
            if self.round() > 0 {
                empty_looks = 0;
                continue;
            }
            if stops {
                return self.done;
            }
            self.seat.look();
            match idle.next(empty_looks, 0) {
                IdleAction::Spin => hint::spin_loop(),
                IdleAction::Pause => (0..PAUSE).for_each(|_| hint::spin_loop()),
                IdleAction::Sleep => self.seat.sleep(stop),
            }
            empty_looks = empty_looks.saturating_add(1);
        }
    }

    /// Some tasks of each lane. Returns how many were done.
    fn round(&mut self) -> usize {
        let lanes = self.seat.channels.len();
        (0..lanes).map(|lane| (0..TURN).take_while(|_| self.work_for(lane)).count()).sum()
    }

    /// Does the next task of a lane, if there is one. A task that panics ends neither the member nor others.
    pub(super) fn work_for(&mut self, lane: usize) -> bool {
        let Member { seat, work, done } = self;
        let Some(Task { place, task }) = seat.channels[lane].next() else { return false };
        seat.stop_looking();
        let in_hand = TaskInHand { channel: &mut seat.channels[lane], place };
        // What a task leaves half done is its own, or for `work` to put right.
        let outcome = catch_unwind(AssertUnwindSafe(|| work(task)));
        done.tasks += 1;
        done.panicked += u64::from(outcome.is_err());
        // Drops what the task panicked with, which may panic in turn.
        in_hand.answer(outcome.map_err(|_| Lost::Panicked));
        true
    }

    /// The lanes that have tasks for this member.
    pub(super) fn lanes_with_tasks(&self) -> impl Iterator<Item = usize> {
        self.seat.lanes_with_tasks()
    }
}
