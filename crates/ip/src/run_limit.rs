//! How many ICMP errors and resets a whole run may send (RFC 1812, section 4.3.2.8; RFC 4443, section 2.4 (f)).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rheostat_base::Time;

use crate::rate_limit::RateLimit;

/// Parts into which the limit of a replay is divided for packets of no shard.
const PARTS: usize = 128;

/// The limit of a run, for its network layer and the functions of its chain. Clones share it.
///
/// Lanes draw from one bucket without a lock, and only for a packet that they are about to report: other packets cost nothing.
/// In a replay, time is that of the packets, lanes are apart by any time, and the outcome must not depend on their number. Each
/// shard then has an equal part of the limit, and at least one error at once.
#[derive(Clone, Debug)]
pub struct RunLimit {
    per_second: u32,
    burst: u32,
    /// `None` in a replay.
    bucket: Option<Arc<LimitBucket>>,
}

/// The limit as one shard has it, below a limit of its own.
#[derive(Debug)]
pub struct ShardLimit {
    own: RateLimit,
    run: LimitRun,
}

/// The limit as the network layer of one lane has it.
#[derive(Debug)]
pub(crate) enum LaneLimit {
    Bucket(Arc<LimitBucket>),
    /// By hash of packets: those of one hash have one lane, on any number of lanes.
    Parts(Box<[RateLimit]>),
}

#[derive(Debug)]
enum LimitRun {
    Bucket(Arc<LimitBucket>),
    Part(RateLimit),
}

/// A token bucket for all lanes, kept as the time at which it would be full again plus its burst ([`RateLimit`]).
#[derive(Debug)]
pub(crate) struct LimitBucket {
    interval: AtomicU64,
    burst: AtomicU64,
    next: AtomicU64,
}

impl RunLimit {
    /// Allows `per_second` errors, and `burst` of them at once, all lanes together. Zero errors per second allow none.
    pub fn new(per_second: u32, burst: u32) -> RunLimit {
        let bucket = Some(Arc::new(LimitBucket::new(per_second, burst)));
        RunLimit { per_second, burst, bucket }
    }

    /// The same for a replay.
    pub fn of_replay(per_second: u32, burst: u32) -> RunLimit {
        RunLimit { per_second, burst, bucket: None }
    }

    /// No limit but those of shards.
    pub fn unlimited() -> RunLimit {
        RunLimit::of_replay(u32::MAX, 1)
    }

    /// Allows so many errors from now on, in place of those before. In a replay the limit stays, as does its outcome.
    pub fn set(&self, per_second: u32, burst: u32) {
        if let Some(bucket) = &self.bucket {
            let (interval, burst) = RateLimit::times(per_second, burst);
            // Relaxed: an error that is reported meanwhile may count by the one value and the other.
            bucket.interval.store(interval, Ordering::Relaxed);
            bucket.burst.store(burst, Ordering::Relaxed);
        }
    }

    /// The limit of one of `shards` shards that sends `own_per_second` errors at most.
    pub fn of_shard(&self, own_per_second: u32, shards: usize) -> ShardLimit {
        let run = match &self.bucket {
            Some(bucket) => LimitRun::Bucket(bucket.clone()),
            None => LimitRun::Part(RateLimit::part(self.per_second, self.burst, shards)),
        };
        ShardLimit { own: RateLimit::new(own_per_second, own_per_second), run }
    }

    /// Whether an error may be sent at `now` by a function that has no shards. In a replay, its own limit is the only one.
    pub fn allow(&self, now: Time) -> bool {
        self.bucket.as_ref().is_none_or(|bucket| bucket.allow(now))
    }

    pub(crate) fn of_lane(&self) -> LaneLimit {
        match &self.bucket {
            Some(bucket) => LaneLimit::Bucket(bucket.clone()),
            None => {
                let part = RateLimit::part(self.per_second, self.burst, PARTS);
                LaneLimit::Parts(vec![part; PARTS].into())
            }
        }
    }
}

impl ShardLimit {
    /// Sends so many errors per second at most from now on. The limit of the run stays.
    pub fn set_own(&mut self, per_second: u32) {
        self.own.set(per_second, per_second);
    }

    /// Whether an error may be sent at `now`; counts it if so.
    pub fn allow(&mut self, now: Time) -> bool {
        // The run's comes second, and what it refuses does not count against the shard.
        let allowed = self.own.permits(now)
            && match &mut self.run {
                LimitRun::Bucket(bucket) => bucket.allow(now),
                LimitRun::Part(part) => part.allow(now),
            };
        allowed && self.own.allow(now)
    }
}

impl LaneLimit {
    /// Whether an error about a packet of this hash may be sent at `now`; counts it if so.
    pub(crate) fn allow(&mut self, hash: u32, now: Time) -> bool {
        match self {
            LaneLimit::Bucket(bucket) => bucket.allow(now),
            LaneLimit::Parts(parts) => parts[hash as usize % PARTS].allow(now),
        }
    }
}

impl LimitBucket {
    fn new(per_second: u32, burst: u32) -> LimitBucket {
        let (interval, burst) = RateLimit::times(per_second, burst);
        LimitBucket { interval: interval.into(), burst: burst.into(), next: AtomicU64::new(0) }
    }

    fn allow(&self, now: Time) -> bool {
        // Relaxed: the times publish nothing else.
        let interval = self.interval.load(Ordering::Relaxed);
        if interval == u64::MAX {
            return false;
        }
        let burst = self.burst.load(Ordering::Relaxed);
        let now = now.as_nanos();
        let mut next = self.next.load(Ordering::Relaxed);
        loop {
            let start = next.max(now);
            // A refusal writes nothing: a flood leaves the line with all lanes.
            if start - now > burst {
                return false;
            }
            let later = start.saturating_add(interval);
            match self.next.compare_exchange_weak(next, later, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(changed) => next = changed,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    //! Timed: threads.

    use super::*;

    fn granted(shards: &mut [ShardLimit], seconds: u64) -> usize {
        let mut granted = 0;
        for millis in 0..seconds * 1_000 {
            for shard in shards.iter_mut() {
                granted += usize::from(shard.allow(Time::from_millis(millis)));
            }
        }
        granted
    }

    #[test]
    fn all_shards_together_stay_within_the_limit_of_the_run() {
        let limit = RunLimit::new(1_000, 50);
        let mut shards: Vec<_> = (0..128).map(|_| limit.of_shard(100, 128)).collect();
        assert_eq!(granted(&mut shards, 3), 50 + 2_999, "three seconds of 128 shards");
        // Nor does another function, nor the network layer, have one of its own.
        assert!(!limit.of_shard(100, 128).allow(Time::from_millis(2_999)));
        assert!(!limit.of_lane().allow(7, Time::from_millis(2_999)));
    }

    #[test]
    fn a_shard_stays_within_its_own_limit() {
        let mut shard = [RunLimit::new(1_000, 50).of_shard(10, 1)];
        let granted = granted(&mut shard, 3);
        assert!((39..=40).contains(&granted), "{granted}");
    }

    #[test]
    fn the_outcome_of_a_replay_is_that_of_each_shard_alone() {
        let limit = RunLimit::of_replay(1_000, 50);
        let mut together: Vec<_> = (0..128).map(|_| limit.of_shard(100, 128)).collect();
        let all = granted(&mut together, 3);
        let mut each = 0;
        for _ in 0..128 {
            each += granted(&mut [limit.of_shard(100, 128)], 3);
        }
        assert_eq!(all, each);
        assert!((2_900..=3_200).contains(&all), "{all}");
    }

    #[test]
    fn threads_get_no_more_than_one_would() {
        let limit = RunLimit::new(1_000, 50);
        let at = Time::from_millis(5);
        let grants: usize = std::thread::scope(|scope| {
            let lanes: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..10_000).filter(|_| limit.allow(at)).count()))
                .collect();
            lanes.into_iter().map(|lane| lane.join().unwrap()).sum()
        });
        assert_eq!(grants, 50);
    }

    #[test]
    fn without_a_limit_of_the_run_each_shard_has_its_own() {
        let limit = RunLimit::unlimited();
        let mut shards: Vec<_> = (0..128).map(|_| limit.of_shard(100, 128)).collect();
        assert_eq!(granted(&mut shards, 1), 128 * (100 + 99));
    }

    #[test]
    fn another_limit_holds_for_all_that_share_it() {
        let limit = RunLimit::new(0, 1);
        let mut shard = [limit.of_shard(1_000, 1)];
        assert_eq!(granted(&mut shard, 1), 0);
        limit.set(100, 1);
        assert_eq!(granted(&mut shard, 2), 200);
        limit.set(0, 1);
        assert!(!limit.allow(Time::from_secs(9)));
    }

    #[test]
    fn a_limit_of_zero_allows_none() {
        for limit in [RunLimit::new(0, 50), RunLimit::of_replay(0, 50)] {
            assert_eq!(granted(&mut [limit.of_shard(100, 128)], 3), 0);
        }
    }
}
