//! Waking a thread that sleeps because it has nothing to do, without a system call while it is awake.
//!
//! The sleeper says that it will sleep and then looks for work once more; whoever brings work looks, after
//! bringing it, whether the other sleeps. Each writes before it reads what the other writes, with a
//! sequentially consistent fence between, so that at least one of them notices the other (Dekker's
//! argument): work is never left lying beside a sleeper.

use crate::sync::atomic::{AtomicBool, Ordering, fence};

/// Tells whether a sleeper must be woken. What it sleeps on is not part of this.
#[derive(Debug, Default)]
pub struct Doorbell {
    asleep: AtomicBool,
}

impl Doorbell {
    /// A bell whose owner is awake.
    pub fn new() -> Doorbell {
        Doorbell { asleep: AtomicBool::new(false) }
    }

    /// Says that the owner is about to sleep. It must look for work once more after this, and not sleep
    /// if there is any.
    pub fn lie_down(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        // Pairs with the fence in `must_ring`: either the owner's next look sees the work that was
        // brought before that fence, or the bringer's look there sees the store above.
        fence(Ordering::SeqCst);
    }

    /// Says that the owner is awake.
    pub fn get_up(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Whether the owner must be woken, after work was brought. True for one of several bringers.
    #[inline]
    pub fn must_ring(&self) -> bool {
        // Pairs with the fence in `lie_down`.
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_is_woken_once() {
        let bell = Doorbell::new();
        assert!(!bell.must_ring());
        bell.lie_down();
        assert!(bell.must_ring());
        assert!(!bell.must_ring());
        bell.lie_down();
        bell.get_up();
        assert!(!bell.must_ring());
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::sync::spsc;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;
    use loom::thread;

    /// Work that a sleeper does not see is work whose bringer rings. Fails when either fence is
    /// weakened to acquire and release.
    #[test]
    fn no_work_lies_beside_a_sleeper() {
        loom::model(|| {
            let (mut producer, mut consumer) = spsc::ring(2);
            let bell = Arc::new(Doorbell::new());
            let rung = Arc::new(AtomicUsize::new(0));
            let bringer = {
                let (bell, rung) = (bell.clone(), rung.clone());
                thread::spawn(move || {
                    producer.push(7_u32).unwrap();
                    if bell.must_ring() {
                        rung.fetch_add(1, Ordering::Relaxed);
                    }
                    producer
                })
            };
            bell.lie_down();
            let seen = consumer.pop();
            let _ring_stays = bringer.join().unwrap();
            // The bringer is done, so the bell has rung by now if it ever does.
            assert!(seen.is_some() || rung.load(Ordering::Relaxed) == 1);
        });
    }
}
