//! The client's end of a walk.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rheostat_base::ShardId;

use super::board::{TooManyWalks, WalkBoard};
use super::record::Record;
use super::walk::{Walk, WalkPlace, WalkRequest};

/// How often it is looked whether records have come.
const GLANCE: Duration = Duration::from_millis(1);

/// A walk under way. Dropping it ends the walk: lanes stop at their next piece.
#[derive(Debug)]
pub struct WalkHandle {
    walk: Arc<Walk>,
    board: Arc<WalkBoard>,
}

/// What came of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkResult {
    /// What was met that is meant: listed, counted, or ended.
    pub matched: u64,
    /// Shards that were not looked at as a whole, because their lanes did not get on with it in time.
    pub missing_shards: usize,
    /// Where the walk can be gone on with, if it has met as many as were wanted and there may be more.
    pub next: Option<WalkPlace>,
}

impl WalkHandle {
    /// Begins a walk through a run with so many lanes and shards. Lanes see it at their next tick, which
    /// [`Migrator::call_services`](crate::Migrator::call_services) lets them have at once. Dropping the handle ends it.
    ///
    /// # Errors
    /// [`TooManyWalks`] when as many are under way as may be.
    pub fn begin(
        board: &Arc<WalkBoard>,
        request: WalkRequest,
        lanes: usize,
        shards: usize,
    ) -> Result<WalkHandle, TooManyWalks> {
        let walk = Arc::new(Walk::new(request, lanes, shards));
        board.add(&walk)?;
        Ok(WalkHandle { walk, board: board.clone() })
    }

    /// The records that have come since the last call, waiting until there are some. `None` at the end of the walk, or when lanes
    /// have not got on with it for as long as `patience`.
    pub fn read(&mut self, patience: Duration) -> Option<Vec<Record>> {
        let (mut since, mut stamp) = (Instant::now(), self.walk.stamp());
        loop {
            let is_over = self.is_over();
            // Behind that: what lanes have sent before the end is in.
            let records = self.take();
            if !records.is_empty() {
                return Some(records);
            }
            if is_over || since.elapsed() > patience {
                return None;
            }
            thread::sleep(GLANCE);
            let latest = self.walk.stamp();
            if latest != stamp {
                (since, stamp) = (Instant::now(), latest);
            }
        }
    }

    /// The records that have come since the last call, without waiting for any.
    pub fn take(&mut self) -> Vec<Record> {
        self.walk.take()
    }

    /// Whether the walk has come to its end: once [`WalkHandle::take`] has been called behind that, no more records come.
    pub fn is_over(&self) -> bool {
        let (_, left, is_over) = self.walk.progress();
        left == 0 || is_over
    }

    /// The shards that were not looked at as a whole.
    pub fn missing(&self) -> Vec<ShardId> {
        self.walk.missing()
    }

    /// What has come of it so far.
    pub fn result(&self) -> WalkResult {
        let (matched, left, is_full) = self.walk.progress();
        WalkResult {
            matched,
            missing_shards: if is_full { 0 } else { left },
            next: self.walk.stopped_at().filter(|_| is_full),
        }
    }
}

impl Drop for WalkHandle {
    fn drop(&mut self) {
        self.walk.end();
        self.board.remove(&self.walk);
    }
}
