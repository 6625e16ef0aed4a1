//! What a test puts around the parts of a lane.

use std::sync::Arc;

use rheostat_base::DeviceId;
use rheostat_io::{Device, DeviceMonitor, QueuePair, TxQueue};
use rheostat_run::Service;
use rheostat_steer::IndirectionTable;

/// Wrappers of the service and of the transmit queue of each lane.
#[derive(Clone, Copy)]
pub(crate) struct Around {
    pub(crate) service: fn(Box<dyn Service>) -> Box<dyn Service>,
    pub(crate) transmit: fn(Box<dyn TxQueue>) -> Box<dyn TxQueue>,
}

/// Nothing.
impl Default for Around {
    fn default() -> Around {
        Around { service: |service| service, transmit: |queue| queue }
    }
}

impl Around {
    /// A device whose transmit queues are wrapped.
    pub(super) fn device(self, device: impl Device + 'static) -> Box<dyn Device> {
        Box::new(Wrapped { device, transmit: self.transmit })
    }
}

struct Wrapped<D> {
    device: D,
    transmit: fn(Box<dyn TxQueue>) -> Box<dyn TxQueue>,
}

impl<D: Device> Device for Wrapped<D> {
    fn name(&self) -> &str {
        self.device.name()
    }

    fn id(&self) -> DeviceId {
        self.device.id()
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        let wrap = |pair: QueuePair| QueuePair { rx: pair.rx, tx: (self.transmit)(pair.tx) };
        self.device.queues().into_iter().map(wrap).collect()
    }

    fn table(&self) -> Option<Arc<dyn IndirectionTable>> {
        self.device.table()
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.device.monitor()
    }
}
