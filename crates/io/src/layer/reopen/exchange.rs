//! The queues of a lane, which can be exchanged for others while it runs.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rheostat_base::{DropReason, Time};
use rheostat_packet::{Burst, Mbuf, PoolCache};
use rustix::event::{EventfdFlags, eventfd};

use crate::device::{
    ArrivalOrder, ClaimBound, QueuePair, Rest, RingProgress, RxLayer, RxQueue, SharedQueue,
    TxQueue, Unsent,
};
use crate::lock::lock;

/// Where a lane and the thread that opens devices exchange queues.
pub(super) struct Exchange {
    /// Locked by the lane alone while both of its queues are there.
    tx: Mutex<Option<Box<dyn TxQueue>>>,
    /// What transmit queues before this one have taken and not sent. Locked by the lane alone.
    past: Mutex<Unsent>,
    state: Mutex<State>,
    /// Whether there are new queues to take. A hint: what counts is under the lock.
    is_offered: AtomicBool,
    /// Whether the interface is gone: the old queues have nothing to wait for.
    is_let_go: AtomicBool,
    /// Wakes the lane when queues are offered.
    bell: OwnedFd,
}

#[derive(Default)]
struct State {
    new: Option<Offer>,
    old: Vec<QueuePair>,
}

/// Queues for a lane to take.
pub(super) struct Offer {
    /// The queues.
    pub(super) pair: QueuePair,
    /// Whether nothing stands behind them, so that the lane goes on waiting for others.
    pub(super) is_vacant: bool,
}

impl Exchange {
    /// The exchange of a lane, and the queues that it polls, with `pair` behind them.
    pub(super) fn new(pair: QueuePair) -> std::io::Result<(Arc<Exchange>, QueuePair)> {
        let exchange = Arc::new(Exchange {
            tx: Mutex::new(Some(pair.tx)),
            past: Mutex::default(),
            state: Mutex::default(),
            is_offered: AtomicBool::new(false),
            is_let_go: AtomicBool::new(false),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        });
        let rx = ReopenableRx {
            inner: pair.rx,
            generation: 0,
            claimed_before: 0,
            bound: None,
            leaves_transmit: false,
            exchange: exchange.clone(),
        };
        let tx = ReopenableTx { exchange: exchange.clone(), left: Vec::new() };
        Ok((exchange, QueuePair { rx: Box::new(rx), tx: Box::new(tx) }))
    }

    /// The queues have nothing to wait for until others are offered.
    pub(super) fn let_go(&self) {
        self.is_let_go.store(true, Ordering::Relaxed);
    }

    /// Offers new queues. Those that were offered before and not taken are returned.
    pub(super) fn offer(&self, offer: Offer) -> Option<Offer> {
        let before = lock(&self.state).new.replace(offer);
        // Relaxed: the lane looks again under the lock.
        self.is_offered.store(true, Ordering::Relaxed);
        // Fails only when it has been rung 2^64 times.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        before
    }

    /// Whether the queues that were offered last are taken.
    pub(super) fn is_taken(&self) -> bool {
        lock(&self.state).new.is_none()
    }

    /// The queues that the lane has given back.
    pub(super) fn take_old(&self) -> Vec<QueuePair> {
        std::mem::take(&mut lock(&self.state).old)
    }

    /// Everything that the exchange itself holds, once the lane is gone.
    pub(super) fn close(&self) {
        let state = std::mem::take(&mut *lock(&self.state));
        drop(state);
        drop(lock(&self.tx).take());
    }
}

/// A receive queue with another one behind it.
struct ReopenableRx {
    inner: Box<dyn RxQueue>,
    /// How many times it was exchanged.
    generation: u64,
    /// Descriptors that the lanes of a shared queue have claimed of those before it. All of these lanes know the same figure: an
    /// empty queue is exchanged, to which nothing comes any more.
    claimed_before: u64,
    /// Below what claims have to stay.
    bound: Option<ClaimBound>,
    /// Whether other lanes receive from the queue.
    leaves_transmit: bool,
    exchange: Arc<Exchange>,
}

impl ReopenableRx {
    /// Takes the queues that are offered; the old ones are empty.
    #[cold]
    fn exchange(&mut self, pool: &mut PoolCache) {
        // The thread that holds it is about to let go of it; the next poll finds it free.
        let Ok(mut state) = self.exchange.state.try_lock() else { return };
        let Some(Offer { pair: new, is_vacant }) = state.new.take() else { return };
        let mut rx = std::mem::replace(&mut self.inner, new.rx);
        self.claimed_before += rx.as_shared().map_or(0, |queue| queue.claimed());
        // Held until what was refused is noted: lanes that send in order share the queue.
        let mut sending = lock(&self.exchange.tx);
        if let Some(mut tx) = sending.replace(new.tx) {
            // What waits for the interface that is gone is not sent any more.
            tx.finish(pool);
            // It waits no longer.
            let old = Unsent { waiting: 0, ..tx.unsent() };
            let mut past = lock(&self.exchange.past);
            *past = *past + old;
            drop(past);
            state.old.push(QueuePair { rx, tx });
        }
        drop(sending);
        self.exchange.is_offered.store(false, Ordering::Relaxed);
        self.exchange.is_let_go.store(is_vacant, Ordering::Relaxed);
        // Not readable any more.
        let _ = rustix::io::read(&self.exchange.bell, &mut [0_u8; 8][..]);
        self.generation += 1;
        drop(state);
        self.bound_inner();
        if self.leaves_transmit {
            self.leave_transmit();
        }
    }
}

impl ReopenableRx {
    /// Keeps claims on the inner queue below the bound, which counts from the first queue on.
    fn bound_inner(&mut self) {
        if let (Some(bound), Some(queue)) = (self.bound.clone(), self.inner.as_shared()) {
            let before = self.claimed_before;
            // The turns of claims on a queue before it may still be open.
            queue.bound_claims(Arc::new(move || bound().saturating_sub(before)));
        }
    }
}

impl RxLayer for ReopenableRx {
    fn inner(&self) -> &dyn RxQueue {
        &*self.inner
    }

    fn inner_mut(&mut self) -> &mut dyn RxQueue {
        &mut *self.inner
    }

    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let count = self.inner.recv(burst, pool, now);
        if count == 0
            && self.exchange.is_offered.load(Ordering::Relaxed)
            && self.inner.backlog() == 0
        {
            self.exchange(pool);
        }
        count
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        match self.exchange.is_let_go.load(Ordering::Relaxed) {
            true => Some(self.exchange.bell.as_fd()),
            false => self.inner.wait_fd(),
        }
    }

    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        match self.exchange.is_let_go.load(Ordering::Relaxed) {
            true => Rest::after_look(self.inner.backlog(), true),
            false => self.inner.rest(pool, now),
        }
    }

    fn order(&self) -> ArrivalOrder<'_> {
        let order = self.inner.order();
        ArrivalOrder { rings: order.rings.map(|_| self as &dyn RingProgress), ..order }
    }

    fn as_shared(&mut self) -> Option<&mut dyn SharedQueue> {
        Some(self)
    }
}

/// What the inner queue states, behind the number of the exchange.
impl RingProgress for ReopenableRx {
    fn ends(&self) -> Vec<u64> {
        let ends = self.inner.order().rings.map(|rings| rings.ends());
        std::iter::once(self.generation).chain(ends.into_iter().flatten()).collect()
    }

    /// A queue is exchanged once everything in it was received.
    fn has_read(&self, ends: &[u64]) -> bool {
        ends.split_first().is_none_or(|(generation, ends)| {
            *generation < self.generation
                || self.inner.order().rings.is_some_and(|rings| rings.has_read(ends))
        })
    }
}

impl SharedQueue for ReopenableRx {
    fn release(&mut self) -> usize {
        self.inner.as_shared().map_or(0, |queue| queue.release())
    }

    fn leave_transmit(&mut self) {
        self.leaves_transmit = true;
        if let Some(queue) = self.inner.as_shared() {
            queue.leave_transmit();
        }
    }

    fn descriptors(&mut self) -> Option<u64> {
        self.inner.as_shared()?.descriptors()
    }

    fn claimed(&mut self) -> u64 {
        self.claimed_before + self.inner.as_shared().map_or(0, |queue| queue.claimed())
    }

    fn latest_claim(&mut self) -> Option<(u64, u64)> {
        let (first, end) = self.inner.as_shared()?.latest_claim()?;
        Some((self.claimed_before + first, self.claimed_before + end))
    }

    fn bound_claims(&mut self, bound: ClaimBound) {
        self.bound = Some(bound);
        self.bound_inner();
    }
}

/// A transmit queue with another one behind it.
struct ReopenableTx {
    exchange: Arc<Exchange>,
    /// Why packets stayed in the last burst, in their order there.
    left: Vec<DropReason>,
}

impl TxQueue for ReopenableTx {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let ReopenableTx { exchange, left } = self;
        let mut tx = lock(&exchange.tx);
        left.clear();
        let Some(tx) = tx.as_mut().filter(|_| !exchange.is_let_go.load(Ordering::Relaxed)) else {
            left.extend(burst.iter().map(|_| DropReason::LinkDown));
            return 0;
        };
        let taken = tx.send(burst, pool, now);
        left.extend(burst.iter().enumerate().map(|(place, packet)| tx.why_left(place, packet)));
        taken
    }

    fn why_left(&self, place: usize, _packet: &Mbuf) -> DropReason {
        self.left.get(place).copied().unwrap_or(DropReason::TransmitFull)
    }

    fn unsent(&mut self) -> Unsent {
        let mut tx = lock(&self.exchange.tx);
        let now = tx.as_mut().map(|tx| tx.unsent()).unwrap_or_default();
        *lock(&self.exchange.past) + now
    }

    fn finish(&mut self, pool: &mut PoolCache) {
        if let Some(tx) = lock(&self.exchange.tx).as_mut() {
            tx.finish(pool);
        }
    }
}

impl Drop for ReopenableTx {
    fn drop(&mut self) {
        drop(lock(&self.exchange.tx).take());
    }
}
