//! What can be asked of a simulated NIC while it runs.

use std::sync::Arc;

use rheostat_packet::Mbuf;

use super::counters::{Arrivals, Sent};
use super::descriptor_ring::Gauge;
use super::driver::Drive;
use crate::device::{DeviceCounters, DeviceMonitor};

pub(super) struct SimMonitor {
    pub(super) drive: Arc<Drive>,
    pub(super) arrivals: Arc<Arrivals>,
    pub(super) sent: Vec<Arc<Sent>>,
    pub(super) waiting: Vec<Gauge<Mbuf>>,
}

impl DeviceMonitor for SimMonitor {
    fn counters(&self) -> DeviceCounters {
        let arrivals = &self.arrivals;
        DeviceCounters {
            arrived: arrivals.arrived.get(),
            arrived_bytes: arrivals.arrived_bytes.get(),
            queue_full: arrivals.queue_full.iter().map(|count| count.get()).collect(),
            no_buffer: arrivals.no_buffer.get(),
            oversize: arrivals.oversize.get(),
            malformed: 0,
            sent: self.sent.iter().map(|sent| sent.packets.get()).sum(),
            sent_bytes: self.sent.iter().map(|sent| sent.bytes.get()).sum(),
            copied: 0,
        }
    }

    fn is_exhausted(&self) -> bool {
        self.drive.ended() && self.waiting.iter().all(|queue| queue.backlog() == 0)
    }

    fn stop(&self) {
        self.drive.stop();
    }

    fn progress(&self) -> Option<f64> {
        self.drive.progress()
    }
}
