//! The transmit queue of a lane.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use std::thread;
use std::time::{Duration, Instant};

use rheostat_base::{DropReason, Time};
use rheostat_packet::wire::{ethernet, vlan};
use rheostat_packet::{BURST, Burst, Mbuf, PoolCache};

use super::attachment::Attachment;
use super::open::PacketRing;
use super::ring::Producer;
use super::transmit_state::Flushed;
use crate::device::{TxQueue, Unsent};
use crate::sys::xdp_socket::{CONTINUED, Descriptor};

/// Pieces of one packet that every driver takes where any does: the kernel's `MAX_SKB_FRAGS`.
const MOST_PIECES: usize = 17;
/// A frame is not shorter than its Ethernet header.
const SHORTEST: usize = ethernet::HEADER;
/// How long the last packets have to get out, and how often it is looked.
const LAST_PACKETS: Duration = Duration::from_millis(100);
const GLANCE: Duration = Duration::from_micros(200);

/// The transmit queue of a lane: a TX ring on one hardware queue.
pub(super) struct XdpTx {
    // Before the attachment: its mapping must go first.
    ring: Producer<PacketRing>,
    lane: usize,
    queue: usize,
    attachment: Arc<Attachment>,
    /// When packets were sent last, and whether the lane has asked since what is unsent.
    sent_at: Time,
    asked: bool,
}

/// A packet that did not go into the ring.
enum Left {
    /// There is no room for it now.
    NoRoom(Mbuf),
    /// It cannot be sent on this interface at all.
    Unfit(Mbuf),
}

impl XdpTx {
    pub(super) fn new(
        ring: Producer<PacketRing>,
        lane: usize,
        attachment: Arc<Attachment>,
    ) -> XdpTx {
        let queue = attachment.lanes[lane].transmit_queue;
        XdpTx { ring, lane, queue, attachment, sent_at: Time::ZERO, asked: true }
    }

    /// Puts a packet into the ring: the packet itself if the kernel can send it from where it lies, else
    /// a copy.
    fn put(&mut self, packet: Mbuf, pool: &mut PoolCache) -> Result<(), Left> {
        if packet.len() < SHORTEST || self.is_too_long(&packet) {
            return Err(Left::Unfit(packet));
        }
        if !self.can_lend(&packet) {
            return self.put_copy(packet, pool);
        }
        let pieces = if packet.is_chained() { packet.segments().count() } else { 1 };
        if (self.ring.room(pieces as u32) as usize) < pieces {
            return Err(Left::NoRoom(packet));
        }
        let ring = &mut self.ring;
        let loans = self.attachment.queues[self.queue].loans();
        let lent = loans.lend_packet(packet, |piece| {
            let options = if piece.last { 0 } else { CONTINUED };
            ring.put(Descriptor { address: piece.address, len: piece.len, options });
        });
        // `can_lend` has seen that it is a packet of this pool.
        lent.map_err(Left::Unfit)?;
        self.attachment.counters.lanes[self.lane].lent.add(pieces as u64);
        Ok(())
    }

    /// Whether the packet is longer than the interface carries. The kernel does not look at its length.
    #[inline]
    fn is_too_long(&self, packet: &Mbuf) -> bool {
        // Relaxed: a figure.
        let longest = self.attachment.mtu.load(Ordering::Relaxed) as usize + ethernet::HEADER;
        packet.len() > longest && (packet.len() > longest + vlan::TAG || !is_tagged(packet))
    }

    /// Whether the kernel can send the packet from where it lies.
    #[inline]
    fn can_lend(&self, packet: &Mbuf) -> bool {
        if !packet.is_of(&self.attachment.pool) {
            return false;
        }
        if !packet.is_chained() {
            return true;
        }
        // The kernel takes no empty piece, and the first must hold the link header.
        let pieces = packet.segments().count();
        self.attachment.pieces
            && pieces <= MOST_PIECES
            && packet.data().len() >= SHORTEST
            && packet.segments().all(|piece| !piece.is_empty())
    }

    fn put_copy(&mut self, packet: Mbuf, pool: &mut PoolCache) -> Result<(), Left> {
        // Full rings first, so that nothing is copied in vain over and over.
        if self.ring.room(MOST_PIECES as u32) < MOST_PIECES as u32 {
            return Err(Left::NoRoom(packet));
        }
        // Fails for want of buffers too; such a packet is not waited for, so that it cannot hold up
        // the others.
        let Ok(copy) = pool.copy(&packet) else { return Err(Left::Unfit(packet)) };
        if !self.can_lend(&copy) {
            pool.free(copy);
            return Err(Left::Unfit(packet));
        }
        match self.put(copy, pool) {
            Ok(()) => {
                pool.free(packet);
                self.attachment.counters.lanes[self.lane].copied.increment();
                Ok(())
            }
            Err(Left::NoRoom(copy) | Left::Unfit(copy)) => {
                pool.free(copy);
                Err(Left::NoRoom(packet))
            }
        }
    }
}

impl TxQueue for XdpTx {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        if self.attachment.counters.gone.load(Ordering::Relaxed) {
            return 0;
        }
        self.attachment.queues[self.queue].reap(pool);
        let is_full = burst.is_full();
        let mut left = Burst::new();
        let (mut sent, mut bytes, mut full) = (0, 0, false);
        for packet in burst.drain(..) {
            if full {
                left.push(packet);
                continue;
            }
            let len = packet.len() as u64;
            match self.put(packet, pool) {
                Ok(()) => {
                    sent += 1;
                    bytes += len;
                }
                Err(Left::Unfit(packet)) => left.push(packet),
                Err(Left::NoRoom(packet)) => {
                    full = true;
                    left.push(packet);
                }
            }
        }
        burst.extend(left);
        if sent > 0 {
            self.ring.publish();
        }
        let counters = &self.attachment.counters.lanes[self.lane];
        counters.taken.add(sent as u64);
        counters.taken_bytes.add(bytes);
        let lane = &self.attachment.lanes[self.lane];
        let socket = lane.transmit_socket();
        (self.sent_at, self.asked) = (now, false);
        lane.transmit.kick(socket, now, is_full && sent == BURST);
        sent
    }

    fn why_left(&self, _place: usize, packet: &Mbuf) -> DropReason {
        let lane = &self.attachment.lanes[self.lane];
        if packet.len() < SHORTEST {
            DropReason::TransmitRefused
        } else if self.is_too_long(packet) {
            DropReason::TooBig
        } else if self.attachment.counters.gone.load(Ordering::Relaxed) || lane.transmit.is_down() {
            DropReason::LinkDown
        } else {
            DropReason::TransmitFull
        }
    }

    fn unsent(&mut self) -> Unsent {
        let lane = &self.attachment.lanes[self.lane];
        // A poll has passed without a burst that would have been sent by the same call.
        if std::mem::replace(&mut self.asked, true) && lane.transmit.is_put_off() {
            lane.transmit.kick_again(lane.transmit_socket(), self.sent_at);
        }
        let unsent = lane.transmit.unsent();
        let counters = &self.attachment.counters.lanes[self.lane];
        counters.unsent.set(unsent.refused);
        counters.unsent_bytes.set(unsent.refused_bytes);
        counters.send_calls.set(lane.transmit.calls());
        unsent
    }

    fn finish(&mut self, pool: &mut PoolCache) {
        let lane = &self.attachment.lanes[self.lane];
        let end = Instant::now() + LAST_PACKETS;
        while lane.transmit.flush(lane.transmit_socket()) == Flushed::Waiting
            && Instant::now() < end
        {
            self.attachment.queues[self.queue].reap(pool);
            thread::sleep(GLANCE);
        }
        lane.transmit.end();
    }
}

/// Whether the frame has a VLAN tag, which the MTU does not count.
fn is_tagged(packet: &Mbuf) -> bool {
    let kind = packet.data().get(12..ethernet::HEADER);
    kind.is_some_and(|kind| ethernet::is_vlan(u16::from_be_bytes([kind[0], kind[1]])))
}

const _: () = assert!(MOST_PIECES < 64 && BURST <= 32, "a call sends 32 packets at least");
