//! The receive queues of the simulated NIC.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rheostat_base::Time;
use rheostat_packet::{BURST, Burst, Mbuf, PoolCache};

use super::Pacing;
use super::descriptor_ring::LaneSide;
use super::driver::Drive;
use crate::device::RxQueue;

/// A receive queue.
pub(super) struct SimRx {
    ring: LaneSide<Mbuf>,
    /// The NIC, where polling drives it.
    pump: Option<Arc<Drive>>,
    /// How many packets may wait before a poll leaves the NIC alone: without loss there is no use in
    /// queues longer than a burst, whose packets fall out of the processor's cache.
    enough: usize,
}

impl SimRx {
    pub(super) fn new(ring: LaneSide<Mbuf>, pump: Option<Arc<Drive>>, pacing: Pacing) -> SimRx {
        let enough = if pacing == Pacing::Lossless { BURST } else { usize::MAX };
        SimRx { ring, pump, enough }
    }
}

impl RxQueue for SimRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
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
        None
    }
}
