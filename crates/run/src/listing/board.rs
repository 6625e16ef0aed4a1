//! Where lanes see that clients have begun or ended walks: one word, which a lane compares at each tick of its service.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use thiserror::Error;

use super::walk::Walk;

/// Walks at a time, so that clients together cost lanes no more than so many do.
pub const WALKS: usize = 4;

/// As many clients list as may at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{WALKS} clients list already: try again later")]
pub struct TooManyWalks;

/// The walks of a run.
#[derive(Debug, Default)]
pub struct WalkBoard {
    word: AtomicU64,
    walks: Mutex<Vec<Arc<Walk>>>,
}

impl WalkBoard {
    /// Lets lanes see a walk.
    ///
    /// # Errors
    /// [`TooManyWalks`] when as many are under way as may be.
    pub(super) fn add(&self, walk: &Arc<Walk>) -> Result<(), TooManyWalks> {
        let mut walks = self.walks.lock().unwrap_or_else(PoisonError::into_inner);
        if walks.len() >= WALKS {
            return Err(TooManyWalks);
        }
        walks.push(walk.clone());
        self.change();
        Ok(())
    }

    /// A number that changes whenever walks begin or end.
    #[inline(always)]
    pub fn word(&self) -> u64 {
        // Relaxed: the walks are behind a lock.
        self.word.load(Ordering::Relaxed)
    }

    /// The walks under way; `None` when a client changes them at this moment. Never waits.
    pub fn walks(&self) -> Option<Vec<Arc<Walk>>> {
        match self.walks.try_lock() {
            Ok(walks) => Some(walks.clone()),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner().clone()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(super) fn remove(&self, walk: &Arc<Walk>) {
        let mut walks = self.walks.lock().unwrap_or_else(PoisonError::into_inner);
        walks.retain(|other| !Arc::ptr_eq(other, walk));
        self.change();
    }

    fn change(&self) {
        self.word.fetch_add(1, Ordering::Relaxed);
    }
}
