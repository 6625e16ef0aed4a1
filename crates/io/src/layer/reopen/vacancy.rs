//! What stands behind the queues of a device that had to be closed because its interface is gone: nothing arrives, and nothing
//! is sent.
use std::sync::Arc;

use rheostat_base::{DeviceId, DropReason, Time};
use rheostat_packet::{Burst, Mbuf, PoolCache};
use rheostat_steer::IndirectionTable;

use crate::device::{
    ArrivalOrder, Device, DeviceCounters, DeviceMonitor, QueuePair, RingProgress, RxQueue, TxQueue,
};

/// A device without an interface. The table of the device before keeps the placement of the buckets for the next one.
pub(super) struct Vacancy {
    name: String,
    id: DeviceId,
    queues: Vec<QueuePair>,
    table: Option<Arc<dyn IndirectionTable>>,
    monitor: Arc<VacantMonitor>,
}

struct VacantRx;

struct VacantTx;

struct VacantMonitor {
    /// The monitor of the device before, which knows why it is gone.
    before: Arc<dyn DeviceMonitor>,
}

impl Vacancy {
    /// A vacancy with `queues` queues in the place of `device`.
    pub(super) fn after(device: &dyn Device, queues: usize) -> Vacancy {
        let pair = || QueuePair { rx: Box::new(VacantRx), tx: Box::new(VacantTx) };
        Vacancy {
            name: device.name().to_owned(),
            id: device.id(),
            queues: std::iter::repeat_with(pair).take(queues).collect(),
            table: device.table(),
            monitor: Arc::new(VacantMonitor { before: device.monitor() }),
        }
    }
}

impl Device for Vacancy {
    fn name(&self) -> &str {
        &self.name
    }

    fn id(&self) -> DeviceId {
        self.id
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        std::mem::take(&mut self.queues)
    }

    fn table(&self) -> Option<Arc<dyn IndirectionTable>> {
        self.table.clone()
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.monitor.clone()
    }
}

impl RxQueue for VacantRx {
    fn recv(&mut self, _burst: &mut Burst, _pool: &mut PoolCache, _now: Time) -> usize {
        0
    }

    fn backlog(&self) -> usize {
        0
    }

    fn order(&self) -> ArrivalOrder<'_> {
        ArrivalOrder { rings: Some(self), ..ArrivalOrder::default() }
    }
}

/// There are no rings.
impl RingProgress for VacantRx {
    fn ends(&self) -> Vec<u64> {
        Vec::new()
    }

    fn has_read(&self, _ends: &[u64]) -> bool {
        true
    }
}

impl TxQueue for VacantTx {
    fn send(&mut self, _burst: &mut Burst, _pool: &mut PoolCache, _now: Time) -> usize {
        0
    }

    fn why_left(&self, _place: usize, _packet: &Mbuf) -> DropReason {
        DropReason::LinkDown
    }
}

impl DeviceMonitor for VacantMonitor {
    fn counters(&self) -> DeviceCounters {
        DeviceCounters::default()
    }

    fn is_exhausted(&self) -> bool {
        true
    }

    fn stop(&self) {}

    fn warnings(&self) -> Vec<String> {
        self.before.warnings()
    }
}
