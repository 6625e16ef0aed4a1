//! What lanes have done, and doing it again.

use rheostat_base::{LaneId, Time};
use rheostat_state::txn::Txn;

use super::operation::{Operation, World};

/// A transaction: its operations and what they returned.
#[derive(Debug)]
pub(super) struct Record {
    lane: LaneId,
    now: Time,
    pub(super) steps: Vec<(Operation, String)>,
}

impl Record {
    pub(super) fn new(lane: LaneId, now: Time) -> Record {
        Record { lane, now, steps: Vec::new() }
    }
}

/// Transactions that have committed, with the times at which they took effect.
#[derive(Debug, Default)]
pub(super) struct History(Vec<(u64, Record)>);

impl History {
    pub(super) fn of(parts: impl IntoIterator<Item = History>) -> History {
        let mut all: Vec<_> = parts.into_iter().flat_map(|part| part.0).collect();
        all.sort_by_key(|(time, _)| *time);
        History(all)
    }

    pub(super) fn add(&mut self, record: Record, time: u64) {
        self.0.push((time, record));
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Lets the first transaction have taken effect last.
    pub(super) fn forge(&mut self) {
        self.0[0].0 = u64::MAX;
    }

    /// Does everything again, one transaction after the other, on a `world` like the one before.
    pub(super) fn replay(&self, world: &World) {
        for (time, Record { lane, now, steps }) in &self.0 {
            let mut txn = Txn::new(&world.objects, *lane);
            txn.begin(*now);
            for (operation, expected) in steps {
                let result = operation.run(world, &mut txn).expect("no other lane runs");
                assert_eq!(
                    result, *expected,
                    "as if in a row: {operation:?} of {lane:?} at {time}"
                );
            }
            txn.commit().expect("no other lane runs");
        }
    }
}
