//! Follows the interfaces of live devices: a thread that reports what happens to them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rheostat_base::DeviceId;
use rheostat_kernel::{LinkEvent, LinkState, LinkWatch};

/// How long the thread waits for the kernel before it looks whether the run is over.
const TIMEOUT: Duration = Duration::from_millis(100);
/// How long apart [`LinkHandler::look`] is called.
pub const LOOK: Duration = Duration::from_millis(400);
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

/// Acts upon what happens to interfaces, on the thread that follows them. Changes wait while it does.
pub trait LinkHandler: Send + 'static {
    /// An interface has changed. Called in order, within milliseconds after the kernel has reported it; an interface that is
    /// already missing at the start is reported as vanished at once.
    fn handle(&mut self, change: LinkChange);

    /// Looks for what the kernel does not report. Called every [`LOOK`].
    fn look(&mut self);

    /// Interfaces are not followed. Called once per second while that lasts.
    fn fail(&mut self, error: &io::Error);
}

/// A thread that follows interfaces until it is dropped.
#[derive(Debug)]
pub struct LinkFollower {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LinkFollower {
    /// Follows the interfaces of these names for `handler`. `prepare` runs first on the follower's thread, before this
    /// returns: to give up privileges.
    ///
    /// # Errors
    /// [`io::Error`] when there can be no socket, or no thread.
    pub fn start(
        devices: Vec<(String, DeviceId)>,
        prepare: impl FnOnce() + Send + 'static,
        mut handler: impl LinkHandler,
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
            let mut looked = Instant::now();
            // Relaxed: the flag publishes nothing.
            while !stopped.load(Ordering::Relaxed) {
                for (link, event) in events.drain(..) {
                    let state = watch.state(link).copied();
                    handler.handle(LinkChange { device: devices[link], event, state });
                }
                if looked.elapsed() >= LOOK {
                    handler.look();
                    looked = Instant::now();
                }
                if let Err(error) = watch.wait(TIMEOUT, &mut events) {
                    handler.fail(&error);
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
