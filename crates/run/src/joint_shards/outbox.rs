//! What a claimant of joint shards has to send and has not given to its device yet, so that segments of several visits leave in one
//! call.
//!
//! A lane gives a shard back with a mark ([`Unsent`]) if segments of the shard may be in the lane's outbox. Another claimant that
//! takes the shard finds the mark. It sends the whole outbox through its own transmit queue before it enters, unless the outbox has
//! been sent meanwhile. So segments of a shard reach devices in the order of visits, whichever lanes send them.

use rheostat_base::Time;
use rheostat_base::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use rheostat_base::sync::try_lock::{TryGuard, TryLock};
use rheostat_base::sync::{hint, thread};
use rheostat_packet::Burst;

/// Looks at a taken lock before a lane yields its core between two looks.
const SPINS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 256 };
/// [`Outbox::flushes`] once a lane has panicked, which may have had the lock: no lane waits for the outbox.
const ABANDONED: u64 = u64::MAX;

/// The outbox of a claimant.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// The lock is held while the packets are given to a device: a lane that sees the outbox empty knows that the device has them.
    packets: TryLock<Gathered>,
    /// How many packets there are. Written under the lock; a look takes no lock.
    len: AtomicU32,
    /// When the poll began that gathered the first of them, in nanoseconds.
    since: AtomicU64,
    /// How many times the outbox was emptied. Written under the lock.
    flushes: AtomicU64,
    /// Packets that other lanes have sent, and the owner has not counted as handed over.
    taken: AtomicU64,
}

/// The packets in an outbox.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// A burst for each device.
    pub(crate) bursts: Vec<Burst>,
}

/// Segments of a shard may be in an outbox, until that was emptied once more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unsent {
    pub(crate) claimant: usize,
    flushes: u64,
}

impl Outbox {
    pub(crate) fn new() -> Outbox {
        Outbox {
            packets: TryLock::new(Gathered::default()),
            len: AtomicU32::new(0),
            since: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            taken: AtomicU64::new(0),
        }
    }

    /// The packets, for a lane that goes on to something else if another lane sends them now.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<TryGuard<'_, Gathered>> {
        self.packets.try_lock()
    }

    /// The packets, for the owner: waits while another lane sends them. `None` if a lane has panicked with them.
    #[inline]
    pub(crate) fn lock(&self) -> Option<TryGuard<'_, Gathered>> {
        let mut looks = 0;
        loop {
            if let Some(packets) = self.try_lock() {
                return Some(packets);
            }
            // Relaxed: it is looked at again and again.
            if self.flushes.load(Ordering::Relaxed) == ABANDONED {
                return None;
            }
            match looks < SPINS {
                true => hint::spin_loop(),
                false => thread::yield_now(),
            }
            looks += 1;
        }
    }

    /// Whether nothing waits, or nothing waited a moment ago.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Acquire: pairs with the Release store in `note_sent`; a lane that sees its packets gone sees them counted as taken, too.
        self.len.load(Ordering::Acquire) == 0
    }

    /// Whether packets wait, which another lane may have to send.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        // Relaxed: it is looked at again and again.
        !self.is_empty() && self.flushes.load(Ordering::Relaxed) != ABANDONED
    }

    /// Whether packets have waited since a poll that began before `limit`.
    #[inline]
    pub(crate) fn waits_since(&self, limit: Time) -> bool {
        self.waits() && self.since.load(Ordering::Relaxed) < limit.as_nanos()
    }

    /// Packets were added in a poll that began at `now`. Returns what to mark their shards with, for the lane of this number.
    #[inline]
    pub(crate) fn note_gathered(&self, packets: &Gathered, claimant: usize, now: Time) -> Unsent {
        // Relaxed: the lock orders what its holders do, and marks reach other lanes with the shards.
        if self.is_empty() {
            self.since.store(now.as_nanos(), Ordering::Relaxed);
        }
        self.len.store(packets.len(), Ordering::Relaxed);
        Unsent { claimant, flushes: self.flushes.load(Ordering::Relaxed) }
    }

    /// Devices were given packets.
    #[inline]
    pub(crate) fn note_sent(&self, packets: &Gathered) {
        let len = packets.len();
        // Release: pairs with the Acquire load in `is_empty`.
        self.len.store(len, Ordering::Release);
        let flushes = self.flushes.load(Ordering::Relaxed);
        if len == 0 && flushes != ABANDONED {
            // Release: pairs with the Acquire load in `has_left`; the device was given the packets before.
            self.flushes.store(flushes + 1, Ordering::Release);
        }
    }

    /// Another lane sends so many packets: called before [`Outbox::note_sent`].
    pub(crate) fn note_taken(&self, packets: u64) {
        // Relaxed: a count.
        self.taken.fetch_add(packets, Ordering::Relaxed);
    }

    /// Packets that other lanes have sent since the owner last asked.
    #[inline]
    pub(crate) fn take_taken(&self) -> u64 {
        match self.taken.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.taken.swap(0, Ordering::Relaxed),
        }
    }

    /// Whether devices were given all segments that this mark is about, or no lane waits for them.
    #[inline]
    pub(crate) fn has_left(&self, unsent: &Unsent) -> bool {
        let flushes = self.flushes.load(Ordering::Acquire);
        flushes > unsent.flushes || flushes == ABANDONED
    }

    /// A lane panics: no lane waits for what this one has gathered.
    pub(crate) fn abandon(&self) {
        self.flushes.store(ABANDONED, Ordering::Release);
    }
}

impl Gathered {
    fn len(&self) -> u32 {
        self.bursts.iter().map(|burst| burst.len() as u32).sum()
    }
}
