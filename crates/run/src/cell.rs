//! What stands behind the lock of a lane: the lane, and what workers that share it must agree on.

use std::sync::Arc;

use rheostat_base::Time;
use rheostat_base::sync::try_lock::TryLock;
use rheostat_kernel::sleep::SleepProfile;

use crate::lane::Lane;
use crate::poll::metronome::{LanePolicy, MetronomeSettings};

/// The lanes of a run, in the order of their numbers. Each is data that the worker which takes it runs; a lane whose worker
/// panicked stays taken.
pub(crate) type LaneCells = Vec<TryLock<LaneCell>>;

/// A lane behind its lock.
pub(crate) struct LaneCell {
    pub(crate) lane: Lane,
    /// None before the first visit.
    shared: Option<Shared>,
}

/// What workers that share a lane agree on.
pub(crate) struct Shared {
    /// When the lock was last released.
    pub(crate) released: Time,
    /// The worker that released it; none before the first visit.
    pub(crate) holder: Option<usize>,
    /// Whether the lane was left alone since, with nothing in it.
    pub(crate) is_vacation: bool,
    pub(crate) policy: LanePolicy,
}

impl LaneCell {
    /// A lane that was not visited.
    pub(crate) fn new(lane: Lane) -> LaneCell {
        LaneCell { lane, shared: None }
    }

    /// What workers that share the lane agree on. At the first visit, which is at `now`: of `workers` workers for `lanes`
    /// lanes that go by `settings`.
    pub(crate) fn shared(
        &mut self,
        settings: &MetronomeSettings,
        (workers, lanes): (usize, usize),
        profile: &Arc<SleepProfile>,
        now: Time,
    ) -> &mut Shared {
        self.shared.get_or_insert_with(|| Shared {
            released: now,
            holder: None,
            is_vacation: false,
            policy: settings.lane(workers, lanes, profile, now),
        })
    }
}
