//! A table that takes its time: what is written takes effect later.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use rheostat_base::QueueId;
use rheostat_steer::{Fence, IndirectionTable, RewriteError};

/// When a table's fences pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fences {
    /// Once no packet can be placed by the old entries any more.
    Strict,
    /// At once, while packets are still placed by the old entries.
    Fast,
}

/// A table whose entries change some steps after they were written.
pub(crate) struct LateTable {
    inner: Arc<dyn IndirectionTable>,
    fences: Fences,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Steps that each rewriting from now on takes.
    lateness: u32,
    /// Rewritings that have not taken effect, and how many steps each still takes.
    pending: VecDeque<(u32, Vec<QueueId>)>,
    written: u64,
    /// Rewritings that have taken effect, with the fence of the last.
    applied: (u64, Option<Fence>),
}

impl LateTable {
    pub(crate) fn new(inner: Arc<dyn IndirectionTable>, fences: Fences) -> Arc<LateTable> {
        Arc::new(LateTable { inner, fences, state: Arc::default() })
    }

    /// Lets rewritings take `lateness` steps from now on, and one step pass.
    pub(crate) fn step(&self, lateness: u32) {
        let state = &mut *self.state.lock().expect("no panic while locked");
        state.lateness = lateness;
        let Some((steps, entries)) = state.pending.front_mut() else { return };
        if *steps > 0 {
            *steps -= 1;
            return;
        }
        let fence = self.inner.rewrite(entries).expect("entries that fit");
        state.applied = (state.applied.0 + 1, Some(fence));
        state.pending.pop_front();
    }
}

impl IndirectionTable for LateTable {
    fn len(&self) -> usize {
        self.inner.len()
    }

    fn read(&self) -> Vec<QueueId> {
        self.inner.read()
    }

    fn rewrite(&self, entries: &[QueueId]) -> Result<Fence, RewriteError> {
        let mut state = self.state.lock().expect("no panic while locked");
        let lateness = state.lateness;
        state.pending.push_back((lateness, entries.to_vec()));
        state.written += 1;
        let (number, shared, fences) = (state.written, self.state.clone(), self.fences);
        Ok(Fence::new(move || {
            let state = shared.lock().expect("no panic while locked");
            let (applied, fence) = &state.applied;
            let is_new = *applied > number
                || *applied == number && fence.as_ref().is_some_and(Fence::passed);
            fences == Fences::Fast || is_new
        }))
    }
}
