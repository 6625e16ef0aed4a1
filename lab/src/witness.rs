//! Sees every packet leave, and distinguishes those that leave twice from those that leave once. It does not ask
//! the lanes.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rheostat_io::Sink;
use rheostat_packet::Mbuf;

/// What has left, shared by all queues of one device.
#[derive(Clone, Debug)]
pub(crate) struct Witness(Arc<WitnessCounts>);

#[derive(Debug)]
struct WitnessCounts {
    /// A bit per packet, by the order of arrival.
    left: Vec<AtomicU64>,
    doubled: AtomicU64,
}

/// The end of a queue. Packets whose number the second divides are taken away unseen.
struct FlowEnd(Witness, Option<NonZeroU32>);

impl Witness {
    /// Distinguishes the first `packets` packets.
    pub(crate) fn new(packets: u64) -> Witness {
        let words = packets.div_ceil(64);
        let left = (0..words).map(|_| AtomicU64::new(0)).collect();
        Witness(Arc::new(WitnessCounts { left, doubled: AtomicU64::new(0) }))
    }

    /// The end of one transmit queue. With `sabotage`, packets whose number is divisible by it are not noted.
    pub(crate) fn sink(&self, sabotage: Option<NonZeroU32>) -> Box<dyn Sink> {
        Box::new(FlowEnd(self.clone(), sabotage))
    }

    /// Packets that have left, each counted once.
    pub(crate) fn seen(&self) -> u64 {
        let bits = |word: &AtomicU64| u64::from(word.load(Ordering::Relaxed).count_ones());
        self.0.left.iter().map(bits).sum()
    }

    /// Times that a packet left which had left before.
    pub(crate) fn doubled(&self) -> u64 {
        self.0.doubled.load(Ordering::Relaxed)
    }

    /// Notes that the packet which was the `stamp`th to arrive has left.
    pub(crate) fn note(&self, stamp: u32) {
        let bit = 1 << (stamp % 64);
        // Relaxed: read once all lanes have been joined.
        let before = self.0.left[stamp as usize / 64].fetch_or(bit, Ordering::Relaxed);
        if before & bit != 0 {
            self.0.doubled.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Sink for FlowEnd {
    fn take(&mut self, packets: &[Mbuf]) {
        let FlowEnd(witness, sabotage) = self;
        let stamps = packets.iter().map(|packet| packet.stamp());
        let is_kept = |stamp: &u32| sabotage.is_none_or(|every| *stamp % every != 0);
        stamps.filter(is_kept).for_each(|stamp| witness.note(stamp));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_leaves_twice_is_seen_once_and_doubled_once() {
        let witness = Witness::new(128);
        [3, 64, 127, 3].into_iter().for_each(|stamp| witness.note(stamp));
        assert_eq!((witness.seen(), witness.doubled()), (3, 1));
    }
}
