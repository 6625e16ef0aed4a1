//! The transmit queue of a lane.

use std::io::{self, IoSlice};
use std::sync::Arc;

use arrayvec::ArrayVec;
use rheostat_base::{DropReason, Time};
use rheostat_packet::mbuf::MAX_SEGMENTS;
use rheostat_packet::{Burst, Mbuf, PoolCache};

use super::attachment::Attachment;
use crate::backend::socket_counters::Sent;
use crate::device::TxQueue;
use crate::segmentation::VNET_HEADER;

/// Nothing is left to do with what we send.
const NOTHING_LEFT: [u8; VNET_HEADER] = [0; VNET_HEADER];

/// The transmit queue of a lane.
pub(super) struct TapTx {
    lane: usize,
    sent: Arc<Sent>,
    attachment: Arc<Attachment>,
    /// Why packets stayed in the last burst.
    left: DropReason,
}

impl TapTx {
    pub(super) fn new(lane: usize, sent: Arc<Sent>, attachment: Arc<Attachment>) -> TapTx {
        TapTx { lane, sent, attachment, left: DropReason::TransmitFull }
    }
}

impl TxQueue for TapTx {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, _now: Time) -> usize {
        let queue = &self.attachment.queues[self.lane];
        let mut taken = 0;
        for packet in burst.iter() {
            let mut pieces: ArrayVec<IoSlice<'_>, { MAX_SEGMENTS + 1 }> = ArrayVec::new();
            pieces.push(IoSlice::new(&NOTHING_LEFT));
            pieces.extend(packet.segments().map(IoSlice::new));
            if let Err(error) = queue.write(&pieces) {
                // For the caller to count.
                self.left = refusal(&error);
                break;
            }
            self.sent.bytes.add(packet.len() as u64);
            taken += 1;
        }
        self.sent.packets.add(taken as u64);
        burst.drain(..taken).for_each(|packet| pool.free(packet));
        taken
    }

    fn why_left(&self, _place: usize, _packet: &Mbuf) -> DropReason {
        self.left
    }
}

/// Why a packet was left: the interface is down (EIO) or gone (EBADFD), or the kernel has no memory.
fn refusal(error: &io::Error) -> DropReason {
    match error.raw_os_error() {
        Some(libc::EIO | libc::EBADFD | libc::ENODEV | libc::ENETDOWN) => DropReason::LinkDown,
        _ => DropReason::TransmitFull,
    }
}
