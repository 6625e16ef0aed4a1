//! The receive queue of a lane.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rheostat_base::Time;
use rheostat_packet::{Burst, PoolCache};

use super::device::Attachment;
use super::ring::SlotRing;
use crate::backend::intake::{Intake, Taken};
use crate::device::{ArrivalOrder, RingProgress, RxQueue};

/// Polls without a packet after which a waiting error is taken from the socket, so that it does not poll
/// readable for ever: the interface went down.
const ERROR_EVERY: u32 = 256;

/// The receive queue of a lane.
pub(super) struct PacketRx {
    pub(super) ring: SlotRing,
    pub(super) intake: Intake,
    pub(super) lane: usize,
    /// Polls in a row that found nothing.
    pub(super) idle: u32,
    pub(super) attachment: Arc<Attachment>,
}

impl RxQueue for PacketRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let first = burst.len();
        let socket = &self.attachment.sockets[self.lane];
        while !burst.is_full() {
            let Some(frame) = self.ring.frame(socket) else { break };
            if self.intake.take(&frame, burst, pool, now) == Taken::Whole {
                self.ring.advance();
            }
        }
        let count = burst.len() - first;
        self.idle = if count > 0 { 0 } else { self.idle.wrapping_add(1) };
        if self.idle % ERROR_EVERY == ERROR_EVERY - 1 {
            // What it states, the monitor finds out by itself.
            let _ = socket.take_error();
        }
        count
    }

    /// Frames, each of which may be several packets.
    fn backlog(&self) -> usize {
        self.ring.memory().backlog()
    }

    fn order(&self) -> ArrivalOrder<'_> {
        ArrivalOrder::on_receipt(self.intake.stamps(), self)
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.attachment.sockets[self.lane].as_fd())
    }
}

impl RingProgress for PacketRx {
    fn ends(&self) -> Vec<u64> {
        vec![self.ring.taken() + self.backlog() as u64]
    }

    fn has_read(&self, ends: &[u64]) -> bool {
        ends.iter().all(|end| self.ring.taken() >= *end)
    }
}
