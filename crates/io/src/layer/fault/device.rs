//! A device all of whose receive queues have faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{FaultConfig, FaultCounters, FaultyRx};
use crate::device::{Device, QueuePair};
use crate::layer::layered::{LayerBooks, LayeredDevice};

/// Wraps a device: its receive queues are [`FaultyRx`], everything else is as it was, so its counters know nothing of the
/// faults. Each queue has its own sequence of faults, and its own limit. Returns the faults of each queue, too.
pub fn with_faults(
    mut inner: Box<dyn Device>,
    config: &FaultConfig,
) -> (LayeredDevice, Vec<Arc<FaultCounters>>) {
    let (mut queues, mut counters, mut held) = (Vec::new(), Vec::new(), Vec::new());
    for (number, QueuePair { rx, tx }) in (0_u64..).zip(inner.queues()) {
        let seed = config.seed.wrapping_add(number);
        let rx = FaultyRx::new(rx, FaultConfig { seed, ..config.clone() });
        counters.push(rx.counters());
        held.push(rx.held());
        queues.push(QueuePair { rx: Box::new(rx), tx });
    }
    (LayeredDevice::with_books(inner, queues, Held(held)), counters)
}

/// Packets that each queue holds back.
struct Held(Vec<Arc<AtomicUsize>>);

impl LayerBooks for Held {
    fn holds_packets(&self) -> bool {
        // Acquire: pairs with the Release at the end of a poll.
        self.0.iter().any(|held| held.load(Ordering::Acquire) > 0)
    }
}
