//! A thread of a simulated NIC.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The thread; ends with it.
pub(super) struct NicThread {
    quit: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What a thread does before its next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// Nothing.
    None,
    /// It lets others go first, which have nothing left to do or have to make room.
    Yield,
    Sleep(Duration),
    /// There is no next step.
    End,
}

impl NicThread {
    /// Starts a thread that takes one `step` after another.
    ///
    /// # Errors
    /// What the operating system said.
    pub(super) fn start(
        name: String,
        mut step: impl FnMut() -> Pause + Send + 'static,
    ) -> std::io::Result<NicThread> {
        let quit = Arc::new(AtomicBool::new(false));
        let quits = quit.clone();
        let thread = thread::Builder::new().name(name).spawn(move || {
            // It needs no privileges. A run makes sure of what it could not give up.
            #[cfg(not(any(loom, shuttle)))]
            let _ = rheostat_kernel::privileges::give_up();
            // Relaxed: the flag publishes nothing.
            while !quits.load(Ordering::Relaxed) {
                match step() {
                    Pause::None => {}
                    Pause::Yield => thread::yield_now(),
                    Pause::Sleep(time) => thread::park_timeout(time),
                    Pause::End => return,
                }
            }
        })?;
        Ok(NicThread { quit, thread: Some(thread) })
    }
}

impl Drop for NicThread {
    fn drop(&mut self) {
        self.quit.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It panics only where the source does, and its thread has reported that.
            let _ = thread.join();
        }
    }
}
