//! What connects one lane to one member of a pool: tasks go one way, through a ring of the two or a queue that other members
//! of the lane take from, too; replies come the other way, through a ring.
//!
//! A lane gives no more tasks than the rings of replies have room for, so a member never waits for a lane.

use std::sync::OnceLock;

use rheostat_base::sync::Arc;
use rheostat_base::sync::atomic::{AtomicBool, Ordering};
use rheostat_base::sync::stamped_ring::{Consumer, Producer};
use thiserror::Error;

use super::slots::PoolSlot;
use super::team::{Team, Thief};
use crate::crew::LaneNotifier;
use crate::notifier::EventNotifier;

/// Why a task has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Lost {
    /// The task panicked. What it said is on standard error.
    #[error("the task panicked: its message is on standard error")]
    Panicked,
    /// The member of the pool that was to do the task has ended.
    #[error("the member of the pool that was to do the task has ended")]
    Ended,
}

/// What came of a task.
pub(super) type Outcome<R> = Result<R, Lost>;

/// A task on its way to a member.
#[derive(Debug)]
pub(super) struct Task<T> {
    pub(super) place: PoolSlot,
    pub(super) task: T,
}

/// What came of a task, on its way to the lane.
#[derive(Debug)]
pub(super) struct Answer<R> {
    pub(super) place: PoolSlot,
    pub(super) outcome: Outcome<R>,
}

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

    fn has_ended(&self) -> bool {
        // Acquire: pairs with the Release store in `MemberState::end`; the member's replies are seen behind it.
        self.has_ended.load(Ordering::Acquire)
    }
}

/// What wakes a worker for a lane, once the workers are known.
pub(super) type NotifierSlot = std::sync::Arc<OnceLock<LaneNotifier>>;

/// The lane's end.
#[derive(Debug)]
pub(super) struct Front<T, R> {
    tasks: TasksIn<T>,
    replies: Consumer<Answer<R>>,
    member: Arc<MemberState>,
    /// Whether tasks were given since the member was last woken.
    is_fresh: bool,
    has_ended: bool,
}

/// Where a lane puts tasks.
#[derive(Debug)]
pub(super) enum TasksIn<T> {
    Ring(Producer<Task<T>>),
    /// The queue of the member with this number.
    Team(Arc<Team<T>>, usize),
}

/// The member's end.
#[derive(Debug)]
pub(super) struct Back<T, R> {
    tasks: TasksOut<T>,
    replies: Producer<Answer<R>>,
    notifier: NotifierSlot,
}

/// Where a member finds tasks.
#[derive(Debug)]
pub(super) enum TasksOut<T> {
    Ring(Consumer<Task<T>>),
    Team(Thief<T>),
}

impl<T, R> Front<T, R> {
    pub(super) fn new(
        tasks: TasksIn<T>,
        replies: Consumer<Answer<R>>,
        member: Arc<MemberState>,
    ) -> Front<T, R> {
        Front { tasks, replies, member, is_fresh: false, has_ended: false }
    }

    /// Tasks that wait in the member's queue, if others take from it.
    pub(super) fn queued(&self) -> Option<u32> {
        match &self.tasks {
            TasksIn::Ring(_) => None,
            TasksIn::Team(team, number) => Some(team.len(*number)),
        }
    }

    /// Whether the lane knows that the member has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether the member has ended and the lane does not know yet: [`Front::collect`] tells it.
    pub(super) fn has_just_ended(&self) -> bool {
        !self.has_ended && self.member.has_ended()
    }

    /// Gives a task. There must be room.
    pub(super) fn submit(&mut self, task: Task<T>) {
        match &mut self.tasks {
            TasksIn::Ring(ring) => {
                let has_room = ring.push(task).is_ok();
                assert!(has_room, "the ring holds as many tasks as may be given");
            }
            TasksIn::Team(team, number) => team.push(*number, task),
        }
        self.is_fresh = true;
    }

    /// Wakes who is to look, if there is something new.
    pub(super) fn ring(&mut self) {
        if !std::mem::take(&mut self.is_fresh) {
            return;
        }
        match &self.tasks {
            TasksIn::Ring(_) => {
                if let Some(notifier) = self.member.notifier() {
                    notifier.wake();
                }
            }
            TasksIn::Team(team, number) => {
                team.wake(*number);
            }
        }
    }

    /// Takes the answers that are there. `true` when the member has ended and these were its last.
    pub(super) fn collect(&mut self, mut answer: impl FnMut(Answer<R>)) -> bool {
        // Read before the replies, so that when the member has ended, all its replies are seen and the rest will never come.
        let has_ended = self.has_just_ended();
        while let Some(reply) = self.replies.pop() {
            answer(reply);
        }
        self.has_ended |= has_ended;
        has_ended
    }

    /// A task that is left in a queue of the member that others take from. All of them have ended.
    pub(super) fn take_left(&mut self) -> Option<Task<T>> {
        match &self.tasks {
            TasksIn::Ring(_) => None,
            TasksIn::Team(team, number) => team.pop(*number),
        }
    }

    /// The team of the member, if others may take its tasks.
    pub(super) fn team(&self) -> Option<&Arc<Team<T>>> {
        match &self.tasks {
            TasksIn::Ring(_) => None,
            TasksIn::Team(team, _) => Some(team),
        }
    }

    /// Whether [`Front::collect`] would find something.
    pub(super) fn has_replies(&self) -> bool {
        !self.replies.is_empty() || self.has_just_ended()
    }
}

impl<T, R> Back<T, R> {
    pub(super) fn new(
        tasks: TasksOut<T>,
        replies: Producer<Answer<R>>,
        notifier: NotifierSlot,
    ) -> Back<T, R> {
        Back { tasks, replies, notifier }
    }

    /// Whether there are tasks that the member may take.
    pub(super) fn has_tasks(&self) -> bool {
        match &self.tasks {
            TasksOut::Ring(ring) => !ring.is_empty(),
            TasksOut::Team(thief) => thief.has_tasks(),
        }
    }

    /// The next task.
    pub(super) fn next(&mut self) -> Option<Task<T>> {
        match &mut self.tasks {
            TasksOut::Ring(ring) => ring.pop(),
            TasksOut::Team(thief) => thief.next(),
        }
    }

    /// The member has nothing to do, and looks.
    pub(super) fn look(&mut self) {
        if let TasksOut::Team(thief) = &mut self.tasks {
            thief.look();
        }
    }

    /// The member has found something to do.
    pub(super) fn stop_looking(&mut self) {
        if let TasksOut::Team(thief) = &mut self.tasks {
            thief.stop_looking();
        }
    }

    /// The member is about to sleep: see [`Thief::doze`].
    pub(super) fn doze(&mut self) {
        if let TasksOut::Team(thief) = &mut self.tasks {
            thief.doze();
        }
    }

    /// Reports what came of a task, and wakes the lane.
    pub(super) fn reply(&mut self, answer: Answer<R>) {
        let has_room = self.replies.push(answer).is_ok();
        assert!(has_room, "a lane gives no more tasks than it has room for replies");
        self.wake_lane();
    }

    pub(super) fn wake_lane(&self) {
        if let Some(notifier) = self.notifier.get() {
            notifier.wake();
        }
    }
}
