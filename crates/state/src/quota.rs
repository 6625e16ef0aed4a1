//! Limits per subscriber that hold for a whole run.
//!
//! A subscriber's flows lie in many shards, so a limit on all of them together belongs to none. It is
//! asked when something is created and told when it ends, never per packet.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Locks over which subscribers are spread, so that lanes seldom meet.
const STRIPES: usize = 64;

/// How much each subscriber has, and how much one may have.
#[derive(Clone, Debug)]
pub struct Quota {
    limit: u32,
    counts: Arc<QuotaCounts>,
}

/// How much each subscriber has.
#[derive(Debug)]
struct QuotaCounts {
    stripes: Vec<Mutex<HashMap<IpAddr, u32>>>,
    hasher: RandomState,
}

impl Quota {
    /// Allows each subscriber `limit` at a time.
    pub fn new(limit: u32) -> Quota {
        let stripes = (0..STRIPES).map(|_| Mutex::default()).collect();
        Quota { limit, counts: Arc::new(QuotaCounts { stripes, hasher: RandomState::new() }) }
    }

    /// Another limit on what subscribers have, and take by both.
    #[must_use]
    pub fn limited_to(&self, limit: u32) -> Quota {
        Quota { limit, counts: self.counts.clone() }
    }

    /// Takes one for `subscriber`, unless he has as many as he may.
    #[must_use = "what is not taken must not be given back"]
    pub fn take(&self, subscriber: IpAddr) -> bool {
        let mut counts = self.stripe(subscriber);
        let count = counts.entry(subscriber).or_default();
        let may = *count < self.limit;
        *count += u32::from(may);
        may
    }

    /// Takes one for `subscriber`, even if he has as many as he may.
    pub fn take_anyway(&self, subscriber: IpAddr) {
        *self.stripe(subscriber).entry(subscriber).or_default() += 1;
    }

    /// Whether `subscriber` has as many as he may, or more.
    pub fn is_used_up(&self, subscriber: IpAddr) -> bool {
        self.taken(subscriber) >= self.limit
    }

    /// Gives back one that was taken.
    pub fn give_back(&self, subscriber: IpAddr) {
        if let Entry::Occupied(mut count) = self.stripe(subscriber).entry(subscriber) {
            *count.get_mut() = count.get().saturating_sub(1);
            // Forgotten, so that there are no more counts than things counted.
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// How much `subscriber` has.
    pub fn taken(&self, subscriber: IpAddr) -> u32 {
        self.stripe(subscriber).get(&subscriber).copied().unwrap_or(0)
    }

    fn stripe(&self, subscriber: IpAddr) -> MutexGuard<'_, HashMap<IpAddr, u32>> {
        let QuotaCounts { stripes, hasher } = &*self.counts;
        let stripe = hasher.hash_one(subscriber) as usize % STRIPES;
        // A count is changed in one step, so a panic elsewhere leaves none half changed.
        stripes[stripe].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    //! Timed: threads.

    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn each_subscriber_has_the_limit_and_no_more() {
        let quota = Quota::new(2);
        let [a, b] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        assert!(quota.take(a) && quota.take(a) && !quota.take(a));
        assert!(quota.take(b));
        quota.give_back(a);
        assert_eq!((quota.taken(a), quota.taken(b)), (1, 1));
        assert!(quota.take(a) && !quota.take(a) && quota.is_used_up(a) && !quota.is_used_up(b));
        quota.take_anyway(a);
        quota.give_back(a);
        assert_eq!(quota.taken(a), 2);
        assert!(!Quota::new(0).take(a));
    }

    #[test]
    fn lanes_together_do_not_take_more() {
        let quota = Arc::new(Quota::new(1_000));
        let subscriber = IpAddr::from([10, 0, 0, 1]);
        let lane = |quota: Arc<Quota>| move || (0..800).filter(|_| quota.take(subscriber)).count();
        let lanes: Vec<_> = (0..4).map(|_| thread::spawn(lane(quota.clone()))).collect();
        let taken: usize = lanes.into_iter().map(|lane| lane.join().unwrap()).sum();
        assert_eq!((taken, quota.taken(subscriber)), (1_000, 1_000));
        (0..1_000).for_each(|_| quota.give_back(subscriber));
        assert!(quota.counts.stripes.iter().all(|stripe| stripe.lock().unwrap().is_empty()));
    }
}
