//! What leaves a lane.

use rheostat_base::{DeviceId, DropReason, Time};
use rheostat_io::TxQueue;
use rheostat_packet::{Burst, Mbuf, PoolCache};

use crate::account::LaneCounters;

/// The lane's transmit queues, each with the packets collected for it during a poll.
pub struct Egress {
    ports: Vec<Port>,
    /// Packets that come back as if from outside.
    returning: Vec<Mbuf>,
    now: Time,
}

struct Port {
    queue: Box<dyn TxQueue>,
    burst: Burst,
}

impl Egress {
    pub(super) fn new(queues: Vec<Box<dyn TxQueue>>) -> Egress {
        let ports = queues.into_iter().map(|queue| Port { queue, burst: Burst::new() }).collect();
        Egress { ports, returning: Vec::new(), now: Time::ZERO }
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
            port.flush(pool, counters, self.now);
        }
    }

    /// Lets a packet come back as one that has arrived on the device its metadata name, addressed as it
    /// is now. It stays in the lane's account until it leaves for good.
    #[cold]
    pub fn turn_round(&mut self, mut packet: Mbuf) {
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
                port.flush(pool, counters, self.now);
            }
        }
    }
}

impl Port {
    fn flush(&mut self, pool: &mut PoolCache, counters: &LaneCounters, now: Time) {
        let offered: u64 = self.burst.iter().map(|packet| packet.len() as u64).sum();
        let sent = self.queue.send(&mut self.burst, pool, now);
        let refused: u64 = self.burst.iter().map(|packet| packet.len() as u64).sum();
        counters.sent.add(sent as u64);
        counters.sent_bytes.add(offered - refused);
        counters.dropped.add(DropReason::TransmitFull, self.burst.len() as u64);
        for packet in self.burst.drain(..) {
            pool.free(packet);
        }
    }
}

impl std::fmt::Debug for Egress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Egress").field("ports", &self.ports.len()).finish()
    }
}
