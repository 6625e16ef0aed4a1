//! The thread that moves shards between lanes while a run goes on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle, park_timeout};

use rheostat_control::balance::{Balance, Balancer, counts};
use rheostat_run::RunView;

/// The running controller.
#[derive(Debug)]
pub(crate) struct Balancing {
    thread: JoinHandle<Balance>,
    over: Arc<AtomicBool>,
}

impl Balancing {
    /// Starts to drive `balancer` over the run.
    pub(crate) fn start(mut balancer: Balancer, view: Arc<RunView>) -> io::Result<Balancing> {
        let over = Arc::new(AtomicBool::new(false));
        let told = over.clone();
        let body = move || {
            // Relaxed: the flag publishes nothing.
            while !told.load(Ordering::Relaxed) {
                let next = balancer.step(view.now(), &mut view.mover(), || counts(&view));
                park_timeout(next.since(view.now()));
            }
            balancer.finish(&counts(&view))
        };
        Ok(Balancing { thread: Builder::new().name("rheo-balance".into()).spawn(body)?, over })
    }

    /// Ends it, and says what it came to. Shards that are moving are left to the end of the run.
    pub(crate) fn stop(self) -> Balance {
        self.over.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
