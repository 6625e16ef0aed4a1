//! The transmit queue of a lane: a burst in one call (sendmmsg), copied by the kernel.

use std::io::IoSlice;
use std::sync::Arc;

use arrayvec::ArrayVec;
use rheostat_base::{Counter, Time};
use rheostat_packet::mbuf::MAX_SEGMENTS;
use rheostat_packet::{BURST, Burst, Mbuf, PoolCache};
use rustix::io::Errno;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg};

use crate::device::TxQueue;
use crate::sys::packet_socket::PacketSocket;

/// Pieces of packets in one call: every packet may be in several buffers.
const PIECES: usize = BURST + 2 * MAX_SEGMENTS;

/// What a lane sends. Written by the lane.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Sent {
    pub(super) packets: Counter,
    pub(super) bytes: Counter,
    /// Packets that the interface does not carry, most of them because of their length.
    pub(super) refused: Counter,
}

/// The transmit queue of a lane.
pub(super) struct PacketTx {
    socket: PacketSocket,
    sent: Arc<Sent>,
}

impl PacketTx {
    pub(super) fn new(socket: PacketSocket, sent: Arc<Sent>) -> PacketTx {
        PacketTx { socket, sent }
    }

    /// Offers packets to the kernel: how many it took, or why not the first.
    fn offer(&self, packets: &[Mbuf]) -> Result<usize, Errno> {
        let mut pieces: ArrayVec<IoSlice<'_>, PIECES> = ArrayVec::new();
        let mut ends: ArrayVec<usize, BURST> = ArrayVec::new();
        for packet in packets {
            if pieces.remaining_capacity() < MAX_SEGMENTS {
                break;
            }
            pieces.extend(packet.segments().map(IoSlice::new));
            ends.push(pieces.len());
        }
        let mut controls: [SendAncillaryBuffer<'_, '_, '_>; BURST] =
            std::array::from_fn(|_| SendAncillaryBuffer::default());
        let mut start = 0;
        let mut messages: ArrayVec<MMsgHdr<'_>, BURST> = ArrayVec::new();
        for (end, control) in ends.iter().zip(&mut controls) {
            messages.push(MMsgHdr::new(&pieces[start..*end], control));
            start = *end;
        }
        sendmmsg(&self.socket, &mut messages, SendFlags::DONTWAIT)
    }
}

impl TxQueue for PacketTx {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, _now: Time) -> usize {
        let mut unfit = Burst::new();
        let mut taken = 0;
        while !burst.is_empty() {
            match self.offer(burst) {
                Ok(0) => break,
                Ok(count) => {
                    taken += count;
                    for packet in burst.drain(..count) {
                        self.sent.bytes.add(packet.len() as u64);
                        pool.free(packet);
                    }
                }
                // Of those behind it, the interface may still carry some.
                Err(Errno::MSGSIZE | Errno::INVAL) => unfit.extend(burst.drain(..1)),
                Err(Errno::INTR) => {}
                // No room, or the interface is down or gone: for the caller to count.
                Err(_) => break,
            }
        }
        self.sent.packets.add(taken as u64);
        self.sent.refused.add(unfit.len() as u64);
        burst.extend(unfit);
        taken
    }
}
