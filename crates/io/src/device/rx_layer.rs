//! A receive queue that wraps another.

use std::os::fd::BorrowedFd;

use rheostat_base::Time;
use rheostat_packet::{Burst, PoolCache};

use super::{ArrivalOrder, Rest, RxQueue, SharedQueue};

/// A receive queue that wraps another: by default each method of [`RxQueue`] is that of the inner queue. A layer overrides those
/// that it changes.
pub trait RxLayer: Send {
    /// The queue that the layer wraps.
    fn inner(&self) -> &dyn RxQueue;

    /// The queue that the layer wraps, to receive from it.
    fn inner_mut(&mut self) -> &mut dyn RxQueue;

    /// See [`RxQueue::recv`].
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize;

    /// See [`RxQueue::backlog`].
    fn backlog(&self) -> usize {
        self.inner().backlog()
    }

    /// See [`RxQueue::wait_fd`].
    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner().wait_fd()
    }

    /// See [`RxQueue::rest`].
    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        self.inner_mut().rest(pool, now)
    }

    /// See [`RxQueue::order`].
    fn order(&self) -> ArrivalOrder<'_> {
        self.inner().order()
    }

    /// See [`RxQueue::as_shared`].
    fn as_shared(&mut self) -> Option<&mut dyn SharedQueue> {
        self.inner_mut().as_shared()
    }
}

impl<L: RxLayer> RxQueue for L {
    #[inline]
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        RxLayer::recv(self, burst, pool, now)
    }

    fn backlog(&self) -> usize {
        RxLayer::backlog(self)
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        RxLayer::wait_fd(self)
    }

    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        RxLayer::rest(self, pool, now)
    }

    fn order(&self) -> ArrivalOrder<'_> {
        RxLayer::order(self)
    }

    fn as_shared(&mut self) -> Option<&mut dyn SharedQueue> {
        RxLayer::as_shared(self)
    }
}
