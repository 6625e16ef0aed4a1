//! Calls for things that move from thread to thread: the thread that has one by then answers.

use super::atomic::{AtomicU64, Ordering};

/// A bit for each of many things: calls for one are one, however many there were, until the thread that has it takes them. What is
/// on its way from thread to thread keeps its bit, and the thread to which it comes answers.
///
/// A thread looks at [`Calls::any`] before it sleeps, and callers wake it behind [`Calls::call`]. That stays true for all until the
/// right one has answered, so none of them goes to sleep on a call for something that it is about to get.
#[derive(Debug)]
pub struct Calls {
    /// Bits that are set, at least: counted before the bit is set, and discounted when it is taken.
    waiting: AtomicU64,
    words: Box<[AtomicU64]>,
}

impl Calls {
    /// For so many things.
    pub fn new(things: usize) -> Calls {
        let words = (0..things.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Calls { waiting: AtomicU64::new(0), words }
    }

    /// Calls the thread that has `thing`. What the caller has done before is seen by the thread that answers. Nothing happens if
    /// there is no such thing.
    pub fn call(&self, thing: usize) {
        let Some((word, bit)) = self.bit(thing) else { return };
        // Relaxed: comes before the bit by the Release below, and threads that sleep are woken behind both.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // Release: pairs with the Acquire in `take`.
        if word.fetch_or(bit, Ordering::Release) & bit != 0 {
            // An earlier call counts.
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether there are calls, for anything; perhaps also while one is being made.
    #[inline]
    pub fn any(&self) -> bool {
        // Relaxed: a caller wakes those that sleep, and that orders it.
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Takes the calls for `thing`, which this thread has; returns whether there were any.
    pub fn take(&self, thing: usize) -> bool {
        let Some((word, bit)) = self.bit(thing) else { return false };
        // A look first, which keeps the line shared. Relaxed: it decides nothing.
        if word.load(Ordering::Relaxed) & bit == 0 {
            return false;
        }
        // Acquire: pairs with the Release of the bit in `call`, of all callers since the bit was taken last.
        let was_called = word.fetch_and(!bit, Ordering::Acquire) & bit != 0;
        if was_called {
            // Relaxed: behind the count of the call by the Acquire above.
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        was_called
    }

    fn bit(&self, thing: usize) -> Option<(&AtomicU64, u64)> {
        Some((self.words.get(thing / 64)?, 1 << (thing % 64)))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn calls_are_taken_once_and_wait_for_who_has_the_thing() {
        let calls = Calls::new(512);
        assert!(!calls.any() && !calls.take(3));
        [3, 3, 511].into_iter().for_each(|thing| calls.call(thing));
        assert!(calls.take(3) && !calls.take(3));
        assert!(calls.any(), "another thread has 511");
        assert!(calls.take(511) && !calls.any());
        calls.call(512);
        assert!(!calls.any() && !calls.take(512), "there is no such thing");
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// The one that answers sees what each caller did. Fails when the Release of the bit is relaxed, and when the Acquire of the
    /// `fetch_and` is.
    #[test]
    fn who_answers_sees_what_callers_did() {
        loom::model(|| {
            let calls = Arc::new(Calls::new(1));
            let done = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
            let callers = [0, 1].map(|caller| {
                let (calls, done) = (calls.clone(), done.clone());
                thread::spawn(move || {
                    done[caller].store(1, Ordering::Relaxed);
                    calls.call(0);
                })
            });
            let seen = |done: &[AtomicU64; 2]| {
                done.iter().map(|done| done.load(Ordering::Relaxed)).sum::<u64>()
            };
            if calls.take(0) {
                assert!(seen(&done) > 0, "a call without what it is about");
            }
            callers.into_iter().for_each(|caller| caller.join().unwrap());
            // Both have called: what was not answered is answered now.
            calls.take(0);
            assert!(!calls.any() && !calls.take(0));
        });
    }

    /// A second call, while the first waits, counts for nothing, and hides nothing.
    #[test]
    fn calls_for_one_thing_are_one() {
        loom::model(|| {
            let calls = Arc::new(Calls::new(1));
            calls.call(0);
            let caller = {
                let calls = calls.clone();
                thread::spawn(move || calls.call(0))
            };
            assert!(calls.any(), "the first was not answered");
            assert!(calls.take(0));
            caller.join().unwrap();
            // The second came before, or waits.
            let waits = calls.any();
            assert_eq!(calls.take(0), waits);
            assert!(!calls.any());
        });
    }

    /// A call for something that another thread has stays for all to see, whatever else is called and answered. Fails when a call is
    /// counted behind its bit.
    #[test]
    fn a_call_is_seen_until_who_has_the_thing_answers() {
        loom::model(|| {
            let calls = Arc::new(Calls::new(2));
            calls.call(1);
            let other = {
                let calls = calls.clone();
                thread::spawn(move || {
                    calls.call(0);
                    calls.take(0)
                })
            };
            assert!(calls.any(), "thing 1 is called and not answered");
            let mine = calls.take(0);
            assert!(calls.any());
            assert!(mine ^ other.join().unwrap(), "one of them has the call");
            assert!(calls.take(1) && !calls.any());
        });
    }
}
