//! The time that versions are counted in, and whether commits are allowed.
//!
//! One counter for all lanes, which every commit that writes increments. Beyond some 32 lanes its line becomes what
//! limits commits; a clock from the time-stamp counter, or versions per lane as in Silo, would take its place behind
//! these methods.

use rheostat_base::sync::atomic::{AtomicU64, Ordering};

/// Set while a transaction runs alone.
const ALONE: u64 = 1 << 63;

/// The clock of a run, on a line of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct VersionClock(AtomicU64);

impl VersionClock {
    pub(super) fn new() -> VersionClock {
        VersionClock(AtomicU64::new(0))
    }

    /// The time now: what was committed by then is visible after this call.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        // Acquire, with the release of `tick`: the locks that were taken before a time was, are seen.
        self.0.load(Ordering::Acquire) & !ALONE
    }

    /// A time of the caller's own, later than all before. `None` while another transaction runs alone.
    #[inline]
    pub(super) fn tick(&self, alone: bool) -> Option<u64> {
        // AcqRel, both ends of the edge *time*: of two lanes that each have read what the other is about to write, the
        // later one sees here that the earlier has locked it.
        let before = self.0.fetch_add(1, Ordering::AcqRel);
        (before & ALONE == 0 || alone).then_some((before & !ALONE) + 1)
    }

    /// From now on no other transaction gets a time. Those that have one have locked what they write: that is seen, by the same
    /// edge as in [`VersionClock::tick`].
    pub(super) fn close(&self) {
        let before = self.0.fetch_or(ALONE, Ordering::AcqRel);
        debug_assert!(before & ALONE == 0, "the gate lets one in at a time");
    }

    /// Ends what [`VersionClock::close`] began.
    pub(super) fn open(&self) {
        self.0.fetch_and(!ALONE, Ordering::Release);
    }

    /// Whether a transaction runs alone.
    pub(super) fn is_closed(&self) -> bool {
        self.0.load(Ordering::Relaxed) & ALONE != 0
    }
}
