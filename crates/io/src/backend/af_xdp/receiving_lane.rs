//! What a receive queue does for its lane, whether the rings are its own or shared.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rheostat_base::{DeviceId, Time};
use rheostat_packet::{BURST, Burst, Mbuf, PoolCache};

use super::attachment::{Attachment, LaneSockets};
use super::counters::LaneCounters;
use crate::backend::bpf::{METADATA, PacketHash};
use crate::sys::xdp_socket::XdpSocket;

/// Of so many polls that find nothing, one takes all sent buffers back, however few.
const REAP_ALL: u32 = 61;

/// The lane of a receive queue.
pub(super) struct ReceivingLane {
    /// Polls readable when any of the sockets that it receives from does, where there are several.
    pub(super) any: Option<OwnedFd>,
    pub(super) number: usize,
    pub(super) device: DeviceId,
    /// Polls, of any hardware queue, that found nothing.
    pub(super) idle_polls: u32,
    pub(super) attachment: Arc<Attachment>,
}

impl ReceivingLane {
    pub(super) fn counters(&self) -> &LaneCounters {
        &self.attachment.counters.lanes[self.number]
    }

    fn own(&self) -> &LaneSockets {
        &self.attachment.lanes[self.number]
    }

    /// The sockets from whose rings it receives, by hardware queue.
    pub(super) fn sockets(&self) -> &[XdpSocket] {
        self.attachment.receive_sockets(self.number)
    }

    /// Has the kernel take packets from the driver, where lanes do so, for hardware queues whose rings are empty.
    pub(super) fn poll_driver(&self, is_empty: impl Fn(usize) -> bool) {
        if self.attachment.busy_poll.is_none() {
            return;
        }
        for (queue, socket) in self.sockets().iter().enumerate() {
            if is_empty(queue) {
                // A failure is the interface's, and tells nothing new.
                let _ = socket.wake();
            }
        }
    }

    /// Tells the kernel of buffers in a FILL ring, if it waits for that.
    #[inline]
    pub(super) fn wake_kernel(&self, queue: usize) {
        if self.attachment.queues[queue].needs_wakeup() {
            // A failure is the interface's, and has nothing new.
            let _ = self.sockets()[queue].wake();
        }
    }

    /// Takes sent buffers back: a burst at a time, since a lane that is busy with another device comes by in each of its polls
    /// (which made reaping by ones and twos 3 % of the lane's time), and now and then, or before it sleeps, all.
    pub(super) fn reap(&mut self, queue: usize, idle: bool, pool: &mut PoolCache) {
        if !idle {
            return;
        }
        self.idle_polls = self.idle_polls.wrapping_add(1);
        let frames = &self.attachment.queues[queue];
        if self.idle_polls.is_multiple_of(REAP_ALL) || frames.completions() >= BURST as u32 {
            frames.reap(pool);
        }
    }

    /// Writes down what is known of the packets of `burst` from `first` on, which have stamps from `stamp` on.
    pub(super) fn describe(&self, burst: &mut Burst, first: usize, stamp: u32, now: Time) {
        let received = &mut burst[first..];
        let hashed = self.attachment.reports_hashes();
        let mut bytes = 0;
        for (packet, place) in received.iter_mut().zip(0..) {
            packet.set_timestamp(now);
            packet.set_stamp(stamp.wrapping_add(place));
            packet.set_device(self.device);
            bytes += packet.len() as u64;
            if hashed && let Some(told) = metadata(packet) {
                packet.set_hash(told.hash, told.kind);
            }
        }
        let counters = self.counters();
        counters.received.add(received.len() as u64);
        counters.received_bytes.add(bytes);
    }

    /// Has the kernel send what the lane's transmit queue has put off.
    #[inline]
    pub(super) fn come_by(&self, now: Time) {
        let lane = self.own();
        lane.transmit.come_by(lane.transmit_socket(), now);
    }

    /// Has the kernel send what the lane's transmit queue has put off, because no thread would do so while the lane sleeps.
    pub(super) fn send_before_rest(&self, now: Time) {
        let lane = self.own();
        if lane.transmit.is_put_off() {
            lane.transmit.kick_again(lane.transmit_socket(), now);
        }
    }

    /// Whether packets of the lane wait for the kernel to be told again, which nothing would do while it sleeps.
    pub(super) fn waits_to_send(&self) -> bool {
        let is_gone = self.attachment.counters.gone.load(Ordering::Relaxed);
        self.own().transmit.is_waiting() && !is_gone
    }

    /// Takes all sent buffers back.
    pub(super) fn reap_all(&self, pool: &mut PoolCache) {
        for queue in &self.attachment.queues {
            queue.reap(pool);
        }
    }

    /// What polls readable when packets wait.
    pub(super) fn watched(&self) -> Option<BorrowedFd<'_>> {
        match &self.any {
            Some(any) => Some(any.as_fd()),
            None => self.sockets().first().map(AsFd::as_fd),
        }
    }
}

/// What the program wrote in front of the packet.
#[inline]
fn metadata(packet: &Mbuf) -> Option<PacketHash> {
    packet.front(METADATA)?.first_chunk().and_then(PacketHash::read)
}
