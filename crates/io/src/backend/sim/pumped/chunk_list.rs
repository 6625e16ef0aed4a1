//! Chunks of arrivals in the order they are drawn: one side appends, each queue reads at its own pace, and a chunk is
//! freed once every queue is through with it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::arrivals::Chunk;

/// The source has ended: everything is known.
pub(super) const ALL: u64 = u64::MAX;

/// A chunk, and the one drawn after it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) chunk: Chunk,
    next: OnceLock<Arc<Link>>,
    /// Everything that is due before stands in this chunk or in earlier ones; in nanoseconds from the start of the
    /// source. [`ALL`] in the last chunk of a source that has ended.
    complete: AtomicU64,
    bytes: usize,
    /// Bytes of all chunks that are still held.
    held: Arc<AtomicUsize>,
}

impl Link {
    pub(super) fn new(chunk: Chunk, complete: u64, held: &Arc<AtomicUsize>) -> Arc<Link> {
        let bytes = chunk.bytes();
        // Relaxed: a figure that decides when to stop drawing, and orders nothing.
        held.fetch_add(bytes, Ordering::Relaxed);
        let (next, complete) = (OnceLock::new(), AtomicU64::new(complete));
        Arc::new(Link { chunk, next, complete, bytes, held: held.clone() })
    }

    /// The chunk behind this one; there is one at most.
    #[inline]
    pub(super) fn next(&self) -> Option<&Arc<Link>> {
        self.next.get()
    }

    /// Appends a chunk to the last one.
    pub(super) fn append(&self, next: Arc<Link>) {
        // The drawing side alone appends, and knows which chunk is the last.
        let _ = self.next.set(next);
    }

    /// Before when this chunk is complete, whatever is appended: that is due then or later.
    #[inline]
    pub(super) fn complete(&self) -> u64 {
        // Relaxed: it states that nothing more belongs here, and publishes no chunk.
        self.complete.load(Ordering::Relaxed)
    }

    /// Nothing that is due before will be appended.
    pub(super) fn set_complete(&self, before: u64) {
        self.complete.store(before, Ordering::Relaxed);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
        // One after the other: a long list must not be freed by recursion.
        let mut next = self.next.take();
        while let Some(mut link) = next.and_then(Arc::into_inner) {
            next = link.next.take();
        }
    }
}
