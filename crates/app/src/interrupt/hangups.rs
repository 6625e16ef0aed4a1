//! SIGHUP in a process without a controlling terminal.

use std::io;
use std::thread::{self, JoinHandle};

use signal_hook::iterator::{Handle, Signals};

/// The hangups of the process from now on. Those that come before a thread takes them wait for it, as one.
#[derive(Debug)]
pub(crate) struct Hangups(Signals);

/// A thread that takes hangups. Dropping it ends it, once it has done what it does for the last one.
#[derive(Debug)]
pub(crate) struct HangupThread {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Hangups {
    /// Takes `signal`, SIGHUP.
    ///
    /// # Errors
    /// When the signal cannot be watched.
    pub(super) fn watch(signal: i32) -> io::Result<Hangups> {
        Ok(Hangups(Signals::new([signal])?))
    }

    /// Calls `take` on a thread of its own for each hangup, one after the other.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(crate) fn start(self, take: impl Fn() + Send + 'static) -> io::Result<HangupThread> {
        let Hangups(mut signals) = self;
        let handle = signals.handle();
        let body = move || signals.forever().for_each(|_| take());
        let thread = thread::Builder::new().name("rheo-reload".into()).spawn(body)?;
        Ok(HangupThread { handle, thread: Some(thread) })
    }
}

impl Drop for HangupThread {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // A panic was printed by the thread.
            let _ = thread.join();
        }
    }
}
