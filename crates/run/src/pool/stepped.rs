//! A pool without threads, for tests: tasks are done when the caller runs them.

use super::member::Member;
use super::{PoolClient, PoolConfig, PoolError, connect};

/// A pool whose members work a task at a time. Which of them does, and for which lane, the caller chooses:
/// with seeded choices a run repeats itself.
pub struct Stepped<T, R, F> {
    members: Vec<Member<T, R, F>>,
}

impl<T, R, F: Fn(T) -> R + Clone> Stepped<T, R, F> {
    /// A pool and one client per lane. Members are pinned nowhere and never sleep.
    ///
    /// # Errors
    /// [`PoolError::Empty`].
    pub fn new(config: &PoolConfig, work: F) -> Result<(Self, Vec<PoolClient<T, R>>), PoolError> {
        let (members, clients) = connect(config, &work, || Ok(None))?;
        Ok((Stepped { members }, clients))
    }

    /// Does the oldest task that some lane has given some member: of all such pairs the one that `choice`,
    /// any number, names. `false` when there is none.
    pub fn step(&mut self, choice: u64) -> bool {
        let pairs = |(member, state): (usize, &Member<T, R, F>)| {
            state.lanes_with_tasks().map(move |lane| (member, lane)).collect::<Vec<_>>()
        };
        let pairs: Vec<_> = self.members.iter().enumerate().flat_map(pairs).collect();
        let Some(count) = u64::try_from(pairs.len()).ok().filter(|count| *count > 0) else {
            return false;
        };
        let (member, lane) = pairs[(choice % count) as usize];
        self.members[member].work_for(lane)
    }
}

impl<T, R, F> std::fmt::Debug for Stepped<T, R, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stepped").field("members", &self.members.len()).finish()
    }
}
