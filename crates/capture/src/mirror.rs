//! A mirror in every lane, through which packets are copied and traced while there is a reader.
//!
//! Without a reader, it costs a lane one load of a shared word per poll and one test of a flag of its own
//! per burst. A reader that begins leaves a ring for every lane behind the lock and increments the word; each
//! lane then finds its ring at its next poll. Nothing here waits for a lane, and no lane waits for a reader:
//! what a full ring has no room for is counted.

mod comments;
mod lane;
mod reader;
#[cfg(all(test, not(loom)))]
mod tests;

pub use lane::LaneMirror;
pub use reader::{Capture, Trace};

// For the trait object; everything that is shared with lanes comes from the facade.
use std::sync::Arc as StdArc;
use std::sync::PoisonError;

use rheostat_base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use rheostat_base::sync::spsc::{Consumer, Producer, ring};
use rheostat_base::sync::{Arc, Mutex, MutexGuard};
use rheostat_base::{ClockSource, LaneId};
use thiserror::Error;

use crate::trace::{Event, MOST};
use crate::{Copied, Expression, Wanted};

/// Copies that wait in each lane for their reader at most.
const COPIES: usize = 512;
/// Notes that wait in each lane for their reader at most.
const NOTES: usize = 4_096;
/// Captures at the same time.
const CAPTURES: usize = 4;

/// What the time stamps of a run's packets count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epoch {
    /// From 1970: they come from captures.
    Unix,
    /// From the start of the run's clock, which was so many nanoseconds after 1970.
    Clock(u64),
}

/// Connects readers with the lanes of a run.
pub struct Mirrors {
    clock: StdArc<dyn ClockSource>,
    epoch: Epoch,
    /// How often `shared` was changed. Changed under its lock only.
    generation: AtomicU64,
    shared: Mutex<SharedMirror>,
}

#[derive(Default)]
struct SharedMirror {
    /// For each lane the rings that it has yet to take up.
    waiting: Vec<Vec<MirrorEnd>>,
    captures: usize,
    tracing: bool,
    /// The mark of the next packet that is traced, less one.
    next_mark: u8,
}

/// A ring to a reader, on its way to a lane.
enum MirrorEnd {
    Capture(Producer<Copied>, Arc<Look<Wanted>>),
    Trace(Producer<Event>, Arc<Look<Tracing>>),
}

/// What the lanes and the reader of one look share.
struct Look<W> {
    wanted: W,
    /// Set by the reader when it has gone.
    closed: AtomicBool,
    /// What full rings had no room for.
    lost: AtomicU64,
}

/// Which packets are traced.
struct Tracing {
    filter: Option<Expression>,
    count: u32,
    first_mark: u8,
    /// Packets marked so far, or a few more.
    marked: AtomicU32,
}

/// Too many look already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TapBusy {
    /// As many captures run as may.
    #[error("{CAPTURES} captures run already: end one of them, or wait")]
    Captures,
    /// Packets have one mark only.
    #[error("a trace runs already: end it, or wait")]
    Trace,
}

impl Mirrors {
    /// Mirrors for a run of so many lanes.
    pub fn new(lanes: usize, clock: StdArc<dyn ClockSource>, epoch: Epoch) -> Arc<Mirrors> {
        let waiting = (0..lanes).map(|_| Vec::new()).collect();
        Arc::new(Mirrors {
            clock,
            epoch,
            generation: AtomicU64::new(0),
            shared: Mutex::new(SharedMirror { waiting, ..SharedMirror::default() }),
        })
    }

    /// The mirror of one lane.
    pub fn of_lane(mirrors: &Arc<Mirrors>, lane: LaneId) -> LaneMirror {
        LaneMirror::new(mirrors.clone(), lane)
    }

    /// Begins to copy packets.
    ///
    /// # Errors
    /// [`TapBusy::Captures`] when too many do so.
    pub fn capture(mirrors: &Arc<Mirrors>, wanted: Wanted) -> Result<Capture, TapBusy> {
        let mut shared = mirrors.lock();
        if shared.captures == CAPTURES {
            return Err(TapBusy::Captures);
        }
        shared.captures += 1;
        let look = Arc::new(Look::new(wanted));
        let consumers =
            mirrors.distribute(&mut shared, COPIES, |end| MirrorEnd::Capture(end, look.clone()));
        drop(shared);
        Ok(Capture::new(mirrors.clone(), look, consumers))
    }

    /// Begins to follow up to `count` packets that `filter` matches, or any.
    ///
    /// # Errors
    /// [`TapBusy::Trace`] when packets are traced already.
    pub fn trace(
        mirrors: &Arc<Mirrors>,
        filter: Option<Expression>,
        count: u8,
    ) -> Result<Trace, TapBusy> {
        let mut shared = mirrors.lock();
        if shared.tracing {
            return Err(TapBusy::Trace);
        }
        shared.tracing = true;
        let first_mark = shared.next_mark;
        // The next trace begins with other marks: packets of this one may still be under way.
        shared.next_mark = ((u32::from(first_mark) + u32::from(count)) % u32::from(MOST)) as u8;
        let marked = AtomicU32::new(0);
        let tracing = Tracing { filter, count: count.into(), first_mark, marked };
        let look = Arc::new(Look::new(tracing));
        let consumers =
            mirrors.distribute(&mut shared, NOTES, |end| MirrorEnd::Trace(end, look.clone()));
        drop(shared);
        Ok(Trace::new(mirrors.clone(), look, consumers))
    }

    /// Leaves a ring for every lane and keeps the other ends.
    fn distribute<T>(
        &self,
        shared: &mut SharedMirror,
        capacity: usize,
        wrap: impl Fn(Producer<T>) -> MirrorEnd,
    ) -> Vec<Consumer<T>> {
        let consumers = shared.waiting.iter_mut().map(|waiting| {
            let (producer, consumer) = ring(capacity);
            waiting.push(wrap(producer));
            consumer
        });
        let consumers = consumers.collect();
        self.announce();
        consumers
    }

    /// Lets the lanes look again. The lock must be held.
    fn announce(&self) {
        // Relaxed: a lane that sees the new number takes the lock, which orders the rest.
        let generation = self.generation.load(Ordering::Relaxed);
        self.generation.store(generation + 1, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, SharedMirror> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W> Look<W> {
    fn new(wanted: W) -> Look<W> {
        Look { wanted, closed: AtomicBool::new(false), lost: AtomicU64::new(0) }
    }

    fn is_closed(&self) -> bool {
        // Relaxed: a lane that sees it late fills a ring without a reader, once.
        self.closed.load(Ordering::Relaxed)
    }

    /// Puts an item on its way, or counts it as lost.
    fn push<T>(&self, end: &mut Producer<T>, item: T) {
        if end.push(item).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl std::fmt::Debug for Mirrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mirrors").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::trace::Step;
    use loom::thread;
    use rheostat_base::{VirtualClock, sync::spsc};
    use rheostat_packet::{Mempool, MempoolConfig, PoolCache};

    fn mirrors() -> Arc<Mirrors> {
        Mirrors::new(2, StdArc::new(VirtualClock::new()), Epoch::Unix)
    }

    /// A packet that one lane has marked and handed over is noted by the other lane, too, whatever that
    /// lane had seen before. Fails when `announce` comes before the rings are left, outside the lock.
    #[test]
    fn a_mark_is_known_wherever_the_packet_goes() {
        loom::model(|| {
            let mirrors = mirrors();
            let (mut one, mut other) =
                (Mirrors::of_lane(&mirrors, LaneId(0)), Mirrors::of_lane(&mirrors, LaneId(1)));
            let (mut out, mut over) = spsc::ring(1);
            let receiving = thread::spawn(move || {
                one.refresh();
                if one.is_armed() {
                    out.push(()).unwrap();
                }
            });
            let owning = thread::spawn(move || {
                other.refresh();
                if over.pop().is_some() {
                    let pool =
                        Mempool::new(&MempoolConfig { buffers: 1, ..MempoolConfig::default() });
                    let mut packet = PoolCache::new(pool.unwrap()).alloc(64).unwrap();
                    packet.set_mark(1);
                    other.note(&packet, Step::Taken);
                    assert!(other.is_armed(), "the note was lost");
                }
            });
            let trace = Mirrors::trace(&mirrors, None, 1).unwrap();
            receiving.join().unwrap();
            owning.join().unwrap();
            drop(trace);
        });
    }
}
