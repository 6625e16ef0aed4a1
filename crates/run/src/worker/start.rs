//! The start of a run: sources begin when all workers poll.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rheostat_base::{Clock, ClockSource};
use rheostat_io::DeviceMonitor;

use crate::crew::Crew;

/// Waits for all workers of a run, and then lets the sources of its devices begin.
pub(crate) struct Start {
    /// Workers that are not ready.
    left: AtomicUsize,
    monitors: Vec<Arc<dyn DeviceMonitor>>,
    crew: Arc<Crew>,
    clock: Clock,
}

/// A worker that is not ready. It is when this is dropped; also if the worker ends before, so that the others have their packets.
pub(crate) struct Ready(Arc<Start>);

impl Start {
    /// For so many workers.
    pub(crate) fn new(
        workers: usize,
        monitors: Vec<Arc<dyn DeviceMonitor>>,
        crew: Arc<Crew>,
        clock: Clock,
    ) -> Arc<Start> {
        Arc::new(Start { left: AtomicUsize::new(workers), monitors, crew, clock })
    }

    /// One of the workers.
    pub(crate) fn worker(start: &Arc<Start>) -> Ready {
        Ready(start.clone())
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        let Start { left, monitors, crew, clock } = &*self.0;
        // AcqRel: what the other workers did before comes before the start.
        if left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let now = clock.now();
            let sources = monitors.iter().filter_map(|monitor| monitor.source());
            sources.for_each(|source| source.begin(now));
            // Some may sleep, since no packet was due.
            crew.wake_all();
        }
    }
}
