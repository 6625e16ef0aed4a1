//! Where a lane gives tasks away and gets what came of them, in the order in which it comes.

use std::collections::VecDeque;

use rheostat_base::choice::{Outstanding, least_loaded_member, member_of_connection};

use super::channel::{Answer, Front, NotifierSlot, Outcome, Task};
use super::queueing::PoolQueueing;
use super::slots::{PoolSlot, PoolSlots};
use super::{Lost, PoolConfig};
use crate::crew::LaneNotifier;

/// The member of a task that no member has.
const NO_MEMBER: u16 = u16::MAX;

/// A lane's place at a [`super::Pool`]: tasks of type `T` go out, results of type `R` come back, and meanwhile a value of type `W`
/// waits here for each. What comes of tasks comes in any order.
///
/// No call blocks, and none allocates. A service owns the clients of its lane, and shows them to it by
/// [`crate::DeferredWork::pool_client`]; one that wants packets back in the order of their shards has a
/// [`PacketClient`](super::PacketClient).
#[derive(Debug)]
pub struct PoolClient<W, T, R> {
    /// One per member.
    members: Vec<Front<T, R>>,
    /// Tasks that each was given and that were not answered, by it or by one that took them from it.
    held: Vec<u32>,
    queueing: PoolQueueing,
    /// Tasks that a member may have in its queue.
    depth: u32,
    /// Each with the member that was given its task, or [`NO_MEMBER`].
    waiting: PoolSlots<(W, u16)>,
    /// Tasks that no member has, oldest first.
    central: VecDeque<Task<T>>,
    outcomes: VecDeque<(W, Outcome<R>)>,
    notifier: NotifierSlot,
}

impl<W, T, R> PoolClient<W, T, R> {
    pub(super) fn new(
        members: Vec<Front<T, R>>,
        config: &PoolConfig,
        notifier: NotifierSlot,
    ) -> PoolClient<W, T, R> {
        let capacity = members.len() * config.depth;
        PoolClient {
            held: vec![0; members.len()],
            members,
            queueing: config.queueing,
            depth: u32::try_from(config.depth).unwrap_or(u32::MAX),
            waiting: PoolSlots::new(capacity),
            central: VecDeque::with_capacity(capacity),
            outcomes: VecDeque::with_capacity(capacity),
            notifier,
        }
    }

    /// Gives a task; `waits` is returned with what comes of it. `hash` is of no meaning with a central queue; else all its bits
    /// choose the member.
    ///
    /// # Errors
    /// Both, when there is no room, or no member is left to do it: [`PoolClient::has_ended`].
    pub fn submit(&mut self, waits: W, hash: u32, task: T) -> Result<(), (W, T)> {
        match self.queueing {
            PoolQueueing::Central(limit) => {
                if self.has_ended() {
                    return Err((waits, task));
                }
                match self.waiting.enter((waits, NO_MEMBER)) {
                    Ok(place) => self.central.push_back(Task { place, task }),
                    Err((waits, _)) => return Err((waits, task)),
                }
                self.feed(limit);
            }
            PoolQueueing::PerMember | PoolQueueing::Stealing { .. } => {
                let Some(member) = self.find_member(hash) else { return Err((waits, task)) };
                if self.load(member) >= self.depth {
                    return Err((waits, task));
                }
                match self.waiting.enter((waits, NO_MEMBER)) {
                    Ok(place) => self.give(member, Task { place, task }),
                    Err((waits, _)) => return Err((waits, task)),
                }
            }
        }
        Ok(())
    }

    /// Queues in which tasks wait: one, if it is central, or one of each member.
    pub fn queues(&self) -> usize {
        match self.queueing {
            PoolQueueing::Central(_) => 1,
            PoolQueueing::PerMember | PoolQueueing::Stealing { .. } => self.members.len(),
        }
    }

    /// The queue that a task with this hash waits in, unless its member has ended.
    pub fn queue_of(&self, hash: u32) -> usize {
        usize::from(member_of_connection(hash, self.queues() as u16))
    }

    /// Tasks that may be at the client at most.
    pub fn capacity(&self) -> usize {
        self.waiting.capacity()
    }

    /// Whether no member is left. What was given is lost, and nothing more is taken.
    pub fn has_ended(&self) -> bool {
        self.members.iter().all(Front::has_ended)
    }

    /// Takes what has come of tasks, gives members what waits in a central queue, and returns how many outcomes there are.
    pub fn collect(&mut self) -> usize {
        if self.waiting.len() > 0 {
            self.collect_outcomes();
            if let PoolQueueing::Central(limit) = self.queueing {
                self.feed(limit);
            }
        }
        self.outcomes.len()
    }

    fn collect_outcomes(&mut self) {
        let PoolClient { members, held, waiting, outcomes, .. } = self;
        let mut ends = false;
        for member in members {
            ends |= member.collect(|Answer { place, outcome }| {
                // The member that was given the task, which is not always the one that did it.
                let Some((waits, given_to)) = waiting.leave(place) else { return };
                held[usize::from(given_to)] -= 1;
                outcomes.push_back((waits, outcome));
            });
        }
        if ends {
            self.lose();
        }
    }

    /// Returns what members that have ended were given and left, unless others take it from their queues.
    #[cold]
    fn lose(&mut self) {
        let is_over = self.has_ended();
        for member in 0..self.members.len() {
            if self.members[member].team().is_some() {
                while is_over && let Some(Task { place, .. }) = self.members[member].take_left() {
                    self.lose_one(place);
                }
            } else if self.members[member].has_ended() {
                while let Some(place) = self.waiting.find(|(_, of)| *of == member as u16) {
                    self.lose_one(place);
                }
            }
        }
        if is_over {
            while let Some(Task { place, .. }) = self.central.pop_front() {
                self.lose_one(place);
            }
        }
    }

    fn lose_one(&mut self, place: PoolSlot) {
        let Some((waits, member)) = self.waiting.leave(place) else { return };
        if let Some(held) = self.held.get_mut(usize::from(member)) {
            *held -= 1;
        }
        self.outcomes.push_back((waits, Err(Lost::Ended)));
    }

    /// The next outcome, in the order in which they came.
    pub fn next_outcome(&mut self) -> Option<(W, Outcome<R>)> {
        self.outcomes.pop_front()
    }

    /// Wakes members for the tasks that were given since this was called last, as many as those need.
    pub fn ring(&mut self) {
        self.members.iter_mut().for_each(Front::ring);
    }

    /// Tasks given whose outcomes were not taken.
    pub fn len(&self) -> usize {
        self.waiting.len() + self.outcomes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether [`PoolClient::collect`] would find something.
    pub fn has_replies(&self) -> bool {
        !self.outcomes.is_empty()
            || self.waiting.len() > 0 && self.members.iter().any(Front::has_replies)
    }

    /// Lets members wake a worker for the lane.
    pub fn wake_by(&mut self, notifier: LaneNotifier) {
        // Before any task is given, so members see it: the rings of tasks order the two.
        let is_first = self.notifier.set(notifier).is_ok();
        debug_assert!(is_first, "a lane is given its notifier once");
    }

    /// What the members share that steal from each other.
    #[cfg(all(test, loom))]
    pub(super) fn team(&self) -> rheostat_base::sync::Arc<super::team::Team<T>> {
        self.members[0].team().expect("they steal").clone()
    }

    /// Gives members what waits in the central queue, as far as they may have it.
    fn feed(&mut self, limit: Outstanding) {
        while !self.central.is_empty() {
            let of = |(front, held): (&Front<T, R>, &u32)| match front.has_ended() {
                true => u32::MAX,
                false => *held,
            };
            let held = self.members.iter().zip(&self.held).map(of);
            let Some(member) = least_loaded_member(held, limit) else { return };
            if self.members[member].has_just_ended() {
                self.collect_outcomes();
                continue;
            }
            let Some(task) = self.central.pop_front() else { return };
            self.give(member, task);
        }
    }

    fn give(&mut self, member: usize, task: Task<T>) {
        if let Some((_, given_to)) = self.waiting.get_mut(task.place) {
            *given_to = member as u16;
        }
        self.held[member] += 1;
        self.members[member].submit(task);
    }

    /// Tasks that count against what a member may be given: those that wait in its queue, if others take from it; else all that
    /// it has not answered.
    fn load(&self, member: usize) -> u32 {
        self.members[member].queued().unwrap_or(self.held[member])
    }

    /// The member for a hash, or the next after it that has not ended.
    fn find_member(&mut self, hash: u32) -> Option<usize> {
        loop {
            let member = self.member_of(hash)?;
            if !self.members[member].has_just_ended() {
                return Some(member);
            }
            self.collect_outcomes();
        }
    }

    /// As [`PoolClient::find_member`], of those of which the lane does not know that they have ended.
    fn member_of(&self, hash: u32) -> Option<usize> {
        let members = self.members.len();
        let first = self.queue_of(hash);
        let mut in_turn = (0..members).map(|step| (first + step) % members);
        in_turn.find(|member| !self.members[*member].has_ended())
    }
}
