//! How the order of arrival in a receive queue is known.

use std::sync::atomic::{AtomicU32, Ordering};

/// How the order of arrival in a receive queue is known. By default the packets have the stamps of their source, and leave the
/// queue in one row.
#[derive(Clone, Copy, Default)]
pub struct ArrivalOrder<'a> {
    /// What stamps packets.
    pub stamping: Stamping<'a>,
    /// How far the queue is read, where the number of its packets does not show it: several rings, or items that are no packets.
    pub rings: Option<&'a dyn RingProgress>,
}

impl<'a> ArrivalOrder<'a> {
    /// The order of a live device, which numbers packets from `stamps` when lanes receive them.
    pub fn on_receipt(stamps: &'a AtomicU32, rings: &'a dyn RingProgress) -> ArrivalOrder<'a> {
        ArrivalOrder { stamping: Stamping::Receipt(stamps), rings: Some(rings) }
    }
}

/// What stamps the packets of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub enum Stamping<'a> {
    /// The source: packets have the order and the times of a clock that is not the run's, as in a capture.
    #[default]
    Source,
    /// The device, when packets arrive, by the clock of the run.
    Arrival,
    /// The lane that receives them, which takes the number of each from this counter. A lane that knows better when a packet arrived
    /// changes its stamp.
    Receipt(&'a AtomicU32),
}

impl Stamping<'_> {
    /// [`Stamping::Arrival`] where `times_arrival`, [`Stamping::Source`] elsewhere.
    pub fn by_device(times_arrival: bool) -> Stamping<'static> {
        if times_arrival { Stamping::Arrival } else { Stamping::Source }
    }

    /// Whether time stamps are of the arrival, by the clock of the run.
    pub fn times_arrival(self) -> bool {
        matches!(self, Stamping::Arrival)
    }

    /// The stamp of a packet received now; `None` where packets are stamped as they arrive.
    pub fn draw(self) -> Option<u32> {
        match self {
            // Relaxed: the order of what one lane receives is all there is to it.
            Stamping::Receipt(stamps) => Some(stamps.fetch_add(1, Ordering::Relaxed)),
            Stamping::Source | Stamping::Arrival => None,
        }
    }
}

/// How far the rings of a receive queue are read.
pub trait RingProgress {
    /// The end of what waits now, one number per ring.
    fn ends(&self) -> Vec<u64>;

    /// Whether each ring has been read as far as [`RingProgress::ends`] returned before.
    fn has_read(&self, ends: &[u64]) -> bool;
}
