//! Where the packets that a device sends end up when there is no wire behind it.

use std::sync::{Arc, Mutex};

use rheostat_base::{QueueId, Time};
use rheostat_packet::Mbuf;

use crate::lock::lock;

/// The far end of one transmit queue. Called once per burst, so that a sink shared by several queues
/// takes its lock once per burst.
pub trait Sink: Send {
    /// Looks at packets that leave, in the order they were sent. The buffers stay the queue's.
    fn take(&mut self, packets: &[Mbuf]);
}

/// Takes everything and keeps nothing; the transmit queue has counted it.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl Sink for NullSink {
    fn take(&mut self, _packets: &[Mbuf]) {}
}

/// A packet as a [`Collector`] saw it leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// The queue it left through.
    pub queue: QueueId,
    /// Its place in the order of arrival.
    pub stamp: u32,
    /// When it arrived.
    pub time: Time,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Keeps a copy of all packets of all queues, in the order they left; for tests.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    packets: Arc<Mutex<Vec<Collected>>>,
}

impl Collector {
    /// A collector without packets.
    pub fn new() -> Collector {
        Collector::default()
    }

    /// The sink of one queue.
    pub fn sink(&self, queue: QueueId) -> Box<dyn Sink> {
        Box::new(CollectorSink { queue, packets: self.packets.clone() })
    }

    /// Takes what was collected so far.
    pub fn drain(&self) -> Vec<Collected> {
        std::mem::take(&mut *lock(&self.packets))
    }
}

struct CollectorSink {
    queue: QueueId,
    packets: Arc<Mutex<Vec<Collected>>>,
}

impl Sink for CollectorSink {
    fn take(&mut self, packets: &[Mbuf]) {
        let mut collected = lock(&self.packets);
        collected.extend(packets.iter().map(|packet| Collected {
            queue: self.queue,
            stamp: packet.stamp(),
            time: packet.timestamp(),
            bytes: packet.to_vec(),
        }));
    }
}
