//! Locks as resources.

/// A spin lock that is handed on in the order of those who wait for it. A worker that asks knows at once when it gets the lock, so
/// the waiters need no queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lock {
    /// When the last worker that asked so far gives it back.
    free_at: u64,
    holder: usize,
}

/// How a lock was got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Got {
    /// Free, by the worker that held it last.
    Again,
    /// Free, by another worker.
    FromOther,
    /// After a wait.
    AfterWait,
}

impl Lock {
    pub(super) fn new() -> Lock {
        Lock { free_at: 0, holder: 0 }
    }

    /// `worker` asks for the lock at `now`: when it gets it, and how. [`Lock::give_back`] has to follow before anybody else asks.
    pub(super) fn take(&mut self, worker: usize, now: u64) -> (u64, Got) {
        let got = if self.free_at > now {
            Got::AfterWait
        } else if self.holder == worker {
            Got::Again
        } else {
            Got::FromOther
        };
        self.holder = worker;
        (self.free_at.max(now), got)
    }

    /// The worker that took the lock last gives it back at `time`.
    pub(super) fn give_back(&mut self, time: u64) {
        self.free_at = time;
    }

    /// The worker that held it last.
    pub(super) fn holder(&self) -> usize {
        self.holder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_get_a_lock_one_after_the_other_in_the_order_in_which_they_ask() {
        let mut lock = Lock::new();
        assert_eq!(lock.take(3, 10), (10, Got::FromOther));
        lock.give_back(20);
        assert_eq!(lock.take(1, 12), (20, Got::AfterWait));
        lock.give_back(30);
        assert_eq!(lock.take(2, 13), (30, Got::AfterWait));
        lock.give_back(40);
        assert_eq!(lock.take(2, 40), (40, Got::Again));
        assert_eq!(lock.holder(), 2);
    }
}
