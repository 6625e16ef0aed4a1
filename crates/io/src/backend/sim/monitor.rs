//! What can be asked of a simulated NIC while it runs.

use std::sync::Arc;

use rheostat_base::Time;
use rheostat_packet::Mbuf;

use super::counters::{Arrivals, Sent};
use super::descriptor_ring::Gauge;
use super::driver::Drive;
use super::pumped::Pump;
use super::replies::Replies;
use crate::backend::shared_ring::Claimants;
use crate::device::{DeviceCounters, DeviceMonitor, SourceMonitor, SourceWork};
use crate::sharing::SharingCounters;

pub(super) struct SimMonitor {
    pub(super) engine: Engine,
    pub(super) sent: Vec<Arc<Sent>>,
    /// Of each ring that several lanes empty.
    pub(super) claimants: Vec<Arc<Claimants>>,
    /// Where a peer answers what the device sends.
    pub(super) replies: Option<Arc<Replies>>,
}

/// What makes packets arrive.
pub(super) enum Engine {
    /// Packets are put into rings.
    Driven { drive: Arc<Drive>, arrivals: Arc<Arrivals>, waiting: Vec<Gauge<Mbuf>> },
    /// Packets are written as lanes take them.
    Pumped(Arc<Pump>),
}

impl Engine {
    fn counters(&self) -> DeviceCounters {
        match self {
            Engine::Driven { arrivals, .. } => DeviceCounters {
                arrived: arrivals.arrived.get(),
                arrived_bytes: arrivals.arrived_bytes.get(),
                queue_full: arrivals.queue_full.iter().map(|count| count.get()).collect(),
                no_buffer: arrivals.no_buffer.get(),
                oversize: arrivals.oversize.get(),
                ..DeviceCounters::default()
            },
            Engine::Pumped(pump) => pump.counters(),
        }
    }
}

impl DeviceMonitor for SimMonitor {
    fn counters(&self) -> DeviceCounters {
        let mut counters = self.engine.counters();
        counters.sent = self.sent.iter().map(|sent| sent.packets.get()).sum();
        counters.sent_bytes = self.sent.iter().map(|sent| sent.bytes.get()).sum();
        if self.replies.is_some() {
            // A device that is answered has a receive queue for each transmit queue.
            for (drops, sent) in counters.queue_full.iter_mut().zip(&self.sent) {
                let refused = sent.refused_replies.get();
                *drops += refused;
                counters.arrived += refused;
                counters.arrived_bytes += sent.refused_reply_bytes.get();
            }
        }
        counters
    }

    fn is_exhausted(&self) -> bool {
        match &self.engine {
            Engine::Driven { drive, waiting, .. } => {
                drive.ended()
                    && self.replies.as_ref().is_none_or(|replies| replies.is_empty())
                    && waiting.iter().all(|queue| queue.backlog() == 0)
            }
            Engine::Pumped(pump) => pump.is_exhausted(),
        }
    }

    fn stop(&self) {
        match &self.engine {
            Engine::Driven { drive, .. } => drive.stop(),
            Engine::Pumped(pump) => pump.stop(),
        }
    }

    fn sharing(&self) -> Vec<SharingCounters> {
        self.claimants.iter().map(|claimants| claimants.sample()).collect()
    }

    fn source(&self) -> Option<&dyn SourceMonitor> {
        Some(self)
    }
}

impl SourceMonitor for SimMonitor {
    fn begin(&self, now: Time) {
        match &self.engine {
            Engine::Driven { drive, .. } => drive.begin(),
            Engine::Pumped(pump) => pump.begin(now),
        }
    }

    fn progress(&self) -> Option<f64> {
        match &self.engine {
            Engine::Driven { drive, .. } => drive.progress(),
            Engine::Pumped(pump) => pump.progress(),
        }
    }

    fn work(&self) -> Option<SourceWork> {
        match &self.engine {
            Engine::Driven { .. } => None,
            Engine::Pumped(pump) => Some(pump.work()),
        }
    }
}
