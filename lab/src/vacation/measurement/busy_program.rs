//! A CPU-bound program on the cores of workers.

use std::hint::spin_loop;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rheostat_base::CoreId;
use rheostat_kernel::core_set::pin_current_thread;

/// A thread on each of some cores, of the priority that workers have. Ends when dropped.
pub(super) struct BusyProgram {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyProgram {
    /// Starts it.
    pub(super) fn start(cores: &[CoreId]) -> io::Result<BusyProgram> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut program = BusyProgram { stop: stop.clone(), threads: Vec::new() };
        for &core in cores {
            let stop = stop.clone();
            let body = move || {
                // Where it cannot be pinned, the scheduler places it, and that is as busy a core.
                let _ = pin_current_thread(core);
                // Relaxed: nothing is published by it.
                while !stop.load(Ordering::Relaxed) {
                    spin_loop();
                }
            };
            program.threads.push(thread::Builder::new().name("busy-program".into()).spawn(body)?);
        }
        Ok(program)
    }
}

impl Drop for BusyProgram {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It does not panic.
            let _ = thread.join();
        }
    }
}
