//! Follows the interfaces of live devices: a thread that reports what happens to them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rheostat_base::DeviceId;
use rheostat_io::{LinkEvent, LinkState, LinkWatch};

/// How long the thread waits for the kernel before it looks whether the run is over.
const TIMEOUT: Duration = Duration::from_millis(100);
/// How long after a failure the kernel is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// What has happened to a device's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkChange {
    /// The device.
    pub device: DeviceId,
    /// What has happened.
    pub event: LinkEvent,
    /// The interface as it was last reported, which may be later than the event; `None` while it is gone.
    pub state: Option<LinkState>,
}

/// A thread that follows interfaces until it is dropped.
#[derive(Debug)]
pub struct LinkFollower {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LinkFollower {
    /// Follows the interfaces of these names. Each change goes to `on_change` on the thread of the follower,
    /// in order, within milliseconds after the kernel has reported it; an interface that is already missing
    /// is reported as vanished at once. `prepare` runs first on that thread, before this returns: to give up
    /// privileges. A failure of the socket goes to `on_failure`, once per second while it lasts.
    ///
    /// # Errors
    /// [`io::Error`] when there can be no socket, or no thread.
    pub fn start(
        devices: Vec<(String, DeviceId)>,
        prepare: impl FnOnce() + Send + 'static,
        mut on_change: impl FnMut(LinkChange) + Send + 'static,
        mut on_failure: impl FnMut(&io::Error) + Send + 'static,
    ) -> io::Result<LinkFollower> {
        let (names, devices): (Vec<_>, Vec<_>) = devices.into_iter().unzip();
        let mut watch = LinkWatch::open(names)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let (prepared, is_prepared) = std::sync::mpsc::channel();
        let follow = move || {
            prepare();
            // The other end waits for it.
            let _ = prepared.send(());
            let missing = |link: &usize| watch.state(*link).is_none();
            let mut events: Vec<_> = (0..devices.len())
                .filter(missing)
                .collect::<Vec<_>>()
                .into_iter()
                .map(|link| (link, LinkEvent::Vanished))
                .collect();
            // Relaxed: the flag publishes nothing.
            while !stopped.load(Ordering::Relaxed) {
                for (link, event) in events.drain(..) {
                    let state = watch.state(link).copied();
                    on_change(LinkChange { device: devices[link], event, state });
                }
                if let Err(error) = watch.wait(TIMEOUT, &mut events) {
                    on_failure(&error);
                    thread::sleep(PAUSE);
                }
            }
        };
        let thread = thread::Builder::new().name("rheo-links".into()).spawn(follow)?;
        // Fails only if the thread has panicked, which it has printed.
        let _ = is_prepared.recv();
        Ok(LinkFollower { stop, thread: Some(thread) })
    }
}

impl Drop for LinkFollower {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic was printed by the thread.
            let _ = thread.join();
        }
    }
}
