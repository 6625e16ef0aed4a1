//! What stands behind the lock of a lane: the lane, and what workers that share it must agree on.

use std::sync::Arc;

use rheostat_base::Time;
use rheostat_base::sync::try_lock::TryLock;
use rheostat_io::sleep::SleepProfile;

use crate::lane::Lane;
use crate::poll::metronome::{LanePolicy, MetronomeSettings};

/// The lanes of a run, in the order of their numbers. Each is data that whoever takes it runs; a lane whose worker panicked
/// stays taken.
pub(crate) type LaneCells = Vec<TryLock<LaneCell>>;

/// A lane behind its lock.
pub(crate) struct LaneCell {
    pub(crate) lane: Lane,
    /// When the lock was last released, and what decides about vacations; none before the first visit.
    shared: Option<Shared>,
}

struct Shared {
    released: Time,
    policy: LanePolicy,
}

impl LaneCell {
    /// A lane that was not visited.
    pub(crate) fn new(lane: Lane) -> LaneCell {
        LaneCell { lane, shared: None }
    }

    /// What decides about vacations, and when the last visit ended: now, when this is the first, of `workers` workers
    /// for `lanes` lanes that go by `settings`.
    pub(crate) fn policy(
        &mut self,
        settings: &MetronomeSettings,
        (workers, lanes): (usize, usize),
        profile: &Arc<SleepProfile>,
        now: Time,
    ) -> (&mut LanePolicy, &mut Time) {
        let first =
            || Shared { released: now, policy: settings.lane(workers, lanes, profile, now) };
        let Shared { released, policy } = self.shared.get_or_insert_with(first);
        (policy, released)
    }
}
