//! The indirection table: from a bucket to a receive queue.

use std::fmt;

use rheostat_base::QueueId;
use rheostat_base::sync::Arc;
use rheostat_base::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use thiserror::Error;

/// A table that places buckets on receive queues and can be rewritten while packets arrive.
#[expect(clippy::len_without_is_empty, reason = "a table is never empty")]
pub trait IndirectionTable: Send + Sync {
    /// How many entries it has.
    fn len(&self) -> usize;

    /// The entries as last written.
    fn read(&self) -> Vec<QueueId>;

    /// Writes all entries. Packets may still be placed by the old ones until the fence has passed.
    ///
    /// # Errors
    /// [`RewriteError`], and nothing is changed.
    fn rewrite(&self, entries: &[QueueId]) -> Result<Fence, RewriteError>;

    /// Whether fences keep what they promise. Those of some tables pass at once on request.
    fn is_strict(&self) -> bool {
        true
    }
}

/// Why a table was not rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RewriteError {
    /// The number of entries differs.
    #[error("the table has {has} entries, not {given}")]
    Length {
        /// Entries of the table.
        has: usize,
        /// Entries given.
        given: usize,
    },
    /// An entry names a queue that does not exist.
    #[error("bucket {bucket} names {queue}, but there are {queues}")]
    Queue {
        /// The entry.
        bucket: usize,
        /// What it names.
        queue: QueueId,
        /// How many queues there are.
        queues: usize,
    },
}

impl RewriteError {
    /// Whether `entries` fit a table of `len` buckets in front of `queues` queues.
    ///
    /// # Errors
    /// The first of them that does not.
    pub fn check(entries: &[QueueId], len: usize, queues: usize) -> Result<(), RewriteError> {
        if entries.len() != len {
            return Err(RewriteError::Length { has: len, given: entries.len() });
        }
        match entries.iter().position(|queue| queue.index() >= queues) {
            Some(bucket) => Err(RewriteError::Queue { bucket, queue: entries[bucket], queues }),
            None => Ok(()),
        }
    }
}

/// Reports when no packet can be placed by the entries that a rewrite replaced.
pub struct Fence(Box<dyn Fn() -> bool + Send + Sync>);

impl Fence {
    /// A fence that has passed once `passed` returns true.
    pub fn new(passed: impl Fn() -> bool + Send + Sync + 'static) -> Fence {
        Fence(Box::new(passed))
    }

    /// Whether every packet from now on is placed by the new entries.
    pub fn passed(&self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fence").field(&self.passed()).finish()
    }
}

/// The table of a device that is in this process. One placing side (the thread that holds the device's lock) looks entries up and
/// acknowledges generations; any thread may rewrite.
#[derive(Debug)]
pub struct GenerationTable {
    shared: Arc<SharedIndirection>,
    queues: usize,
}

#[derive(Debug)]
struct SharedIndirection {
    entries: Vec<AtomicU16>,
    /// Counted up after the entries are written (Release), read by the placing side (Acquire) before
    /// it looks entries up.
    written: AtomicU64,
    /// The generation of which the placing side has seen every entry. Stored by it (Release) when it
    /// has finished placing packets by older ones, read by fences (Acquire).
    acknowledged: AtomicU64,
}

impl GenerationTable {
    /// A table of `entries` buckets, laid round the queues in turn.
    pub fn new(entries: usize, queues: usize) -> GenerationTable {
        assert!(entries > 0 && queues > 0, "a table leads from buckets to queues");
        GenerationTable {
            shared: Arc::new(SharedIndirection {
                entries: (0..entries).map(|i| AtomicU16::new((i % queues) as u16)).collect(),
                written: AtomicU64::new(0),
                acknowledged: AtomicU64::new(0),
            }),
            queues,
        }
    }

    /// The queue of a bucket; for the placing side, after [`GenerationTable::acknowledge`].
    #[inline]
    pub fn lookup(&self, bucket: usize) -> QueueId {
        // Relaxed: `acknowledge` ordered the entries of the generation it acknowledged before this.
        QueueId(self.shared.entries[bucket].load(Ordering::Relaxed))
    }

    /// Announces to rewriters that every packet placed from here on is placed by the entries written so far.
    /// The placing side calls this before it places a batch, with nothing in between half placed.
    #[inline]
    pub fn acknowledge(&self) {
        // Acquire: pairs with the Release in `rewrite`; lookups that follow see its entries.
        let written = self.shared.written.load(Ordering::Acquire);
        // Release: pairs with the Acquire in the fence; lookups before this used older entries and
        // their packets are in their queues.
        self.shared.acknowledged.store(written, Ordering::Release);
    }
}

impl IndirectionTable for GenerationTable {
    fn len(&self) -> usize {
        self.shared.entries.len()
    }

    fn read(&self) -> Vec<QueueId> {
        let load = |entry: &AtomicU16| QueueId(entry.load(Ordering::Relaxed));
        self.shared.entries.iter().map(load).collect()
    }

    fn rewrite(&self, entries: &[QueueId]) -> Result<Fence, RewriteError> {
        RewriteError::check(entries, self.len(), self.queues)?;
        for (entry, queue) in self.shared.entries.iter().zip(entries) {
            entry.store(queue.0, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `acknowledge`; the entries are written before.
        let generation = self.shared.written.fetch_add(1, Ordering::Release) + 1;
        let shared = self.shared.clone();
        // Acquire: pairs with the Release in `acknowledge`.
        Ok(Fence::new(move || shared.acknowledged.load(Ordering::Acquire) >= generation))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_fence_passes_once_the_placing_side_has_acknowledged() {
        let table = GenerationTable::new(4, 2);
        assert_eq!(table.read(), [0, 1, 0, 1].map(QueueId));
        let fence = table.rewrite(&[QueueId(1); 4]).unwrap();
        assert!(!fence.passed());
        table.acknowledge();
        assert!(fence.passed());
        assert_eq!(table.lookup(0), QueueId(1));
    }

    #[test]
    fn entries_that_do_not_fit_change_nothing() {
        let table = GenerationTable::new(2, 2);
        assert_eq!(
            table.rewrite(&[QueueId(0)]).unwrap_err(),
            RewriteError::Length { has: 2, given: 1 }
        );
        let error = table.rewrite(&[QueueId(1), QueueId(2)]).unwrap_err();
        assert_eq!(error.to_string(), "bucket 1 names queue 2, but there are 2");
        assert_eq!(table.read(), [0, 1].map(QueueId));
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::thread;

    /// A packet placed after its fence has passed is placed by the new entries. Fails when the
    /// Release of `rewrite` or the Acquire of `acknowledge` is weakened.
    #[test]
    fn no_packet_is_placed_by_old_entries_behind_the_fence() {
        loom::model(|| {
            let table = Arc::new(GenerationTable::new(1, 2));
            let nic = table.clone();
            let placing = thread::spawn(move || {
                for _ in 0..2 {
                    nic.acknowledge();
                    let acknowledged = nic.shared.acknowledged.load(Ordering::Relaxed);
                    let queue = nic.lookup(0);
                    if acknowledged > 0 {
                        assert_eq!(queue, QueueId(1));
                    }
                }
            });
            let fence = table.rewrite(&[QueueId(1)]).unwrap();
            let _ = fence.passed();
            placing.join().unwrap();
        });
    }

    /// Once the fence has passed, every thread sees all packets that the old entries placed: none appears later. Fails when the
    /// Release of `acknowledge` or the Acquire of the fence is weakened.
    #[test]
    fn packets_placed_by_old_entries_are_in_their_queue_when_the_fence_passes() {
        loom::model(|| {
            let table = Arc::new(GenerationTable::new(1, 2));
            // Packets in queue 0, as their consumer sees them.
            let queued = Arc::new(AtomicU64::new(0));
            let (nic, placed) = (table.clone(), queued.clone());
            let placing = thread::spawn(move || {
                let mut count = 0;
                for _ in 0..2 {
                    nic.acknowledge();
                    if nic.lookup(0) == QueueId(0) {
                        count += 1;
                        placed.store(count, Ordering::Relaxed);
                    }
                }
            });
            let fence = table.rewrite(&[QueueId(1)]).unwrap();
            let seen = fence.passed().then(|| queued.load(Ordering::Relaxed));
            placing.join().unwrap();
            if let Some(seen) = seen {
                assert_eq!(seen, queued.load(Ordering::Relaxed), "a packet came behind the fence");
            }
        });
    }
}
