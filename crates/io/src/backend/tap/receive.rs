//! The receive queue of a lane.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rheostat_base::Time;
use rheostat_packet::{Burst, PoolCache};

use super::attachment::Attachment;
use crate::backend::intake::{Frame, Intake, Taken};
use crate::device::{ArrivalOrder, RingProgress, RxQueue};
use crate::segmentation::{Offload, OffloadError, VNET_HEADER};

/// Bytes of the longest frame with its header: 64 KiB of IP, an Ethernet header and tags.
const LONGEST: usize = VNET_HEADER + 65_536 + 32;

/// Frames that a queue of the kernel's holds (`TUN_READQ_SIZE` in drivers/net/tun.c), unless the
/// interface's `txqueuelen` was changed.
const KERNEL_QUEUE: u64 = 500;

/// The receive queue of a lane.
pub(super) struct TapRx {
    intake: Intake,
    /// The frame at hand with its header, and how long it is; zero when it is done.
    buffer: Vec<u8>,
    held: usize,
    /// Frames that are done since the start.
    taken: u64,
    lane: usize,
    attachment: Arc<Attachment>,
}

impl TapRx {
    pub(super) fn new(intake: Intake, lane: usize, attachment: Arc<Attachment>) -> TapRx {
        TapRx { intake, buffer: vec![0; LONGEST], held: 0, taken: 0, lane, attachment }
    }

    /// Reads a frame, if there is one and the last is done.
    fn hold(&mut self) -> bool {
        if self.held == 0 {
            let is_begun = &self.attachment.begun[self.lane];
            // Relaxed: the read, a call into the kernel that takes locks, comes between this and the next,
            // and between this and what `Attachment::waits` sees of the queue.
            is_begun.store(true, Ordering::Relaxed);
            // An error means that the interface is gone, which the monitor finds out by itself.
            let read = self.attachment.queues[self.lane].read(&mut self.buffer);
            self.held = read.ok().flatten().unwrap_or(0);
            if self.held == 0 {
                // Release: pairs with the Acquire in `Attachment::waits`; what was read before is in
                // bursts.
                is_begun.store(false, Ordering::Release);
            }
        }
        self.held > 0
    }
}

/// A frame as it is read. The kernel puts tags back by itself.
fn frame(bytes: &[u8]) -> Frame<'_> {
    let (offload, bytes) = match bytes.split_first_chunk::<VNET_HEADER>() {
        Some((header, bytes)) => (Offload::parse(header), bytes),
        None => (Err(OffloadError::Layout), bytes),
    };
    Frame { bytes, lost: None, offload, tag: None }
}

impl RxQueue for TapRx {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let first = burst.len();
        while !burst.is_full() && self.hold() {
            let frame = frame(&self.buffer[..self.held]);
            if self.intake.take(&frame, burst, pool, now) == Taken::Whole {
                self.held = 0;
                self.taken += 1;
            }
        }
        burst.len() - first
    }

    /// Whether there is any: the kernel does not report how many.
    fn backlog(&self) -> usize {
        usize::from(self.attachment.waits(self.lane))
    }

    fn order(&self) -> ArrivalOrder<'_> {
        ArrivalOrder::on_receipt(self.intake.stamps(), self)
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.attachment.queues[self.lane].as_fd())
    }
}

impl RingProgress for TapRx {
    /// The kernel does not report how many frames wait, but no more than its queue holds.
    fn ends(&self) -> Vec<u64> {
        let waiting = if self.backlog() > 0 { KERNEL_QUEUE } else { 0 };
        vec![self.taken + waiting]
    }

    fn has_read(&self, ends: &[u64]) -> bool {
        ends.iter().all(|end| self.taken >= *end)
    }
}
