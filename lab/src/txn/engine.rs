//! Ways to keep lanes apart that share elements.

mod global_lock;
mod optimistic;
mod shared_table;
mod two_phase;
mod unshared;

pub(super) use global_lock::GlobalLock;
pub(super) use optimistic::Optimistic;
pub(super) use shared_table::SharedTable;
pub(super) use two_phase::TwoPhase;
pub(super) use unshared::Unshared;

use std::ops::AddAssign;

use super::packets::TxnPacket;
use crate::error::BenchError;

/// How often something was tried, and how often in vain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tries {
    pub(super) all: u64,
    pub(super) aborted: u64,
}

impl Tries {
    /// So many that all succeeded.
    fn successful(all: usize) -> Tries {
        Tries { all: all as u64, aborted: 0 }
    }
}

impl AddAssign for Tries {
    fn add_assign(&mut self, other: Tries) {
        self.all += other.all;
        self.aborted += other.aborted;
    }
}

/// One lane's way to elements, which count how often they were written.
pub(super) trait Engine: Send + Sized {
    /// As many lanes over the same elements, which are all zero.
    fn lanes(count: usize) -> Result<Vec<Self>, BenchError>;

    /// Processes a batch of packets that read `N` elements each: together, where that saves something.
    /// Returns the sum of what they read.
    fn run<const N: usize>(&mut self, batch: &[TxnPacket], tries: &mut Tries) -> u64;

    /// What a lane does after a burst.
    fn end_burst(&mut self) {}

    /// The sum of all elements, once no lane runs.
    fn total(lanes: &[Self]) -> u64;
}
