//! The thread that draws arrivals ahead of a run without end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rheostat_base::ClockSource;
use rustix::time::{ClockId, clock_gettime};

use super::Pump;
use super::pump::Next;

/// The thread; ends with it.
pub(in crate::backend::sim) struct DrawingThread {
    quit: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl DrawingThread {
    pub(in crate::backend::sim) fn start(
        name: &str,
        pump: Arc<Pump>,
        clock: Arc<dyn ClockSource>,
    ) -> std::io::Result<DrawingThread> {
        let quit = Arc::new(AtomicBool::new(false));
        let seen = quit.clone();
        let thread = thread::Builder::new().name(format!("source {name}")).spawn(move || {
            // It needs none. What it could not give up is found when the run makes sure of it.
            #[cfg(not(any(loom, shuttle)))]
            let _ = rheostat_kernel::privileges::give_up();
            // Relaxed: the flag publishes nothing.
            while !seen.load(Ordering::Relaxed) {
                let next = pump.draw_ahead(&*clock);
                if next != Next::DrawOn {
                    pump.note_cpu(processor_time());
                }
                match next {
                    // Lanes that have nothing left come first.
                    Next::DrawOn => thread::yield_now(),
                    Next::Wait(time) => thread::park_timeout(time),
                    Next::End => return,
                }
            }
        })?;
        Ok(DrawingThread { quit, thread: Some(thread) })
    }
}

/// What this thread has taken.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Drop for DrawingThread {
    fn drop(&mut self) {
        self.quit.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It panics only where the source does, and that was printed.
            let _ = thread.join();
        }
    }
}
