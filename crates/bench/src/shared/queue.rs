//! The queue of each kind, over the same source.

use std::sync::{Mutex, PoisonError};

use rheostat_base::sync::try_lock::TryLock;
use rheostat_io::backend::shared_ring::{Claims, Readiness, Turns};
use rheostat_packet::{BURST, Burst, PoolCache};

use super::QueueKind;
use super::source::Source;

/// What workers receive from.
pub(super) struct Queue {
    source: Source,
    way: Way,
}

/// How they do.
enum Way {
    NonBlocking(Claims),
    Ordered(Claims, Box<Turns<Departure>>),
    SpinLock(TryLock<u64>),
    Mutex(Mutex<u64>),
    /// One worker alone: the lock is its way to change the number, and never contended.
    Own(TryLock<u64>),
}

/// Packets on their way out, in the order in which they were received.
pub(super) struct Departure {
    pub(super) packets: Burst,
    /// When the worker was done with them.
    pub(super) closed: u64,
}

/// What was received: packets from one number to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    first: u64,
    end: u64,
}

impl Queue {
    pub(super) fn new(kind: QueueKind, source: Source) -> Queue {
        let capacity = source.descriptors();
        let way = match kind {
            QueueKind::NonBlocking => Way::NonBlocking(Claims::new(capacity)),
            QueueKind::Ordered => {
                Way::Ordered(Claims::new(capacity), Box::new(Turns::new(capacity)))
            }
            QueueKind::SpinLock => Way::SpinLock(TryLock::new(0)),
            QueueKind::Mutex => Way::Mutex(Mutex::new(0)),
            QueueKind::PerWorker => Way::Own(TryLock::new(0)),
        };
        Queue { source, way }
    }

    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// Receives what has arrived by `now`, up to a burst.
    #[inline]
    pub(super) fn receive(
        &self,
        burst: &mut Burst,
        pool: &mut PoolCache,
        now: u64,
    ) -> Option<Received> {
        let next = match &self.way {
            Way::NonBlocking(claims) => return self.claim(claims, u64::MAX, burst, pool, now),
            Way::Ordered(claims, turns) => {
                return self.claim(claims, turns.bound(), burst, pool, now);
            }
            Way::Mutex(next) => {
                let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
                return self.take(&mut next, burst, pool, now);
            }
            Way::SpinLock(next) | Way::Own(next) => next,
        };
        let mut next = loop {
            match next.try_lock() {
                Some(next) => break next,
                None => std::hint::spin_loop(),
            }
        };
        self.take(&mut next, burst, pool, now)
    }

    fn claim(
        &self,
        claims: &Claims,
        bound: u64,
        burst: &mut Burst,
        pool: &mut PoolCache,
        now: u64,
    ) -> Option<Received> {
        let ready = |number| match self.source.is_ready(number, now) {
            true => Readiness::Whole,
            false => Readiness::Empty,
        };
        let claim = claims.claim(BURST, bound, ready, |_| ()).ok()?;
        let received = Received { first: claim.first, end: claim.end };
        burst.extend((claim.first..claim.end).filter_map(|number| self.source.take(number, pool)));
        // Nobody has to be told: a descriptor below the tail is ready again.
        claims.finish(claim, |_, _| {});
        Some(received)
    }

    /// The whole of a driver's receive function, under a lock.
    fn take(
        &self,
        next: &mut u64,
        burst: &mut Burst,
        pool: &mut PoolCache,
        now: u64,
    ) -> Option<Received> {
        let first = *next;
        let ready = (first..first + BURST as u64).take_while(|n| self.source.is_ready(*n, now));
        let end = first + ready.count() as u64;
        burst.extend((first..end).filter_map(|number| self.source.take(number, pool)));
        *next = end;
        (end > first).then_some(Received { first, end })
    }

    /// Sends what was made of `received`, through `leave`: at once, or when what is before it has left.
    #[inline]
    pub(super) fn send(
        &self,
        received: Received,
        departure: Departure,
        mut leave: impl FnMut(Departure),
    ) {
        match &self.way {
            Way::Ordered(_, turns) => turns.close(received.first, received.end, departure, leave),
            _ => leave(departure),
        }
    }
}
