//! When no packet can be placed by old entries any more.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use rheostat_steer::Fence;

use crate::lock::lock;
use crate::sys::membarrier::wait_for_all_processors;

/// How exact a fence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FenceMode {
    /// It passes once no processor can still be placing a packet by the old entries: some milliseconds
    /// later, waited for on a thread of its own.
    #[default]
    Strict,
    /// It passes at once. Packets may still be placed by old entries for some microseconds; a lane that
    /// gets one hands it over and counts it as late.
    Fast,
}

/// Makes fences. Asking costs a thread, made when a first strict fence is needed.
pub(super) struct Fencer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    asked: Condvar,
}

#[derive(Default)]
struct State {
    /// Fences asked for.
    asked: u64,
    /// Fences that have passed; those asked for while the thread waits are passed together by the
    /// next round.
    passed: u64,
    ended: bool,
}

impl Shared {
    /// Waits for processors at every request, until it is stopped.
    fn serve(&self) {
        let mut state = lock(&self.state);
        while !state.ended {
            if state.passed == state.asked {
                state = self.asked.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let asked = state.asked;
            drop(state);
            if wait_for_all_processors().is_err() {
                // Without the call, what it stands for must be waited out: no program runs for as
                // long as a tenth of a second.
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            state = lock(&self.state);
            state.passed = asked;
        }
    }
}

impl Fencer {
    pub(super) fn new() -> Fencer {
        Fencer { shared: Arc::default(), thread: Mutex::new(None) }
    }

    /// A fence for what was stored before this call.
    pub(super) fn fence(&self, mode: FenceMode) -> Fence {
        if mode == FenceMode::Fast || !self.start() {
            return Fence::new(|| true);
        }
        let mut state = lock(&self.shared.state);
        state.asked += 1;
        let number = state.asked;
        drop(state);
        self.shared.asked.notify_one();
        let shared = self.shared.clone();
        // The lock orders what the thread saw of the processors before what the asker does next.
        Fence::new(move || lock(&shared.state).passed >= number)
    }

    /// Whether there is a thread, now at least.
    fn start(&self) -> bool {
        let mut thread = lock(&self.thread);
        if thread.is_none() {
            let shared = self.shared.clone();
            let started = Builder::new().name("bpf fence".into()).spawn(move || {
                // It needs none. What it could not give up is found when the run makes sure of it.
                let _ = rheostat_kernel::privileges::give_up();
                shared.serve();
            });
            *thread = started.ok();
        }
        thread.is_some()
    }
}

impl Drop for Fencer {
    fn drop(&mut self) {
        lock(&self.shared.state).ended = true;
        self.shared.asked.notify_one();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // It ends within one wait for the processors, and cannot panic.
            let _ = thread.join();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    //! Timed: threads.

    use super::*;

    #[test]
    fn fences_pass_in_time_and_together() {
        let fencer = Fencer::new();
        assert!(fencer.fence(FenceMode::Fast).passed());
        assert!(fencer.thread.lock().unwrap().is_none());
        let fences: Vec<Fence> = (0..3).map(|_| fencer.fence(FenceMode::Strict)).collect();
        while !fences[2].passed() {
            std::thread::yield_now();
        }
        assert!(fences.iter().all(Fence::passed));
        let late = fencer.fence(FenceMode::Strict);
        drop(fencer);
        // Whether it passed or not: asking must not hang.
        let _ = late.passed();
    }
}
