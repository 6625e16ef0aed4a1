//! The receive queues of the simulated NIC.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rheostat_base::Time;
use rheostat_packet::{BURST, Burst, Mbuf, PoolCache};

use super::Pacing;
use super::descriptor_ring::LaneSide;
use super::driver::Drive;
use super::queue_event::QueueEvent;
use crate::device::{ArrivalOrder, Rest, RxQueue, Stamping};

/// What puts packets into a ring: a thread, a test that steps, or the lanes that poll.
#[derive(Clone)]
pub(super) struct Filling {
    /// The NIC, where polling drives it.
    pump: Option<Arc<Drive>>,
    /// Whether packets wait until there is room for them.
    lossless: bool,
    /// How many packets may wait before a poll leaves the NIC alone: without loss there is no use in
    /// queues longer than a burst, whose packets fall out of the processor's cache.
    enough: usize,
    /// With open-loop pacing, packets are stamped with the time at which they are due.
    stamping: Stamping<'static>,
}

impl Filling {
    pub(super) fn new(pump: Option<Arc<Drive>>, pacing: Pacing) -> Filling {
        let lossless = pacing == Pacing::Lossless;
        Filling {
            pump,
            lossless,
            enough: if lossless { BURST } else { usize::MAX },
            stamping: pacing.stamping(),
        }
    }

    /// Drives the NIC, where polling does, unless enough packets wait.
    #[inline]
    pub(super) fn fill(&self, backlog: impl FnOnce() -> usize, now: Time, pool: &mut PoolCache) {
        if let Some(drive) = &self.pump
            && backlog() < self.enough
        {
            drive.pump(now, pool);
        }
    }

    /// Drives the NIC once more before the lane sleeps, where polling does; whether packets that arrive later are announced.
    ///
    /// Without loss, the lane that drives the NIC wakes the lanes that it puts packets before. What keeps a packet from
    /// its queue is the work of a lane, and a lane drives the NIC once more after its work; the lock, which is
    /// waited for, shows the last of them what all the others have done.
    pub(super) fn fill_before_rest(&self, now: Time, pool: &mut PoolCache) -> bool {
        match &self.pump {
            Some(drive) if self.lossless => {
                // A sleeper keeps no buffer that the next packet may need.
                pool.flush();
                drive.pump_before_rest(now, pool)
            }
            _ => false,
        }
    }
}

/// A receive queue.
pub(super) struct SimRx {
    ring: LaneSide<Mbuf>,
    filling: Filling,
    /// What the NIC's thread wakes the lane by, where it has one.
    event: Option<Arc<QueueEvent>>,
    /// Whether the lane has armed it.
    is_armed: bool,
}

impl SimRx {
    pub(super) fn new(
        ring: LaneSide<Mbuf>,
        filling: Filling,
        event: Option<Arc<QueueEvent>>,
    ) -> SimRx {
        SimRx { ring, filling, event, is_armed: false }
    }

    /// Lets the NIC's thread wake the lane, unless a packet is there already.
    fn arm(&mut self, event: &QueueEvent, pool: &mut PoolCache) -> Rest {
        // A sleeper keeps no buffer that the next packet may need.
        pool.flush();
        event.arm();
        self.is_armed = true;
        Rest::after_look(self.ring.backlog(), true)
    }
}

impl RxQueue for SimRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        if std::mem::take(&mut self.is_armed)
            && let Some(event) = &self.event
        {
            event.disarm();
        }
        self.filling.fill(|| self.ring.backlog(), now, pool);
        self.ring.take_each(burst.remaining_capacity(), |packet| burst.push(packet))
    }

    fn backlog(&self) -> usize {
        self.ring.backlog()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.event.as_ref().map(|event| event.as_fd())
    }

    fn order(&self) -> ArrivalOrder<'_> {
        ArrivalOrder { stamping: self.filling.stamping, rings: None }
    }

    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        if let Some(event) = self.event.clone() {
            return self.arm(&event, pool);
        }
        let is_announced = self.filling.fill_before_rest(now, pool);
        Rest::after_look(self.ring.backlog(), is_announced)
    }
}
