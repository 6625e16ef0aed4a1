//! The members of one lane that steal from each other.
//!
//! Each has a queue with a lock, to which the lane adds. A member takes from its own, and when that is empty from the head of the
//! fullest other one, of which the published lengths tell it.
//!
//! No task waits beside a sleeper. The lane adds a task, then looks for members that look or sleep; a member announces that it
//! does not look any more, or that it sleeps, and then looks at the lengths. Between either's store and loads is a sequentially
//! consistent fence, so at least one sees the other's store. A member that stops looking because it has found something, and
//! sees that more waits, wakes another in its place.

use rheostat_base::choice::{choose_theft, members_to_wake};
use rheostat_base::sync::Arc;
use rheostat_base::sync::atomic::{AtomicU32, Ordering, fence};
use rheostat_base::sync::locked_queue::LockedQueue;

use super::channel::{MemberState, Task};

/// What the members of a lane share.
#[derive(Debug)]
pub(super) struct Team<T> {
    /// One per member.
    queues: Vec<LockedQueue<Task<T>>>,
    states: Vec<Arc<MemberState>>,
    /// Members that look for tasks: they have none, and are awake.
    looking: AtomicU32,
}

impl<T> Team<T> {
    /// A team of members with these states, whose queues have room for `capacity` tasks each: as many as the lane may have given.
    pub(super) fn new(states: Vec<Arc<MemberState>>, capacity: usize) -> Arc<Team<T>> {
        let queues = states.iter().map(|_| LockedQueue::new(capacity)).collect();
        Arc::new(Team { queues, states, looking: AtomicU32::new(0) })
    }

    /// Tasks that wait in a member's queue.
    pub(super) fn len(&self, member: usize) -> u32 {
        self.queues[member].len()
    }

    /// Adds a task to a member's queue. There must be room.
    pub(super) fn push(&self, member: usize, task: Task<T>) {
        let has_room = self.queues[member].push(task).is_ok();
        assert!(has_room, "a queue holds as many tasks as may be given");
    }

    /// Takes the oldest task from a member's queue.
    pub(super) fn pop(&self, member: usize) -> Option<Task<T>> {
        self.queues[member].pop()
    }

    /// Tasks that wait in all queues.
    fn waiting(&self) -> u32 {
        self.queues.iter().map(LockedQueue::len).sum()
    }

    /// Whether any task waits.
    pub(super) fn has_tasks(&self) -> bool {
        self.queues.iter().any(|queue| !queue.is_empty())
    }

    /// Wakes as many members that sleep as there are tasks that no member looks for: `first` before others. Call it after tasks
    /// were added. Returns how many were woken.
    pub(super) fn wake(&self, first: usize) -> u32 {
        // Pairs with the fences in `Thief::stop_looking` and `Parker::prepare_park`: a member that stops looking sees the tasks, or
        // this sees that it has stopped.
        fence(Ordering::SeqCst);
        let members = self.states.len();
        let looking = self.looking.load(Ordering::Relaxed);
        let most = members_to_wake(self.waiting(), looking, members as u32);
        let mut left = most;
        for member in (0..members).map(|step| (first + step) % members) {
            if left == 0 {
                break;
            }
            let notifier = self.states[member].notifier();
            left -= u32::from(notifier.is_some_and(|notifier| notifier.wake()));
        }
        most - left
    }
}

/// A member's part in a team.
#[derive(Debug)]
pub(super) struct Thief<T> {
    member: usize,
    team: Arc<Team<T>>,
    burst: u32,
    is_looking: bool,
    lengths: Vec<u32>,
    loot: Vec<Task<T>>,
}

impl<T> Thief<T> {
    /// The part of `member`, which takes up to `burst` tasks at a time.
    pub(super) fn new(member: usize, team: Arc<Team<T>>, burst: u32) -> Thief<T> {
        let members = team.states.len();
        let loot = Vec::with_capacity(burst as usize);
        Thief { member, team, burst, is_looking: false, lengths: Vec::with_capacity(members), loot }
    }

    /// The next task of the member's own queue, or one that was stolen.
    pub(super) fn next(&mut self) -> Option<Task<T>> {
        self.team.pop(self.member).or_else(|| self.steal())
    }

    /// Takes tasks from another member: the first is the result, the others wait in the own queue.
    fn steal(&mut self) -> Option<Task<T>> {
        let Thief { member, team, burst, lengths, loot, .. } = self;
        lengths.clear();
        lengths.extend(team.queues.iter().map(LockedQueue::len));
        let theft = choose_theft(*member, lengths, *burst)?;
        if team.queues[theft.victim].take(theft.requests as usize, loot) == 0 {
            return None;
        }
        let task = loot.remove(0);
        if !loot.is_empty() {
            team.queues[*member].append(loot);
        }
        Some(task)
    }

    /// The member has nothing to do and looks for tasks.
    pub(super) fn look(&mut self) {
        if !self.is_looking {
            self.is_looking = true;
            // Relaxed: a lane that does not see it wakes one member too many.
            self.team.looking.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The member has found something to do. If it was the last that looked and more waits, another is woken.
    pub(super) fn stop_looking(&mut self) {
        if !std::mem::take(&mut self.is_looking) {
            return;
        }
        let others = self.team.looking.fetch_sub(1, Ordering::Relaxed) - 1;
        // Pairs with the fence in `Team::wake`: what was added before that one is seen below, or the lane sees the store above.
        fence(Ordering::SeqCst);
        if others == 0 && self.team.has_tasks() {
            self.team.wake(self.member + 1);
        }
    }

    /// The member is about to sleep. It must announce that ([`Parker::prepare_park`]) and look once more after this.
    ///
    /// [`Parker::prepare_park`]: rheostat_base::sync::parker::Parker::prepare_park
    pub(super) fn doze(&mut self) {
        if std::mem::take(&mut self.is_looking) {
            // The fence that pairs with the one in `Team::wake` is in `prepare_park`.
            self.team.looking.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether there is a task that the member may take.
    pub(super) fn has_tasks(&self) -> bool {
        self.team.has_tasks()
    }
}

impl<T> Drop for Thief<T> {
    fn drop(&mut self) {
        self.stop_looking();
    }
}
