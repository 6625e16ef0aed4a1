//! What connects one lane to one member of a pool: a ring of tasks one way, a ring of replies the other.
//!
//! A member does a lane's tasks in the order they were given, so neither tasks nor replies carry numbers:
//! the lane's end remembers what it has given. And it gives no more than a ring holds before it has taken
//! the replies, so the ring of replies has room for each.

use std::collections::VecDeque;
use std::sync::OnceLock;

use rheostat_base::sync::Arc;
use rheostat_base::sync::atomic::{AtomicBool, Ordering};
use rheostat_base::sync::spsc::{self, Consumer, Producer};
use thiserror::Error;

use super::order::Ticket;
use crate::crew::LaneNotifier;
use crate::notifier::EventNotifier;

/// Why a task has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Lost {
    /// The task panicked. What it said is on standard error.
    #[error("the task panicked: its message is on standard error")]
    Panicked,
    /// The member of the pool that was to do the task has ended.
    #[error("the pool ended before it did the task: stop the lanes first")]
    Ended,
}

/// What came of a task.
pub(super) type Outcome<R> = Result<R, Lost>;

/// What the lanes of a member know of it.
#[derive(Debug, Default)]
pub(super) struct MemberState {
    /// The member looks at its lanes no more. Written by the member (Release, after its last reply), read
    /// by lanes (Acquire, before they take the last replies).
    has_ended: AtomicBool,
    /// What the member sleeps on; none if it never sleeps.
    notifier: Option<EventNotifier>,
}

impl MemberState {
    /// The state of a member that is at work and sleeps on `notifier`.
    pub(super) fn new(notifier: Option<EventNotifier>) -> MemberState {
        MemberState { has_ended: AtomicBool::new(false), notifier }
    }

    pub(super) fn notifier(&self) -> Option<&EventNotifier> {
        self.notifier.as_ref()
    }

    /// The member has given its last reply.
    pub(super) fn end(&self) {
        // Release: pairs with the Acquire load in `Front::collect`; all replies are in their rings.
        self.has_ended.store(true, Ordering::Release);
    }
}

/// What wakes a worker for a lane, once the workers are known.
pub(super) type NotifierSlot = std::sync::Arc<OnceLock<LaneNotifier>>;

/// The lane's end.
#[derive(Debug)]
pub(super) struct Front<T, R> {
    tasks: Producer<T>,
    replies: Consumer<Outcome<R>>,
    /// Whose replies are awaited, in the order they were given.
    given: VecDeque<Ticket>,
    depth: usize,
    member: Arc<MemberState>,
    /// Whether tasks were given since the member was last woken.
    is_fresh: bool,
    has_ended: bool,
}

/// The member's end.
#[derive(Debug)]
pub(super) struct Back<T, R> {
    tasks: Consumer<T>,
    replies: Producer<Outcome<R>>,
    notifier: NotifierSlot,
}

/// Connects a lane and a member by a line for `depth` tasks.
pub(super) fn channel<T, R>(
    depth: usize,
    member: Arc<MemberState>,
    notifier: NotifierSlot,
) -> (Front<T, R>, Back<T, R>) {
    let (tasks_in, tasks_out) = spsc::ring(depth);
    let (replies_in, replies_out) = spsc::ring(depth);
    let front = Front {
        tasks: tasks_in,
        replies: replies_out,
        given: VecDeque::new(),
        depth,
        member,
        is_fresh: false,
        has_ended: false,
    };
    (front, Back { tasks: tasks_out, replies: replies_in, notifier })
}

impl<T, R> Front<T, R> {
    /// Tasks given whose replies were not taken; `None` when no more may be given.
    pub(super) fn load(&self) -> Option<usize> {
        let load = self.given.len();
        (load < self.depth && !self.has_ended).then_some(load)
    }

    /// Gives a task, whose reply will be that to `ticket`. [`Front::load`] must have said that it may.
    pub(super) fn submit(&mut self, ticket: Ticket, task: T) {
        assert!(self.tasks.push(task).is_ok(), "the ring holds as many tasks as may be given");
        self.given.push_back(ticket);
        self.is_fresh = true;
    }

    /// Wakes the member if there is something new for it.
    pub(super) fn ring(&mut self) {
        if std::mem::take(&mut self.is_fresh)
            && let Some(notifier) = self.member.notifier()
        {
            notifier.wake();
        }
    }

    /// Takes what has come of tasks. If the member has ended, those that it left are lost.
    pub(super) fn collect(&mut self, mut answer: impl FnMut(Ticket, Outcome<R>)) {
        if self.given.is_empty() {
            return;
        }
        // Acquire: pairs with the Release store in `MemberState::end`. Read before the replies, so that
        // when the member has ended, all its replies are seen and the rest will never come.
        let has_ended = self.member.has_ended.load(Ordering::Acquire);
        let Front { replies, given, .. } = self;
        // All that are there: whatever was seen of the ring earlier was taken then, so it is looked at anew.
        replies.pop_each(usize::MAX, |outcome| {
            answer(given.pop_front().expect("replies follow tasks"), outcome);
        });
        if has_ended {
            self.has_ended = true;
            self.given.drain(..).for_each(|ticket| answer(ticket, Err(Lost::Ended)));
        }
    }

    /// Whether [`Front::collect`] would find something.
    pub(super) fn has_replies(&self) -> bool {
        let has_ended = || self.member.has_ended.load(Ordering::Acquire);
        !self.given.is_empty() && (!self.replies.is_empty() || has_ended())
    }
}

impl<T, R> Back<T, R> {
    /// Whether the lane has given tasks that were not taken.
    pub(super) fn has_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// The next task.
    pub(super) fn next(&mut self) -> Option<T> {
        self.tasks.pop()
    }

    /// Reports the outcome of the oldest task taken, and wakes the lane.
    pub(super) fn reply(&mut self, outcome: Outcome<R>) {
        let has_room = self.replies.push(outcome).is_ok();
        assert!(has_room, "a lane gives no more tasks than it has room for replies");
        self.wake_lane();
    }

    pub(super) fn wake_lane(&self) {
        if let Some(notifier) = self.notifier.get() {
            notifier.wake();
        }
    }
}
