//! Threads that do one thing over and over, each on a core.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rheostat_base::CoreId;
use rheostat_kernel::core_set::pin_current_thread;

/// Threads of the priority that workers have, bound to cores. They end when dropped.
#[derive(Debug, Default)]
pub(crate) struct Loops {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Loops {
    /// Starts another thread, which calls `turn` again and again until that returns false or the loops are dropped.
    pub(crate) fn start(
        &mut self,
        name: &str,
        core: CoreId,
        mut turn: impl FnMut() -> bool + Send + 'static,
    ) -> io::Result<()> {
        let stop = self.stop.clone();
        let body = move || {
            // Where that is refused, the scheduler places it, and figures are only less steady.
            let _ = pin_current_thread(core);
            // Relaxed: nothing is published by it.
            while !stop.load(Ordering::Relaxed) && turn() {}
        };
        self.threads.push(thread::Builder::new().name(name.into()).spawn(body)?);
        Ok(())
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A loop that panicked has printed why.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    //! Timed: threads.

    use std::sync::mpsc;

    use super::*;
    use crate::testbed::Cores;

    #[test]
    fn a_loop_runs_on_its_core_until_dropped() {
        let core = Cores::available().unwrap().last();
        let (turns, seen) = mpsc::channel();
        let mut loops = Loops::default();
        let turn = move || turns.send(Cores::available().unwrap()).is_ok();
        loops.start("a-loop", core, turn).unwrap();
        assert_eq!(seen.recv().unwrap().as_slice(), [core]);
        drop(loops);
        // The closure went with the thread: the channel ends after its last turn.
        assert!(seen.iter().all(|there| there.as_slice() == [core]));
    }

    #[test]
    fn a_loop_that_has_nothing_to_do_any_more_ends_by_itself() {
        let core = Cores::available().unwrap().first();
        let mut left = 3;
        let mut loops = Loops::default();
        let (turns, seen) = mpsc::channel();
        let turn = move || {
            left -= 1;
            turns.send(left).is_ok() && left > 0
        };
        loops.start("a-loop", core, turn).unwrap();
        assert_eq!(seen.iter().collect::<Vec<_>>(), [2, 1, 0]);
    }
}
