//! The transmit queues of the simulated NIC.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::Time;
use rheostat_packet::{Burst, Mbuf, PoolCache};

use super::counters::Sent;
use super::pumped::Pump;
use super::replies::{Replies, Reply};
use crate::Responder;
use crate::device::TxQueue;
use crate::sink::Sink;

/// A transmit queue in front of a sink.
pub(super) struct SimTx {
    pub(super) sink: Box<dyn Sink>,
    pub(super) sent: Arc<Sent>,
    /// `None` for a queue that always has room.
    pub(super) ring: Option<TransmitRing>,
    pub(super) answers: Option<Answers>,
}

/// What answers the packets of one transmit queue.
pub(super) struct Answers {
    responder: Box<dyn Responder>,
    replies: Arc<Replies>,
    /// What places replies, where queues do so as they are polled.
    pump: Option<Arc<Pump>>,
    /// The frame of a reply.
    frame: Vec<u8>,
    /// Replies to the packets of a burst.
    burst: VecDeque<Reply>,
}

/// The descriptors of a transmit queue: a sent packet occupies one until its last bit is on the link.
/// A link without a rate frees them at once, so that the ring limits a single burst only.
#[derive(Debug)]
pub(super) struct TransmitRing {
    descriptors: usize,
    bits_per_second: Option<u64>,
    /// When each packet on its way will have left, in order.
    leaving: VecDeque<Time>,
}

impl Answers {
    /// `pump` places the replies, unless a stepper does.
    pub(super) fn new(
        responder: Box<dyn Responder>,
        replies: Arc<Replies>,
        pump: Option<Arc<Pump>>,
    ) -> Answers {
        Answers { responder, replies, pump, frame: Vec::new(), burst: VecDeque::new() }
    }

    /// Answers packets that are sent at `now`.
    fn answer(&mut self, packets: &[Mbuf], now: Time, sent: &Sent) {
        for packet in packets {
            if self.responder.respond(packet, &mut self.frame) {
                self.burst.push_back(self.replies.reply(&self.frame, packet.link()));
            }
        }
        if self.burst.is_empty() {
            return;
        }
        self.replies.append(&mut self.burst, now);
        if let Some(pump) = &self.pump
            && !self.burst.is_empty()
        {
            // Queues that were not polled for long have replies that are no longer under way.
            pump.fetch_replies(now);
            self.replies.append(&mut self.burst, now);
        }
        for refused in self.burst.drain(..) {
            sent.refused_replies.increment();
            sent.refused_reply_bytes.add(refused.wire_len());
        }
    }
}

impl TxQueue for SimTx {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        let room = self.ring.as_mut().map_or(usize::MAX, |ring| ring.room(now));
        let count = burst.len().min(room);
        if count == 0 {
            return 0;
        }
        self.sink.take(&burst[..count]);
        if let Some(answers) = &mut self.answers {
            answers.answer(&burst[..count], now, &self.sent);
        }
        let mut bytes = 0;
        for packet in burst.drain(..count) {
            bytes += packet.len() as u64;
            if let Some(ring) = &mut self.ring {
                ring.occupy(packet.len(), now);
            }
            pool.free(packet);
        }
        self.sent.packets.add(count as u64);
        self.sent.bytes.add(bytes);
        count
    }
}

impl TransmitRing {
    pub(super) fn new(descriptors: u32, bits_per_second: Option<u64>) -> TransmitRing {
        let descriptors = descriptors as usize;
        TransmitRing { descriptors, bits_per_second, leaving: VecDeque::with_capacity(descriptors) }
    }

    /// Free descriptors at `now`.
    fn room(&mut self, now: Time) -> usize {
        while self.leaving.front().is_some_and(|left| *left <= now) {
            self.leaving.pop_front();
        }
        self.descriptors - self.leaving.len()
    }

    fn occupy(&mut self, bytes: usize, now: Time) {
        let nanos = self.bits_per_second.map_or(0, |rate| {
            u64::try_from(bytes as u128 * 8_000_000_000 / u128::from(rate)).unwrap_or(u64::MAX)
        });
        let start = self.leaving.back().copied().unwrap_or(now).max(now);
        self.leaving.push_back(start + Duration::from_nanos(nanos));
    }
}

#[cfg(test)]
mod tests {
    use rheostat_base::QueueId;
    use rheostat_packet::{Mempool, MempoolConfig};

    use super::*;
    use crate::sink::Collector;

    fn pool() -> PoolCache {
        let config = MempoolConfig { buffers: 64, data_room: 2_048, headroom: 0 };
        PoolCache::new(Mempool::new(&config).unwrap())
    }

    #[test]
    fn a_full_ring_leaves_the_rest_with_the_caller_until_packets_have_left() {
        let mut pool = pool();
        let collector = Collector::new();
        // 1000 bytes at 8 Gb/s leave in one microsecond.
        let ring = TransmitRing::new(4, Some(8_000_000_000));
        let sent = Arc::new(Sent::default());
        let (sink, ring) = (collector.sink(QueueId(0)), Some(ring));
        let mut queue = SimTx { sink, sent: sent.clone(), ring, answers: None };
        let mut burst = Burst::new();
        for number in 0..6 {
            burst.push(pool.alloc_from(&[number; 1_000]).unwrap());
        }
        assert_eq!(queue.send(&mut burst, &mut pool, Time::ZERO), 4);
        assert_eq!(queue.send(&mut burst, &mut pool, Time::from_nanos(999)), 0);
        assert_eq!(queue.send(&mut burst, &mut pool, Time::from_nanos(1_000)), 1);
        assert_eq!(queue.send(&mut burst, &mut pool, Time::from_nanos(9_000)), 1);
        let order: Vec<u8> = collector.drain().iter().map(|packet| packet.bytes[0]).collect();
        assert_eq!(order, [0, 1, 2, 3, 4, 5]);
        assert_eq!((sent.packets.get(), sent.bytes.get()), (6, 6_000));
        pool.flush();
        assert_eq!(pool.pool().available(), 64);
    }

    #[test]
    fn a_queue_without_a_limit_takes_the_whole_burst() {
        let mut pool = pool();
        let sink = Box::new(crate::NullSink);
        let mut queue = SimTx { sink, sent: Arc::default(), ring: None, answers: None };
        let mut burst: Burst = (0..32).map(|_| pool.alloc(60).unwrap()).collect();
        assert_eq!(queue.send(&mut burst, &mut pool, Time::ZERO), 32);
        assert!(burst.is_empty());
    }
}
