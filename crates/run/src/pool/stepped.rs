//! A pool without threads, for tests: tasks are done when the caller runs them.

use super::member::Member;
use super::{PoolConfig, PoolError, WithClients, connect};

/// A pool whose members work a task at a time. Which of them does, and for which lane, the caller chooses:
/// with seeded choices a run repeats itself.
pub struct Stepped<T, R, M> {
    /// `None` in place of one that has ended.
    members: Vec<Option<Member<T, R, M>>>,
}

impl<T, R, M: FnMut(T) -> R> Stepped<T, R, M> {
    /// A pool and one client per lane; `work` makes, of a member's number, what it does tasks by. Members are pinned nowhere and
    /// never sleep.
    ///
    /// # Errors
    /// [`PoolError::Empty`] and [`PoolError::Uneven`].
    pub fn new<W>(
        config: &PoolConfig,
        work: impl Fn(usize) -> M,
    ) -> Result<WithClients<Self, W, T, R>, PoolError> {
        let (seats, clients) = connect(config, || Ok(None))?;
        let member = |(number, seat)| Some(Member::new(seat, work(number)));
        Ok((Stepped { members: seats.into_iter().enumerate().map(member).collect() }, clients))
    }

    /// Does the oldest task that some lane has given some member, or, where members steal, that the member takes: of all such
    /// pairs the one that `choice`, any number, names. `false` when there is none.
    pub fn step(&mut self, choice: u64) -> bool {
        let pairs = |(member, state): (usize, &Option<Member<T, R, M>>)| {
            let lanes = state.iter().flat_map(Member::lanes_with_tasks);
            lanes.map(move |lane| (member, lane)).collect::<Vec<_>>()
        };
        let pairs: Vec<_> = self.members.iter().enumerate().flat_map(pairs).collect();
        let Some(count) = u64::try_from(pairs.len()).ok().filter(|count| *count > 0) else {
            return false;
        };
        let (member, lane) = pairs[(choice % count) as usize];
        self.members[member].as_mut().is_some_and(|member| member.work_for(lane))
    }

    /// Ends a member, as a panic outside of a task does.
    pub fn end(&mut self, member: usize) {
        if let Some(member) = self.members.get_mut(member) {
            *member = None;
        }
    }
}

impl<T, R, M> std::fmt::Debug for Stepped<T, R, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stepped").field("members", &self.members.len()).finish()
    }
}
