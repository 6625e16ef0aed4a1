//! A device behind a bad network.

use std::sync::Arc;

use rheostat_base::ClockSource;
use rheostat_packet::{Mempool, PoolCache};

use super::receive::ImpairedRx;
use super::transmit::ImpairedTx;
use super::{Counters, Draw, ImpairConfig, ImpairCounts};
use crate::device::{Device, DeviceCounters, QueuePair};
use crate::layer::layered::{LayerBooks, LayeredDevice};

/// Wraps a device: its queues have faults, everything else is as it was. Each direction of each queue has its own sequence of
/// faults. `clock` is that of the run. Returns what counts the faults, too.
pub fn impair(
    mut inner: Box<dyn Device>,
    config: &ImpairConfig,
    pool: &Mempool,
    clock: &Arc<dyn ClockSource>,
) -> (LayeredDevice, ImpairMonitor) {
    let (mut queues, mut faults) = (Vec::new(), Faults::default());
    for (number, QueuePair { rx, tx }) in (0_u64..).zip(inner.queues()) {
        let (taken, given) = (Arc::<Counters>::default(), Arc::<Counters>::default());
        let rx = ImpairedRx::new(rx, Draw::new(config, 2 * number), taken.clone());
        let (draw, cache) = (Draw::new(config, 2 * number + 1), PoolCache::new(pool.clone()));
        let both_ways = config.delay * 2;
        let tx = ImpairedTx::new(tx, draw, given.clone(), both_ways, clock.clone(), cache);
        queues.push(QueuePair { rx: Box::new(rx), tx: Box::new(tx) });
        faults.received.push(taken);
        faults.sent.push(given);
    }
    let device = LayeredDevice::with_books(inner, queues, faults.clone());
    (device, ImpairMonitor(faults))
}

/// The faults of each queue.
#[derive(Clone, Default)]
struct Faults {
    received: Vec<Arc<Counters>>,
    sent: Vec<Arc<Counters>>,
}

/// What can be asked while the queues run elsewhere.
#[derive(Clone)]
pub struct ImpairMonitor(Faults);

impl ImpairMonitor {
    /// The faults of packets that arrived, and of those that were sent.
    pub fn counts(&self) -> [ImpairCounts; 2] {
        let counts = |counters: &[Arc<Counters>]| ImpairCounts {
            lost: sum(counters, |queue| queue.lost.get()),
            duplicated: sum(counters, |queue| queue.duplicated.get()),
            reordered: sum(counters, |queue| queue.reordered.get()),
        };
        [counts(&self.0.received), counts(&self.0.sent)]
    }
}

impl LayerBooks for Faults {
    /// What was lost on the way here has never arrived, and what came twice has arrived twice. What was lost on the way from
    /// here was sent.
    fn counters(&self, inner: DeviceCounters) -> DeviceCounters {
        let Faults { received, sent } = self;
        let arrived = inner.arrived + sum(received, |queue| queue.duplicated.get());
        let arrived_bytes =
            inner.arrived_bytes + sum(received, |queue| queue.duplicated_bytes.get());
        DeviceCounters {
            arrived: arrived.saturating_sub(sum(received, |queue| queue.lost.get())),
            arrived_bytes: arrived_bytes
                .saturating_sub(sum(received, |queue| queue.lost_bytes.get())),
            sent: inner.sent + sum(sent, |queue| queue.lost.get()),
            sent_bytes: inner.sent_bytes + sum(sent, |queue| queue.lost_bytes.get()),
            ..inner
        }
    }
}

fn sum(counters: &[Arc<Counters>], of: fn(&Counters) -> u64) -> u64 {
    counters.iter().map(|queue| of(queue)).sum()
}
