//! The reader's end of a mirror.

use rheostat_base::sync::Arc;
use rheostat_base::sync::atomic::Ordering;
use rheostat_base::sync::spsc::Consumer;

use super::{Look, Mirrors, Tracing};
use crate::trace::Event;
use crate::{Copied, Wanted};

/// Copies of packets, until it is dropped.
pub struct Capture {
    mirrors: Arc<Mirrors>,
    look: Arc<Look<Wanted>>,
    rings: Vec<Consumer<Copied>>,
}

/// Notes about packets that are traced, until it is dropped.
pub struct Trace {
    mirrors: Arc<Mirrors>,
    look: Arc<Look<Tracing>>,
    rings: Vec<Consumer<Event>>,
}

impl Capture {
    pub(super) fn new(
        mirrors: Arc<Mirrors>,
        look: Arc<Look<Wanted>>,
        rings: Vec<Consumer<Copied>>,
    ) -> Capture {
        Capture { mirrors, look, rings }
    }

    /// Takes up to `limit` copies of every lane, lane by lane, and returns how many.
    pub fn take(&mut self, limit: usize, mut copy: impl FnMut(Copied)) -> usize {
        self.rings.iter_mut().map(|ring| ring.pop_each(limit, &mut copy)).sum()
    }

    /// Packets that were meant and not copied, because the reader was too slow.
    pub fn lost(&self) -> u64 {
        self.look.lost.load(Ordering::Relaxed)
    }
}

impl Trace {
    pub(super) fn new(
        mirrors: Arc<Mirrors>,
        look: Arc<Look<Tracing>>,
        rings: Vec<Consumer<Event>>,
    ) -> Trace {
        Trace { mirrors, look, rings }
    }

    /// Takes all notes there are, lane by lane, and returns how many.
    pub fn take(&mut self, mut note: impl FnMut(Event)) -> usize {
        self.rings.iter_mut().map(|ring| ring.pop_each(usize::MAX, &mut note)).sum()
    }

    /// Notes that were not kept, because the reader was too slow.
    pub fn lost(&self) -> u64 {
        self.look.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let mut shared = self.mirrors.lock();
        self.look.closed.store(true, Ordering::Relaxed);
        shared.captures -= 1;
        self.mirrors.announce();
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let mut shared = self.mirrors.lock();
        self.look.closed.store(true, Ordering::Relaxed);
        shared.tracing = false;
        self.mirrors.announce();
    }
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("lost", &self.lost()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace").field("lost", &self.lost()).finish_non_exhaustive()
    }
}
