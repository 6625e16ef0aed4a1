//! What makes packets arrive at a simulated NIC.

use std::sync::Arc;

use crate::device::DeviceMonitor;
use crate::replay_barrier::{Reader, ReplayBarrier};

/// An engine: it puts packets into rings ([`super::driver::Drive`]), or they are written as lanes take them
/// ([`super::pumped::Pump`]).
pub(super) trait Engine: DeviceMonitor {
    /// Lets nothing arrive before [`crate::SourceMonitor::begin`], unless packets wait for the lanes anyway.
    fn await_begin(&self);

    /// Keeps packets in order by `barrier`; only the first call counts.
    fn replay_by(&self, barrier: Arc<ReplayBarrier>);
}

/// What devices share to keep packets in order, and this device's reader there if it reads without loss.
pub(super) struct Replaying {
    pub(super) barrier: Arc<ReplayBarrier>,
    pub(super) reader: Option<Reader>,
}
