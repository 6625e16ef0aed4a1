//! Waking a thread that sleeps because it has nothing to do, without a system call while it is awake.
//!
//! No lost wake-up: the sleeper announces its sleep, and then looks for work once more; the thread that adds work looks, after
//! adding it, whether the other sleeps. Each stores before it loads what the other stores, with a sequentially consistent fence
//! between, so that at least one of them sees the other's store (Dekker).

use crate::sync::atomic::{AtomicBool, Ordering, fence};

/// Whether a sleeper must be woken. What it sleeps on is not part of this.
#[derive(Debug, Default)]
pub struct Parker {
    asleep: AtomicBool,
}

impl Parker {
    /// A bell whose owner is awake.
    pub fn new() -> Parker {
        Parker { asleep: AtomicBool::new(false) }
    }

    /// Announces that the owner is about to sleep. It must look for work once more after this, and not sleep
    /// if there is any.
    pub fn prepare_park(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        // Pairs with the fence in `should_notify`: either the owner's next look sees the work that was
        // brought before that fence, or the bringer's look there sees the store above.
        fence(Ordering::SeqCst);
    }

    /// Announces that the owner is awake.
    pub fn unpark(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Whether the owner must be woken, after work was brought. True for one of several bringers.
    #[inline]
    pub fn should_notify(&self) -> bool {
        // Pairs with the fence in `prepare_park`.
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_is_woken_once() {
        let bell = Parker::new();
        assert!(!bell.should_notify());
        bell.prepare_park();
        assert!(bell.should_notify());
        assert!(!bell.should_notify());
        bell.prepare_park();
        bell.unpark();
        assert!(!bell.should_notify());
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
            let bell = Arc::new(Parker::new());
            let rung = Arc::new(AtomicUsize::new(0));
            let bringer = {
                let (bell, rung) = (bell.clone(), rung.clone());
                thread::spawn(move || {
                    producer.push(7_u32).unwrap();
                    if bell.should_notify() {
                        rung.fetch_add(1, Ordering::Relaxed);
                    }
                    producer
                })
            };
            bell.prepare_park();
            let seen = consumer.pop();
            let _ring_stays = bringer.join().unwrap();
            // The bringer is done, so the bell has rung by now if it ever does.
            assert!(seen.is_some() || rung.load(Ordering::Relaxed) == 1);
        });
    }
}
