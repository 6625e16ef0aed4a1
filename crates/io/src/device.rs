//! What every kind of device looks like to a lane.

mod arrival_order;
mod monitor;
mod rx_layer;
mod shared_queue;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{DeviceId, DropReason, Time};
use rheostat_packet::{Burst, Mbuf, PoolCache};
use rheostat_steer::IndirectionTable;

use crate::replay_barrier::ReplayBarrier;
pub use arrival_order::{ArrivalOrder, RingProgress, Stamping};
pub use monitor::{DeviceMonitor, InterfaceMonitor, SourceMonitor};
pub use rx_layer::RxLayer;
pub use shared_queue::{ClaimBound, SharedQueue};

/// A network interface, or what stands for one.
pub trait Device: Send {
    /// The device's name in the configuration.
    fn name(&self) -> &str;

    /// The device's number: its place among the devices of a run. Its packets have it.
    fn id(&self) -> DeviceId;

    /// Takes the queues out of the device, in the order of their numbers; empty the second time.
    fn queues(&mut self) -> Vec<QueuePair>;

    /// The table that places buckets on receive queues, where the device has one.
    fn table(&self) -> Option<Arc<dyn IndirectionTable>> {
        None
    }

    /// Whether packets may still reach a lane by old entries of the table when the fence of a rewriting
    /// has passed.
    fn may_place_late(&self) -> bool {
        self.table().is_some_and(|table| !table.is_strict())
    }

    /// The replay of the device, where its packets can be held back.
    fn as_replay(&mut self) -> Option<&mut dyn Replay> {
        None
    }

    /// Whether the device keeps its interface from being opened once more until it and its queues are closed, also when the
    /// interface was lost and has returned.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// Keeps a source that starts with the first poll from starting before [`SourceMonitor::begin`]: called before the queues are
    /// polled. By default nothing: what arrives at an interface cannot be kept from it.
    fn await_begin(&mut self) {}

    /// A view of the device that stays valid while its queues run on other threads.
    fn monitor(&self) -> Arc<dyn DeviceMonitor>;
}

/// A device whose packets can be held back: a capture, or another source that waits for the lanes.
pub trait Replay {
    /// Keeps packets in order that are misdirected, or that come from several captures, by `barrier`.
    fn replay_by(&mut self, barrier: Arc<ReplayBarrier>);
}

/// The two ends of a device that one lane holds.
pub struct QueuePair {
    /// Where the lane receives.
    pub rx: Box<dyn RxQueue>,
    /// Where the lane sends.
    pub tx: Box<dyn TxQueue>,
}

/// A receive queue, or one lane's part in it where several lanes share one ([`RxQueue::as_shared`]). One lane polls it. A queue that wraps
/// another is an [`RxLayer`].
pub trait RxQueue: Send {
    /// Appends packets that have arrived by `now` to `burst` until it is full or the queue empty, in
    /// order of arrival, and returns how many. Buffers come from `pool` where the device needs them.
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize;

    /// Packets waiting in the queue.
    fn backlog(&self) -> usize;

    /// A descriptor that polls readable when packets wait, where there is one to block on.
    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// What a lane that has found nothing may do, after a last look at the queue. The lane has said before that it
    /// is about to sleep, so a packet that is announced from then on wakes it.
    ///
    /// A device that polling drives is driven once more: the last lane to go to sleep brings what the others have
    /// made possible. By default, packets that wait keep the lane awake, and a queue without a descriptor lets it
    /// sleep for a moment only.
    fn rest(&mut self, _pool: &mut PoolCache, _now: Time) -> Rest {
        Rest::after_look(self.backlog(), self.wait_fd().is_some())
    }

    /// How the order of arrival is known.
    fn order(&self) -> ArrivalOrder<'_> {
        ArrivalOrder::default()
    }

    /// The sharing of the queue, where several lanes receive from it, or may.
    fn as_shared(&mut self) -> Option<&mut dyn SharedQueue> {
        None
    }
}

/// What a lane without work may do, from the least sleep to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rest {
    /// Poll on: there is work.
    Awake,
    /// Sleep for a moment: packets are not announced.
    Nap,
    /// Sleep until then at most: a packet is due, which is not announced.
    Until(Time),
    /// Sleep until the descriptor of the queue is readable, or until a packet is announced.
    Sleep,
}

impl Rest {
    /// What a lane may do with so many packets in its queue, where packets that arrive are announced or not.
    pub fn after_look(backlog: usize, is_announced: bool) -> Rest {
        match is_announced {
            _ if backlog > 0 => Rest::Awake,
            true => Rest::Sleep,
            false => Rest::Nap,
        }
    }

    /// When the sleep ends by itself.
    pub fn end(self) -> Option<Time> {
        match self {
            Rest::Until(time) => Some(time),
            Rest::Awake | Rest::Nap | Rest::Sleep => None,
        }
    }
}

/// A transmit queue. One lane sends through it.
pub trait TxQueue: Send {
    /// Takes packets from the front of `burst` while it has room and returns how many it took. What
    /// stays in `burst` was not sent and is the caller's to retry or to drop and count. Buffers of
    /// sent packets are returned through `pool` as soon as the device is done with them.
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize;

    /// Why a packet stayed in the burst, at `place` of what the last [`TxQueue::send`] left there.
    fn why_left(&self, _place: usize, _packet: &Mbuf) -> DropReason {
        DropReason::TransmitFull
    }

    /// What was taken by [`TxQueue::send`] and has not been sent. Always nothing where taking is sending.
    ///
    /// A lane asks after each call of `send`, and at the end of each poll as long as something waits. A queue that has put off
    /// sending, since a full burst promises another, sends what waits when it is asked without having been given any.
    fn unsent(&mut self) -> Unsent {
        Unsent::default()
    }

    /// Ends sending: what waits gets out if it can within 100 ms, and is refused else. Nothing is sent
    /// through the queue afterwards.
    fn finish(&mut self, _pool: &mut PoolCache) {}
}

/// Packets that a transmit queue took and has not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsent {
    /// Packets that now wait for the operating system to send them.
    pub waiting: u64,
    /// Packets that it refused to send after they were taken, since the queue was opened. Their buffers come
    /// back as those of sent packets do.
    pub refused: u64,
    /// Packets that turned out to be longer than the interface takes, and are not among those refused.
    pub too_big: u64,
    /// Packets that came to an interface without a link, and are not among those refused.
    pub link_down: u64,
    /// Bytes of the packets that were not sent, for whatever reason.
    pub refused_bytes: u64,
}

impl Unsent {
    /// Packets that were not sent and do not wait.
    #[inline]
    pub fn lost(&self) -> u64 {
        self.refused + self.too_big + self.link_down
    }
}

impl std::ops::Add for Unsent {
    type Output = Unsent;

    fn add(self, other: Unsent) -> Unsent {
        Unsent {
            waiting: self.waiting + other.waiting,
            refused: self.refused + other.refused,
            too_big: self.too_big + other.too_big,
            link_down: self.link_down + other.link_down,
            refused_bytes: self.refused_bytes + other.refused_bytes,
        }
    }
}

/// What it took to make packets arrive, where that is no part of any lane's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceWork {
    /// Packets drawn so far, those that are due later included.
    pub drawn: u64,
    /// Packets that lanes had to draw themselves, because they were due before they were drawn ahead. They arrived when
    /// they were due nevertheless; but lanes did what is not their work. Where all was drawn before the run: 1 if that
    /// was too little.
    pub late: u64,
    /// Processor time of the thread that draws.
    pub cpu: Duration,
    /// Replies to packets that the device sent, those that are due later included. Those are not for which there was no
    /// room ([`crate::Peer::most`]): they count as drops alone.
    pub replies: u64,
    /// Of these, how many arrived later than they were due, because the lane that sent the packet was interrupted and
    /// other lanes were further.
    pub late_replies: u64,
}

/// What a device has counted. Every packet that arrived was dropped, or received by a lane, or waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Packets that arrived, including those dropped at once.
    pub arrived: u64,
    /// Bytes of those packets on the wire.
    pub arrived_bytes: u64,
    /// Drops because a receive queue was full, by queue.
    pub queue_full: Vec<u64>,
    /// Drops because no buffer was free.
    pub no_buffer: u64,
    /// Drops because lanes had not given the kernel enough buffers, whether the pool has any or not.
    pub fill_empty: u64,
    /// Frames longer than a chain of buffers may be.
    pub oversize: u64,
    /// Records of a capture that could not be read.
    pub malformed: u64,
    /// Packets sent.
    pub sent: u64,
    /// Bytes of those packets.
    pub sent_bytes: u64,
    /// Of those packets, how many had to be copied to be sent.
    pub copied: u64,
    /// System calls that were to send packets; 0 where the device makes none, or one for each packet.
    pub send_calls: u64,
}

impl DeviceCounters {
    /// Packets that were in order and dropped for want of room.
    pub fn without_room(&self) -> u64 {
        self.queue_full.iter().sum::<u64>() + self.no_buffer + self.fill_empty
    }

    /// Packets that arrived and were dropped, for whatever reason.
    pub fn lost(&self) -> u64 {
        self.without_room() + self.oversize + self.malformed
    }
}
