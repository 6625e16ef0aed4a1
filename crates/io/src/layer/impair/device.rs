//! A device behind a bad network.

use std::sync::Arc;

use rheostat_base::{ClockSource, DeviceId};
use rheostat_packet::{Mempool, PoolCache};
use rheostat_steer::IndirectionTable;

use super::receive::ImpairedRx;
use super::transmit::ImpairedTx;
use super::{Counters, Draw, ImpairConfig, ImpairCounts};
use crate::device::{Device, DeviceCounters, DeviceMonitor, QueuePair, SourceWork};
use crate::sharing::SharingCounters;

/// Wraps a device: its queues have faults, everything else is as it was.
pub struct ImpairedDevice {
    inner: Box<dyn Device>,
    queues: Vec<QueuePair>,
    monitor: Arc<ImpairedMonitor>,
}

struct ImpairedMonitor {
    inner: Arc<dyn DeviceMonitor>,
    /// Of each queue.
    received: Vec<Arc<Counters>>,
    sent: Vec<Arc<Counters>>,
}

/// What can be asked while the queues run elsewhere.
#[derive(Clone)]
pub struct ImpairMonitor(Arc<ImpairedMonitor>);

impl ImpairedDevice {
    /// Takes the queues out of `inner` and wraps them. Each direction of each queue has its own sequence of faults. `clock` is that
    /// of the run.
    pub fn new(
        mut inner: Box<dyn Device>,
        config: &ImpairConfig,
        pool: &Mempool,
        clock: &Arc<dyn ClockSource>,
    ) -> ImpairedDevice {
        let (mut queues, mut received, mut sent) = (Vec::new(), Vec::new(), Vec::new());
        for (number, QueuePair { rx, tx }) in (0_u64..).zip(inner.queues()) {
            let (taken, given) = (Arc::<Counters>::default(), Arc::<Counters>::default());
            let rx = ImpairedRx::new(rx, Draw::new(config, 2 * number), taken.clone());
            let (draw, cache) = (Draw::new(config, 2 * number + 1), PoolCache::new(pool.clone()));
            let both_ways = config.delay * 2;
            let tx = ImpairedTx::new(tx, draw, given.clone(), both_ways, clock.clone(), cache);
            queues.push(QueuePair { rx: Box::new(rx), tx: Box::new(tx) });
            received.push(taken);
            sent.push(given);
        }
        let monitor = Arc::new(ImpairedMonitor { inner: inner.monitor(), received, sent });
        ImpairedDevice { inner, queues, monitor }
    }

    /// Counts the faults.
    pub fn faults(&self) -> ImpairMonitor {
        ImpairMonitor(self.monitor.clone())
    }
}

impl ImpairMonitor {
    /// The faults of packets that arrived, and of those that were sent.
    pub fn counts(&self) -> [ImpairCounts; 2] {
        let sum = |counters: &[Arc<Counters>]| ImpairCounts {
            lost: counters.iter().map(|queue| queue.lost.get()).sum(),
            duplicated: counters.iter().map(|queue| queue.duplicated.get()).sum(),
            reordered: counters.iter().map(|queue| queue.reordered.get()).sum(),
        };
        [sum(&self.0.received), sum(&self.0.sent)]
    }
}

impl Device for ImpairedDevice {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn id(&self) -> DeviceId {
        self.inner.id()
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        std::mem::take(&mut self.queues)
    }

    fn table(&self) -> Option<Arc<dyn IndirectionTable>> {
        self.inner.table()
    }

    fn may_place_late(&self) -> bool {
        self.inner.may_place_late()
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.monitor.clone()
    }
}

impl DeviceMonitor for ImpairedMonitor {
    /// What was lost on the way here has never arrived, and what came twice has arrived twice. What was lost on the way from
    /// here was sent.
    fn counters(&self) -> DeviceCounters {
        let sum = |counters: &[Arc<Counters>], of: fn(&Counters) -> u64| -> u64 {
            counters.iter().map(|queue| of(queue)).sum()
        };
        let counters = self.inner.counters();
        let arrived = counters.arrived + sum(&self.received, |queue| queue.duplicated.get());
        let arrived_bytes =
            counters.arrived_bytes + sum(&self.received, |queue| queue.duplicated_bytes.get());
        let sent = counters.sent + sum(&self.sent, |queue| queue.lost.get());
        let sent_bytes = counters.sent_bytes + sum(&self.sent, |queue| queue.lost_bytes.get());
        DeviceCounters {
            arrived: arrived.saturating_sub(sum(&self.received, |queue| queue.lost.get())),
            arrived_bytes: arrived_bytes
                .saturating_sub(sum(&self.received, |queue| queue.lost_bytes.get())),
            sent,
            sent_bytes,
            ..counters
        }
    }

    fn is_exhausted(&self) -> bool {
        self.inner.is_exhausted()
    }

    fn stop(&self) {
        self.inner.stop();
    }

    fn let_go(&self) {
        self.inner.let_go();
    }

    fn progress(&self) -> Option<f64> {
        self.inner.progress()
    }

    fn source_work(&self) -> Option<SourceWork> {
        self.inner.source_work()
    }

    fn sharing(&self) -> Vec<SharingCounters> {
        self.inner.sharing()
    }

    fn warnings(&self) -> Vec<String> {
        self.inner.warnings()
    }

    fn set_mtu(&self, mtu: u32) {
        self.inner.set_mtu(mtu);
    }

    fn longest_packet(&self) -> Option<u32> {
        self.inner.longest_packet()
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes()
    }
}
