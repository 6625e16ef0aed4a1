//! Shards for which another thread has something to be done.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rheostat_base::ShardId;

/// Shards of a run at most.
const SHARDS: usize = 512;

/// A bit for each shard: calls for it are one, however many there were, until the lane that has the shard answers. A shard that is on
/// its way from lane to lane keeps its bit, and the lane it comes to answers.
#[derive(Debug)]
pub(crate) struct Calls {
    /// Whether there may be any, so that a lane need not look at all words.
    any: AtomicBool,
    shards: [AtomicU64; SHARDS / 64],
}

impl Calls {
    pub(crate) fn new() -> Calls {
        Calls { any: AtomicBool::new(false), shards: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// Notes a call for `shard`. Everything that the caller has done before is seen by the lane that answers.
    pub(crate) fn call(&self, shard: ShardId) {
        if let Some(word) = self.shards.get(shard.index() / 64) {
            // Release: pairs with the Acquire in `take`. SeqCst orders it before `any`, see `settle`.
            word.fetch_or(1 << (shard.index() % 64), Ordering::SeqCst);
            self.any.store(true, Ordering::SeqCst);
        }
    }

    /// Whether there may be calls.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Takes the calls for `shard`, which the lane has; returns whether there were any.
    pub(crate) fn take(&self, shard: ShardId) -> bool {
        let Some(word) = self.shards.get(shard.index() / 64) else { return false };
        let bit = 1 << (shard.index() % 64);
        word.load(Ordering::Acquire) & bit != 0 && word.fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    /// Notes that there are no calls, if that is so. A call that comes meanwhile is not lost: its bit is set before `any`, so that
    /// either the bit is seen here, or `any` is set after this has cleared it.
    pub(crate) fn settle(&self) {
        self.any.store(false, Ordering::SeqCst);
        if self.shards.iter().any(|word| word.load(Ordering::SeqCst) != 0) {
            self.any.store(true, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_taken_once_and_none_is_lost() {
        let calls = Calls::new();
        assert!(!calls.any() && !calls.take(ShardId(3)));
        [3, 3, 511].into_iter().for_each(|shard| calls.call(ShardId(shard)));
        assert!(calls.any());
        assert!(calls.take(ShardId(3)) && !calls.take(ShardId(3)));
        calls.settle();
        assert!(calls.any(), "another lane has shard 511");
        assert!(calls.take(ShardId(511)));
        calls.settle();
        assert!(!calls.any());
        calls.call(ShardId(512));
        assert!(!calls.any(), "there is no such shard");
    }
}
