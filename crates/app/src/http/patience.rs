//! How long a connection is kept.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The end of a connection, which the connection may change.
#[derive(Clone, Debug)]
pub(super) struct Patience(Arc<ConnectionEnd>);

#[derive(Debug)]
struct ConnectionEnd {
    at: Mutex<Instant>,
    has_changed: Notify,
}

impl Patience {
    /// Ends after `time`.
    pub(super) fn new(time: Duration) -> Patience {
        let at = Mutex::new(Instant::now() + time);
        Patience(Arc::new(ConnectionEnd { at, has_changed: Notify::new() }))
    }

    /// From now on, it ends after `time`.
    pub(super) fn renew(&self, time: Duration) {
        *self.0.at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + time;
        self.0.has_changed.notify_one();
    }

    /// Returns at the end.
    pub(super) async fn is_over(&self) {
        loop {
            let end = *self.0.at.lock().unwrap_or_else(PoisonError::into_inner);
            if end <= Instant::now() {
                return;
            }
            tokio::select! {
                () = sleep_until(end) => {}
                // It may end sooner now.
                () = self.0.has_changed.notified() => {}
            }
        }
    }
}
