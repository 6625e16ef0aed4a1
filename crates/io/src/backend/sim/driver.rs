//! Which thread drives the NIC, and when.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rheostat_base::{ClockSource, Time};
use rheostat_packet::{Mempool, PoolCache};

use super::nic::Nic;

/// Frames one poll of the pumped driver, or one turn of the thread, delivers at most.
const TURN: usize = 64;

/// Longest sleep of the thread: how soon it notices a rewritten table or the end.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// Shorter waits are spent awake: a sleep overshoots by about this much.
const SHORTEST_SLEEP: Duration = Duration::from_micros(100);

/// The NIC behind its lock, shared by all threads that may drive it.
pub(super) struct Drive {
    nic: Mutex<Nic>,
    /// Set (Release) under the lock, after the last packet was enqueued; read (Acquire) by monitors,
    /// which then look at the queues.
    ended: AtomicBool,
    /// Whether nothing arrives yet. Relaxed: the NIC's lock orders what follows.
    awaits_begin: AtomicBool,
}

impl Drive {
    pub(super) fn new(nic: Nic) -> Drive {
        Drive {
            nic: Mutex::new(nic),
            ended: AtomicBool::new(false),
            awaits_begin: AtomicBool::new(false),
        }
    }

    /// Lets nothing arrive before [`Drive::begin`].
    pub(super) fn await_begin(&self) {
        self.awaits_begin.store(true, Ordering::Relaxed);
    }

    /// Packets arrive from now on.
    pub(super) fn begin(&self) {
        self.awaits_begin.store(false, Ordering::Relaxed);
    }

    fn has_begun(&self) -> bool {
        !self.awaits_begin.load(Ordering::Relaxed)
    }

    /// One turn of the pumped driver. Nothing happens while another lane has its turn.
    pub(super) fn pump(&self, now: Time, pool: &mut PoolCache) {
        let nic = match self.nic.try_lock() {
            Ok(nic) => nic,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if self.has_begun() {
            self.turn(nic, |nic| nic.deliver(now, TURN, pool));
        }
    }

    /// A turn of the pumped driver without loss that waits until other lanes have had theirs. Returns whether lanes are
    /// notified of what arrives later, so that none has to poll for it.
    pub(super) fn pump_before_rest(&self, now: Time, pool: &mut PoolCache) -> bool {
        self.turn(self.lock(), |nic| {
            nic.deliver(now, TURN, pool);
            nic.announces()
        })
    }

    /// Whether no more packets will be enqueued.
    pub(super) fn ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Ends the source. When this returns, nothing more will be enqueued.
    pub(super) fn stop(&self) {
        self.turn(self.lock(), Nic::stop);
    }

    /// The stamp of the first packet, before any has been delivered.
    pub(super) fn first_stamp(&self) -> Option<Time> {
        self.turn(self.lock(), Nic::first_stamp)
    }

    /// What the source states about itself.
    pub(super) fn progress(&self) -> Option<f64> {
        self.lock().progress()
    }

    fn lock(&self) -> MutexGuard<'_, Nic> {
        // A panic in a source leaves the NIC at a packet boundary.
        self.nic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn<T>(&self, mut nic: MutexGuard<'_, Nic>, f: impl FnOnce(&mut Nic) -> T) -> T {
        let result = f(&mut nic);
        if nic.ended() {
            self.ended.store(true, Ordering::Release);
        }
        result
    }
}

/// Drives a stepped NIC: nothing arrives but what a call delivers, so that a run is repeatable.
pub struct Stepper {
    drive: Arc<Drive>,
}

impl Stepper {
    pub(super) fn new(drive: Arc<Drive>) -> Stepper {
        Stepper { drive }
    }

    /// Delivers everything that has arrived by `now`, under the table in force, and returns how many
    /// packets that were, drops included. Without loss, delivers what fits.
    pub fn deliver_until(&mut self, now: Time, pool: &mut PoolCache) -> usize {
        self.drive.turn(self.drive.lock(), |nic| nic.deliver(now, usize::MAX, pool))
    }

    /// When the next packet is due; `None` when there is none. Reads the source one packet ahead.
    pub fn next_arrival(&mut self, now: Time) -> Option<Time> {
        self.drive.turn(self.drive.lock(), |nic| nic.next_due(now))
    }
}

/// The thread of a NIC that has one; ends with it.
pub(super) struct DriverThread {
    quit: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl DriverThread {
    pub(super) fn start(
        name: &str,
        drive: Arc<Drive>,
        clock: Arc<dyn ClockSource>,
        pool: Mempool,
    ) -> std::io::Result<DriverThread> {
        let quit = Arc::new(AtomicBool::new(false));
        let seen = quit.clone();
        let thread = thread::Builder::new().name(format!("nic {name}")).spawn(move || {
            // It needs none. What it could not give up is found when the run makes sure of it.
            #[cfg(not(any(loom, shuttle)))]
            let _ = rheostat_kernel::privileges::give_up();
            let mut pool = PoolCache::new(pool);
            // Relaxed: the flag publishes nothing. After the source has ended the thread goes on
            // acknowledging rewritten tables.
            while !seen.load(Ordering::Relaxed) {
                if !drive.has_begun() {
                    thread::sleep(SHORTEST_SLEEP);
                    continue;
                }
                let now = clock.now();
                let (delivered, next) = drive.turn(drive.lock(), |nic| {
                    (nic.deliver(now, TURN, &mut pool), nic.next_due(now))
                });
                if delivered == 0 {
                    wait(next.map(|next| next.since(now)));
                }
            }
        })?;
        Ok(DriverThread { quit, thread: Some(thread) })
    }
}

/// Waits about as long as nothing is due; `None` when nothing more comes.
fn wait(until_due: Option<Duration>) {
    match until_due {
        // Due, and still not delivered: lanes have to make room.
        Some(Duration::ZERO) => thread::yield_now(),
        Some(short) if short <= SHORTEST_SLEEP => std::hint::spin_loop(),
        Some(long) => thread::sleep((long - SHORTEST_SLEEP).min(LONGEST_SLEEP)),
        None => thread::sleep(LONGEST_SLEEP),
    }
}

impl Drop for DriverThread {
    fn drop(&mut self) {
        self.quit.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It panicked only if the source did; that has been reported by its thread.
            let _ = thread.join();
        }
    }
}
