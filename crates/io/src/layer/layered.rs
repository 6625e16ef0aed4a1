//! A device whose queues a layer has wrapped.

use std::sync::Arc;

use rheostat_base::DeviceId;
use rheostat_steer::IndirectionTable;

use crate::device::{
    Device, DeviceCounters, DeviceMonitor, InterfaceMonitor, QueuePair, Replay, SourceMonitor,
};
use crate::sharing::SharingCounters;

/// A device of which a layer has taken the queues, and wrapped them: everything else is as it was, but for what the layer's
/// monitor tells.
pub struct LayeredDevice {
    inner: Box<dyn Device>,
    queues: Vec<QueuePair>,
    monitor: Arc<dyn DeviceMonitor>,
}

impl LayeredDevice {
    /// `inner` with `queues` in place of its own, which were taken out of it. Nothing changes what its monitor tells.
    pub fn new(inner: Box<dyn Device>, queues: Vec<QueuePair>) -> LayeredDevice {
        let monitor = inner.monitor();
        LayeredDevice { inner, queues, monitor }
    }

    /// As [`LayeredDevice::new`], for a layer that changes what the monitor tells.
    pub(crate) fn with_books(
        inner: Box<dyn Device>,
        queues: Vec<QueuePair>,
        books: impl LayerBooks,
    ) -> LayeredDevice {
        let monitor = Arc::new(LayeredMonitor { inner: inner.monitor(), books });
        LayeredDevice { inner, queues, monitor }
    }
}

/// What a layer knows of its device's packets that the device does not.
pub(crate) trait LayerBooks: Send + Sync + 'static {
    /// What a lane above the layer sees of the device's counters.
    fn counters(&self, inner: DeviceCounters) -> DeviceCounters {
        inner
    }

    /// Whether the layer holds packets that have left the device's queues.
    fn holds_packets(&self) -> bool {
        false
    }

    /// Faults of the source, to be shown at the end.
    fn warnings(&self, inner: Vec<String>) -> Vec<String> {
        inner
    }

    /// What a lane above the layer sees of how lanes share queues.
    fn sharing(&self, inner: Vec<SharingCounters>) -> Vec<SharingCounters> {
        inner
    }
}

struct LayeredMonitor<B> {
    inner: Arc<dyn DeviceMonitor>,
    books: B,
}

impl Device for LayeredDevice {
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

    fn as_replay(&mut self) -> Option<&mut dyn Replay> {
        self.inner.as_replay()
    }

    fn await_begin(&mut self) {
        self.inner.await_begin();
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.monitor.clone()
    }
}

impl<B: LayerBooks> DeviceMonitor for LayeredMonitor<B> {
    fn counters(&self) -> DeviceCounters {
        self.books.counters(self.inner.counters())
    }

    fn is_exhausted(&self) -> bool {
        // In this order: what has left the device is either held or delivered.
        self.inner.is_exhausted() && !self.books.holds_packets()
    }

    fn stop(&self) {
        self.inner.stop();
    }

    fn interface(&self) -> Option<&dyn InterfaceMonitor> {
        self.inner.interface()
    }

    fn source(&self) -> Option<&dyn SourceMonitor> {
        self.inner.source()
    }

    fn sharing(&self) -> Vec<SharingCounters> {
        self.books.sharing(self.inner.sharing())
    }

    fn warnings(&self) -> Vec<String> {
        self.books.warnings(self.inner.warnings())
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes()
    }
}
