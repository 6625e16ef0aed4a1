//! When memory that was taken out of shared objects can be freed: once every lane has rested since.
//!
//! A lane announces when it begins to read shared memory, and when it rests, as it does between bursts. A lane that takes
//! something out notes a mark, and what has a mark is freed when each lane rests, or began after the mark.

use rheostat_base::sync::atomic::{AtomicU64, Ordering, fence};

/// What a lane that rests states.
const RESTING: u64 = 0;

#[derive(Debug)]
#[repr(align(128))]
struct Padded(AtomicU64);

/// What the lanes of a run say.
#[derive(Debug)]
pub(super) struct Epochs {
    next: AtomicU64,
    lanes: Box<[Padded]>,
}

/// When something was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark(u64);

impl Epochs {
    pub(super) fn new(lanes: usize) -> Epochs {
        let lanes = (0..lanes).map(|_| Padded(AtomicU64::new(RESTING))).collect();
        Epochs { next: AtomicU64::new(1), lanes }
    }

    /// `lane` begins to look at shared memory.
    pub(super) fn begin(&self, lane: usize) {
        let epoch = self.next.load(Ordering::Relaxed);
        self.lanes[lane].0.store(epoch, Ordering::Relaxed);
        // Pairs with the fence in `mark`: either a thread that reads the lanes' epochs behind that sees the store above, or what
        // follows here sees that something was taken out.
        fence(Ordering::SeqCst);
    }

    /// `lane` refers to nothing.
    pub(super) fn rest(&self, lane: usize) {
        // Release, with the acquire in `passed`: the lane has done its reading.
        self.lanes[lane].0.store(RESTING, Ordering::Release);
    }

    /// A mark for what was taken out before.
    pub(super) fn mark(&self) -> Mark {
        // Pairs with the fence in `begin`.
        fence(Ordering::SeqCst);
        Mark(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// The latest mark that every lane has rested since; what has it, or one before, can be freed by the thread that
    /// made the mark.
    pub(super) fn passed(&self) -> Mark {
        let newest = self.next.load(Ordering::Relaxed);
        let epochs = self.lanes.iter().map(|lane| lane.0.load(Ordering::Acquire));
        Mark(epochs.filter(|epoch| *epoch != RESTING).min().unwrap_or(newest) - 1)
    }
}
