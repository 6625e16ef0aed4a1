//! A device all of whose receive queues have faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rheostat_base::DeviceId;
use rheostat_steer::IndirectionTable;

use super::{FaultConfig, FaultCounters, FaultyRx};
use crate::device::{Device, DeviceCounters, DeviceMonitor, QueuePair};
use crate::sharing::SharingCounters;

/// Wraps a device: its receive queues are [`FaultyRx`], everything else is as it was.
pub struct FaultyDevice {
    inner: Box<dyn Device>,
    queues: Vec<QueuePair>,
    counters: Vec<Arc<FaultCounters>>,
    monitor: Arc<FaultyMonitor>,
}

struct FaultyMonitor {
    inner: Arc<dyn DeviceMonitor>,
    /// Packets each queue holds back.
    held: Vec<Arc<AtomicUsize>>,
}

impl FaultyDevice {
    /// Takes the queues out of `inner` and wraps them. Each queue has its own sequence of faults,
    /// and its own limit.
    pub fn new(mut inner: Box<dyn Device>, config: &FaultConfig) -> FaultyDevice {
        let (mut queues, mut counters, mut held) = (Vec::new(), Vec::new(), Vec::new());
        for (number, QueuePair { rx, tx }) in (0_u64..).zip(inner.queues()) {
            let seed = config.seed.wrapping_add(number);
            let rx = FaultyRx::new(rx, FaultConfig { seed, ..config.clone() });
            counters.push(rx.counters());
            held.push(rx.held());
            queues.push(QueuePair { rx: Box::new(rx), tx });
        }
        let monitor = Arc::new(FaultyMonitor { inner: inner.monitor(), held });
        FaultyDevice { inner, queues, counters, monitor }
    }

    /// The faults of each queue.
    pub fn faults(&self) -> &[Arc<FaultCounters>] {
        &self.counters
    }
}

impl Device for FaultyDevice {
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

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.monitor.clone()
    }
}

impl DeviceMonitor for FaultyMonitor {
    /// What the device itself counted: the faults are not in it.
    fn counters(&self) -> DeviceCounters {
        self.inner.counters()
    }

    fn is_exhausted(&self) -> bool {
        // In this order: what has left the device is either held or delivered.
        // Acquire: pairs with the Release at the end of a poll.
        self.inner.is_exhausted() && self.held.iter().all(|held| held.load(Ordering::Acquire) == 0)
    }

    fn stop(&self) {
        self.inner.stop();
    }

    fn progress(&self) -> Option<f64> {
        self.inner.progress()
    }

    fn sharing(&self) -> Vec<SharingCounters> {
        self.inner.sharing()
    }

    fn warnings(&self) -> Vec<String> {
        self.inner.warnings()
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes()
    }
}
