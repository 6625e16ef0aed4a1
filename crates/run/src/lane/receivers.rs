//! The receive queues of a lane, and what they received last.

use rheostat_base::LaneId;
use rheostat_io::RxQueue;
use rheostat_packet::Burst;

use crate::crew::LaneNotifier;
use crate::load::LoadReporting;
use crate::service::Service;

/// What packets are sorted by before the service gets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SortBy {
    /// Their flows, for a service that keeps state.
    Flows,
    /// Their shards, for one that does not, in a run in which shards move between lanes.
    Shards,
    /// Nothing: the packets that its devices give a lane stay there.
    Nothing,
}

impl SortBy {
    pub(super) fn of(service: &dyn Service, reporting: LoadReporting) -> SortBy {
        match (service.spec().is_stateful, reporting) {
            (true, _) => SortBy::Flows,
            (false, LoadReporting::Shards) => SortBy::Shards,
            (false, LoadReporting::Nothing | LoadReporting::Lanes) => SortBy::Nothing,
        }
    }
}

/// What a lane receives by.
pub(super) struct Reception {
    /// A queue of each device.
    pub(super) receivers: Vec<Box<dyn RxQueue>>,
    /// Packets received from each device.
    pub(super) received_by: Vec<u64>,
    /// Whether other lanes receive from the same queues.
    pub(super) shares_queues: bool,
    /// Whether other lanes are kept from receiving until the lane has classified packets.
    pub(super) takes_turns: bool,
    /// What wakes lanes, in their order, where they take turns.
    notifiers: Vec<LaneNotifier>,
    pub(super) sort_by: SortBy,
    pub(super) burst: Burst,
}

impl Reception {
    pub(super) fn new(
        mut receivers: Vec<Box<dyn RxQueue>>,
        sort_by: SortBy,
        takes_turns: bool,
    ) -> Reception {
        Reception {
            received_by: vec![0; receivers.len()],
            shares_queues: receivers
                .iter_mut()
                .filter_map(|queue| queue.as_shared())
                .any(|queue| queue.descriptors().is_some()),
            receivers,
            takes_turns,
            notifiers: Vec::new(),
            sort_by,
            burst: Burst::new(),
        }
    }

    /// Lets the lane wake others, where lanes take turns.
    pub(super) fn wake_by(&mut self, notifiers: &[LaneNotifier]) {
        if self.takes_turns {
            self.notifiers = notifiers.to_vec();
        }
    }

    /// Wakes lanes that sleep, so many at most, beginning with the one behind `own`: packets wait for them.
    #[cold]
    pub(super) fn wake_others(&self, own: LaneId, count: usize) {
        let lanes = self.notifiers.len();
        for step in 1..=count.min(lanes.saturating_sub(1)) {
            self.notifiers[(own.index() + step) % lanes].wake();
        }
    }
}
