//! The transmit queue of a lane: a burst in one call (sendmmsg), copied by the kernel.

use std::io::IoSlice;
use std::sync::Arc;

use arrayvec::ArrayVec;
use rheostat_base::{DropReason, Time};
use rheostat_packet::mbuf::MAX_SEGMENTS;
use rheostat_packet::{BURST, Burst, Mbuf, PoolCache};
use rustix::io::Errno;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg};

use crate::backend::socket_counters::Sent;
use crate::device::TxQueue;
use crate::sys::packet_socket::PacketSocket;

/// Pieces of packets in one call: every packet may be in several buffers.
const PIECES: usize = BURST + 2 * MAX_SEGMENTS;

/// Packets of a burst that the kernel may drop as it sends them, before the rest of the burst is given up: a
/// card that is full drops all of them, and each is a system call.
const MOST_DROPPED: usize = 4;

/// The transmit queue of a lane.
pub(super) struct PacketTx {
    socket: PacketSocket,
    sent: Arc<Sent>,
    /// Why packets stayed in the last burst, in their order there.
    left: ArrayVec<DropReason, BURST>,
}

impl PacketTx {
    pub(super) fn new(socket: PacketSocket, sent: Arc<Sent>) -> PacketTx {
        PacketTx { socket, sent, left: ArrayVec::new() }
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
        let mut reasons: ArrayVec<DropReason, BURST> = ArrayVec::new();
        let (mut taken, mut dropped) = (0, 0);
        let mut rest = DropReason::TransmitFull;
        while !burst.is_empty() {
            self.sent.calls.increment();
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
                Err(Errno::MSGSIZE) => {
                    unfit.extend(burst.drain(..1));
                    reasons.push(DropReason::TooBig);
                    self.sent.too_long.increment();
                }
                // Shorter than a link header.
                Err(Errno::INVAL) => {
                    unfit.extend(burst.drain(..1));
                    reasons.push(DropReason::TransmitRefused);
                }
                // The kernel has dropped it on its way out: the card is full, or the other end of a virtual
                // link does not take it. It may take those behind.
                Err(Errno::NOBUFS) if dropped < MOST_DROPPED => {
                    dropped += 1;
                    unfit.extend(burst.drain(..1));
                    reasons.push(DropReason::TransmitRefused);
                }
                Err(Errno::INTR) => {}
                // For the caller to count.
                Err(error) => {
                    rest = refusal(error);
                    break;
                }
            }
        }
        self.sent.packets.add(taken as u64);
        self.left.clear();
        self.left.extend(burst.iter().map(|_| rest));
        self.left.extend(reasons);
        burst.extend(unfit);
        taken
    }

    fn why_left(&self, place: usize, _packet: &Mbuf) -> DropReason {
        self.left.get(place).copied().unwrap_or(DropReason::TransmitFull)
    }
}

/// Why packets were left: there was no room, or the interface is down or gone.
fn refusal(error: Errno) -> DropReason {
    match error {
        Errno::NETDOWN | Errno::NXIO | Errno::NODEV => DropReason::LinkDown,
        _ => DropReason::TransmitFull,
    }
}
