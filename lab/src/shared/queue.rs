//! The queue of each kind, over the same source.

use std::sync::{Mutex, PoisonError};

use rheostat_base::Time;
use rheostat_base::sync::try_lock::TryLock;
use rheostat_io::backend::shared_ring::{Claim, ClaimSize, Claims, NoClaim, Readiness, Turns};
use rheostat_packet::{BURST, Burst, PoolCache};

use super::QueueKind;
use super::source::SharedSource;

/// What workers receive from.
pub(super) struct Queue {
    source: SharedSource,
    way: QueueSharing,
}

/// How they do.
enum QueueSharing {
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
pub(super) struct QueueReceived {
    first: u64,
    end: u64,
}

/// What a worker has of a queue on which it makes claims.
pub(super) struct Hold {
    size: ClaimSize,
    /// The claim of which it takes bursts.
    claim: Option<Claim<()>>,
}

impl Hold {
    /// Nothing, of a queue of so many descriptors.
    pub(super) fn new(descriptors: u64) -> Hold {
        Hold { size: ClaimSize::new(descriptors), claim: None }
    }
}

impl Queue {
    pub(super) fn new(kind: QueueKind, source: SharedSource) -> Queue {
        let capacity = source.descriptors();
        let way = match kind {
            QueueKind::NonBlocking => QueueSharing::NonBlocking(Claims::new(capacity)),
            QueueKind::Ordered => {
                QueueSharing::Ordered(Claims::new(capacity), Box::new(Turns::new(capacity)))
            }
            QueueKind::SpinLock => QueueSharing::SpinLock(TryLock::new(0)),
            QueueKind::Mutex => QueueSharing::Mutex(Mutex::new(0)),
            QueueKind::PerWorker => QueueSharing::Own(TryLock::new(0)),
        };
        Queue { source, way }
    }

    pub(super) fn source(&self) -> &SharedSource {
        &self.source
    }

    /// Receives what has arrived by `now`, up to a burst.
    #[inline]
    pub(super) fn receive(
        &self,
        hold: &mut Hold,
        burst: &mut Burst,
        pool: &mut PoolCache,
        now: u64,
    ) -> Option<QueueReceived> {
        let next = match &self.way {
            QueueSharing::NonBlocking(claims) => {
                return self.claim((claims, u64::MAX), hold, burst, pool, now);
            }
            QueueSharing::Ordered(claims, turns) => {
                return self.claim((claims, turns.bound()), hold, burst, pool, now);
            }
            QueueSharing::Mutex(next) => {
                let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
                return self.take(&mut next, burst, pool, now);
            }
            QueueSharing::SpinLock(next) | QueueSharing::Own(next) => next,
        };
        let mut next = loop {
            match next.try_lock() {
                Some(next) => break next,
                None => std::hint::spin_loop(),
            }
        };
        self.take(&mut next, burst, pool, now)
    }

    /// A burst of the claim that the worker holds, or of a new one below `bound`.
    fn claim(
        &self,
        (claims, bound): (&Claims, u64),
        hold: &mut Hold,
        burst: &mut Burst,
        pool: &mut PoolCache,
        now: u64,
    ) -> Option<QueueReceived> {
        let mut claim = match hold.claim.take() {
            Some(claim) => claim,
            None => self.new_claim((claims, bound), &mut hold.size, now)?,
        };
        let taken = claim.take(BURST);
        let received = QueueReceived { first: taken.start, end: taken.end };
        // Another worker wrote the next ones when it took the lap before.
        self.source.prefetch(claim.left().take(BURST));
        burst.extend(taken.filter_map(|number| self.source.take(number, pool)));
        if claim.left().is_empty() {
            // No one else is told: a descriptor below the tail is ready again.
            claims.finish(claim, |_, _| {});
        } else {
            hold.claim = Some(claim);
        }
        Some(received)
    }

    fn new_claim(
        &self,
        (claims, bound): (&Claims, u64),
        size: &mut ClaimSize,
        now: u64,
    ) -> Option<Claim<()>> {
        let ready = |number| match self.source.is_ready(number, now) {
            true => Readiness::Whole,
            false => Readiness::Empty,
        };
        let now = Time::from_nanos(now);
        match claims.claim(size.next(now), bound, ready, |_| ()) {
            Ok(claim) => {
                size.claimed(claim.end - claim.first, now);
                Some(claim)
            }
            Err(NoClaim::Empty) => {
                size.found_none();
                None
            }
            Err(NoClaim::UsedUp) => None,
        }
    }

    /// The whole of a driver's receive function, under a lock.
    fn take(
        &self,
        next: &mut u64,
        burst: &mut Burst,
        pool: &mut PoolCache,
        now: u64,
    ) -> Option<QueueReceived> {
        let first = *next;
        let ready = (first..first + BURST as u64).take_while(|n| self.source.is_ready(*n, now));
        let end = first + ready.count() as u64;
        burst.extend((first..end).filter_map(|number| self.source.take(number, pool)));
        *next = end;
        (end > first).then_some(QueueReceived { first, end })
    }

    /// Sends what was made of `received`, through `leave`: at once, or when what is before it has left.
    #[inline]
    pub(super) fn send(
        &self,
        received: QueueReceived,
        departure: Departure,
        mut leave: impl FnMut(Departure),
    ) {
        match &self.way {
            QueueSharing::Ordered(_, turns) => {
                turns.close(received.first, received.end, departure, leave)
            }
            _ => leave(departure),
        }
    }
}
