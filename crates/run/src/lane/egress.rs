//! What leaves a lane: packets that are sent, packets that are dropped, packets that served their purpose.

use rheostat_base::{DeviceId, DropReason, Time};
use rheostat_io::TxQueue;
use rheostat_io::layer::capture::LaneTap;
use rheostat_io::layer::trace::Step;
use rheostat_packet::{Burst, Mbuf, PoolCache};

use crate::account::LaneCounters;

/// The lane's transmit queues, each with the packets collected for it during a poll.
pub struct Egress {
    ports: Vec<Port>,
    /// Packets that come back as if from outside.
    returning: Vec<Mbuf>,
    now: Time,
    /// Shows what passes to whoever looks.
    tap: LaneTap,
}

struct Port {
    device: DeviceId,
    queue: Box<dyn TxQueue>,
    burst: Burst,
}

impl Egress {
    pub(super) fn new(queues: Vec<Box<dyn TxQueue>>) -> Egress {
        let port = |(device, queue)| Port { device: DeviceId(device), queue, burst: Burst::new() };
        let ports = (0..).zip(queues).map(port).collect();
        Egress { ports, returning: Vec::new(), now: Time::ZERO, tap: LaneTap::default() }
    }

    /// Sends a packet on a device: at the end of the poll, or at once when a full burst has gathered.
    ///
    /// # Panics
    /// When the run has no such device.
    #[inline(always)]
    pub fn send(
        &mut self,
        device: DeviceId,
        packet: Mbuf,
        pool: &mut PoolCache,
        counters: &LaneCounters,
    ) {
        let port = &mut self.ports[device.index()];
        port.burst.push(packet);
        if port.burst.is_full() {
            port.flush(pool, counters, self.now, &mut self.tap);
        }
    }

    /// Ends a packet and counts why. Every packet that a lane drops comes by here.
    #[inline]
    pub fn discard(
        &mut self,
        packet: Mbuf,
        reason: DropReason,
        pool: &mut PoolCache,
        counters: &LaneCounters,
    ) {
        counters.dropped.add(reason, 1);
        self.tap.dropping(&packet, reason);
        pool.free(packet);
    }

    /// Ends a packet that has served its purpose.
    #[inline]
    pub fn consume(&mut self, packet: Mbuf, pool: &mut PoolCache, counters: &LaneCounters) {
        counters.consumed.increment();
        self.tap.consuming(&packet);
        pool.free(packet);
    }

    /// Shows what happens to packets to whoever looks.
    #[inline]
    pub fn tap(&mut self) -> &mut LaneTap {
        &mut self.tap
    }

    pub(super) fn tap_by(&mut self, tap: LaneTap) {
        self.tap = tap;
    }

    /// Lets a packet come back as one that has arrived on the device its metadata name, addressed as it
    /// is now. It stays in the lane's account until it leaves for good.
    #[cold]
    pub fn turn_round(&mut self, mut packet: Mbuf) {
        self.tap.note(&packet, Step::TurnedRound);
        packet.meta.set_returning();
        self.returning.push(packet);
    }

    pub(super) fn has_returning(&self) -> bool {
        !self.returning.is_empty()
    }

    pub(super) fn take_returning(&mut self) -> Vec<Mbuf> {
        std::mem::take(&mut self.returning)
    }

    pub(super) fn start_poll(&mut self, now: Time) {
        self.now = now;
    }

    /// Sends everything collected, so that nothing lingers until the next poll.
    pub(super) fn flush(&mut self, pool: &mut PoolCache, counters: &LaneCounters) {
        for port in &mut self.ports {
            if !port.burst.is_empty() {
                port.flush(pool, counters, self.now, &mut self.tap);
            }
        }
    }
}

impl Port {
    fn flush(
        &mut self,
        pool: &mut PoolCache,
        counters: &LaneCounters,
        now: Time,
        tap: &mut LaneTap,
    ) {
        if tap.is_armed() {
            tap.offer(self.device, &self.burst);
        }
        let offered: u64 = self.burst.iter().map(|packet| packet.len() as u64).sum();
        let sent = self.queue.send(&mut self.burst, pool, now);
        if tap.is_armed() {
            tap.took(self.device, sent);
        }
        let refused: u64 = self.burst.iter().map(|packet| packet.len() as u64).sum();
        counters.sent.add(sent as u64);
        counters.sent_bytes.add(offered - refused);
        counters.dropped.add(DropReason::TransmitFull, self.burst.len() as u64);
        for packet in self.burst.drain(..) {
            if tap.is_armed() {
                tap.dropped(self.device, &packet, DropReason::TransmitFull);
            }
            pool.free(packet);
        }
    }
}

impl std::fmt::Debug for Egress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Egress").field("ports", &self.ports.len()).finish()
    }
}
