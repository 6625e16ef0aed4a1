//! The receive queues of the simulated NIC.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rheostat_base::Time;
use rheostat_packet::{BURST, Burst, Mbuf, PoolCache};

use super::Pacing;
use super::descriptor_ring::LaneSide;
use super::driver::Drive;
use super::queue_event::QueueEvent;
use crate::device::{Rest, RxQueue};

/// A receive queue.
pub(super) struct SimRx {
    ring: LaneSide<Mbuf>,
    /// The NIC, where polling drives it.
    pump: Option<Arc<Drive>>,
    /// Whether packets wait until there is room for them.
    lossless: bool,
    /// How many packets may wait before a poll leaves the NIC alone: without loss there is no use in
    /// queues longer than a burst, whose packets fall out of the processor's cache.
    enough: usize,
    /// What the NIC's thread wakes the lane by, where it has one.
    event: Option<Arc<QueueEvent>>,
    /// Whether the lane has armed it.
    is_armed: bool,
}

impl SimRx {
    pub(super) fn new(
        ring: LaneSide<Mbuf>,
        pump: Option<Arc<Drive>>,
        event: Option<Arc<QueueEvent>>,
        pacing: Pacing,
    ) -> SimRx {
        let lossless = pacing == Pacing::Lossless;
        let enough = if lossless { BURST } else { usize::MAX };
        SimRx { ring, pump, lossless, enough, event, is_armed: false }
    }

    /// Lets the NIC's thread wake the lane, unless a packet is there already.
    fn arm(&mut self, event: &QueueEvent, pool: &mut PoolCache) -> Rest {
        // A sleeper keeps no buffer that the next packet may need.
        pool.flush();
        event.arm();
        self.is_armed = true;
        if self.ring.backlog() > 0 { Rest::Awake } else { Rest::Sleep }
    }
}

impl RxQueue for SimRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        if std::mem::take(&mut self.is_armed)
            && let Some(event) = &self.event
        {
            event.disarm();
        }
        if let Some(drive) = &self.pump
            && self.ring.backlog() < self.enough
        {
            drive.pump(now, pool);
        }
        self.ring.take_each(burst.remaining_capacity(), |packet| burst.push(packet))
    }

    fn backlog(&self) -> usize {
        self.ring.backlog()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.event.as_ref().map(|event| event.as_fd())
    }

    /// Without loss, the lane that drives the NIC wakes the lanes that it puts packets before. What keeps a packet from
    /// its queue is the work of a lane, and a lane drives the NIC once more after its work; the lock, which is
    /// waited for, shows the last of them what all the others have done.
    fn rest(&mut self, pool: &mut PoolCache, now: Time) -> Rest {
        if let Some(event) = self.event.clone() {
            return self.arm(&event, pool);
        }
        let announced = match &self.pump {
            Some(drive) if self.lossless => {
                // A sleeper keeps no buffer that the next packet may need.
                pool.flush();
                drive.pump_before_rest(now, pool)
            }
            _ => false,
        };
        match announced {
            _ if self.ring.backlog() > 0 => Rest::Awake,
            true => Rest::Sleep,
            false => Rest::Nap,
        }
    }
}
