//! Sees packets leave, and knows them by the numbers that they got where they arrived. It asks no lane.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rheostat_io::Sink;
use rheostat_packet::{FlowKey, Mbuf, usual};

use crate::witness::Witness;

/// What has left, shared by all queues of one device.
#[derive(Clone)]
pub(super) struct TraceNumbers {
    witness: Witness,
    order: Arc<Mutex<Order>>,
}

/// The order of packets within flows. A flow is told by its whole key: two whose hashes are alike may be with two lanes.
#[derive(Default)]
struct Order {
    /// By flow and direction, the number of the youngest packet that has left.
    youngest: HashMap<FlowKey, u32>,
    reordered: u64,
}

struct TraceEnd {
    numbers: TraceNumbers,
    witness: Box<dyn Sink>,
}

impl TraceNumbers {
    /// Distinguishes the first `packets` packets.
    pub(super) fn new(packets: u64) -> TraceNumbers {
        TraceNumbers { witness: Witness::new(packets), order: Arc::default() }
    }

    /// The end of one transmit queue.
    pub(super) fn sink(&self) -> Box<dyn Sink> {
        Box::new(TraceEnd { numbers: self.clone(), witness: self.witness.sink(None) })
    }

    /// Packets that have left, each counted once.
    pub(super) fn seen(&self) -> u64 {
        self.witness.seen()
    }

    /// Times that a packet left which had left before.
    pub(super) fn doubled(&self) -> u64 {
        self.witness.doubled()
    }

    /// Packets that left after a younger packet of the same direction of their flow (RFC 4737, section 3.3). Fragments and ICMP
    /// errors do not count.
    pub(super) fn reordered(&self) -> u64 {
        self.order.lock().unwrap_or_else(PoisonError::into_inner).reordered
    }
}

impl Order {
    fn note(&mut self, key: FlowKey, number: u32) {
        let youngest = self.youngest.entry(key).or_insert(number);
        self.reordered += u64::from(*youngest > number);
        *youngest = number.max(*youngest);
    }
}

impl Sink for TraceEnd {
    fn take(&mut self, packets: &[Mbuf]) {
        self.witness.take(packets);
        let mut order = self.numbers.order.lock().unwrap_or_else(PoisonError::into_inner);
        for packet in packets {
            if let Some((_, key)) = usual::parse(packet) {
                order.note(key, packet.stamp());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_packet_behind_a_younger_one_of_its_flow_and_direction_is_reordered() {
        let flow =
            |port| FlowKey::v4(([10, 0, 0, 1].into(), port), ([1, 1, 1, 1].into(), 53), 17, 0);
        let mut order = Order::default();
        for (key, number) in [(flow(1), 3), (flow(1).reversed(), 2), (flow(2), 1), (flow(1), 5)] {
            order.note(key, number);
        }
        assert_eq!(order.reordered, 0);
        order.note(flow(1), 4);
        order.note(flow(1), 4);
        assert_eq!(order.reordered, 2);
        order.note(flow(1), 5);
        assert_eq!(order.reordered, 2, "one that leaves twice is doubled, not reordered");
    }
}
