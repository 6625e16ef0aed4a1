//! Clients as a device of a run.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rheostat_base::{Clock, DeviceId, Histogram, QueueId};
use rheostat_io::{Device, DeviceCounters, DeviceMonitor, QueuePair};
use rheostat_steer::{Fence, IndirectionTable, RewriteError, Steering};

use super::ClientsConfig;
use super::counters::{ClientCounters, ClientTotals};
use super::population::Population;

/// Clients of a service, as a device that a run receives from and sends to.
#[derive(Clone)]
pub struct Clients {
    all: Arc<Population>,
    queues: Arc<std::sync::Mutex<Vec<QueuePair>>>,
}

impl Clients {
    /// Clients as `config` says, whose packets `steering` places. The second view of the same clients, to look at them while they
    /// run, is a clone.
    pub fn new(config: ClientsConfig, steering: &Steering) -> Clients {
        let all = Arc::new(Population::new(config, steering));
        let clock = Clock::new();
        let queues = (0..all.config.queues).map(|queue| super::queue::pair(&all, queue, &clock));
        let queues = Arc::new(std::sync::Mutex::new(queues.collect()));
        Clients { all, queues }
    }

    /// Whether all connections are open that are to be before requests are made.
    pub fn are_open(&self) -> bool {
        let wanted = u64::from(self.all.config.connections);
        self.all.config.requests_per_connection.is_some() || self.totals().opened >= wanted
    }

    /// What all queues have counted.
    pub fn totals(&self) -> ClientTotals {
        let mut totals = ClientTotals::default();
        self.all.queues.iter().for_each(|queue| totals.add(&queue.counters));
        totals
    }

    /// The counters of a queue.
    pub fn counters(&self, queue: QueueId) -> Arc<ClientCounters> {
        self.all.queues[queue.index()].counters.clone()
    }

    /// Nanoseconds from when requests were due to their replies, of all queues.
    pub fn latency(&self) -> Histogram {
        let all = Histogram::new();
        self.all.queues.iter().for_each(|queue| all.add(&queue.counters.latency));
        all
    }
}

impl Device for Clients {
    fn name(&self) -> &str {
        &self.all.config.name
    }

    fn id(&self) -> DeviceId {
        self.all.config.device
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        let mut queues = self.queues.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        std::mem::take(&mut queues)
    }

    fn table(&self) -> Option<Arc<dyn IndirectionTable>> {
        Some(Arc::new(ClientTable(self.all.clone())))
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        Arc::new(ClientsMonitor(self.all.clone()))
    }
}

/// The table by which frames are placed.
struct ClientTable(Arc<Population>);

impl IndirectionTable for ClientTable {
    fn len(&self) -> usize {
        self.0.buckets()
    }

    fn read(&self) -> Vec<QueueId> {
        self.0.entries()
    }

    fn rewrite(&self, entries: &[QueueId]) -> Result<Fence, RewriteError> {
        RewriteError::check(entries, self.len(), self.0.queues.len())?;
        self.0.rewrite(entries);
        Ok(Fence::new(|| true))
    }
}

struct ClientsMonitor(Arc<Population>);

impl DeviceMonitor for ClientsMonitor {
    fn counters(&self) -> DeviceCounters {
        let mut totals = ClientTotals::default();
        self.0.queues.iter().for_each(|queue| totals.add(&queue.counters));
        DeviceCounters {
            arrived: totals.arrived,
            arrived_bytes: totals.arrived_bytes,
            no_buffer: totals.no_buffer,
            sent: totals.sent,
            sent_bytes: totals.sent_bytes,
            ..DeviceCounters::default()
        }
    }

    fn is_exhausted(&self) -> bool {
        // Nothing waits in a queue whose frames are made when it is polled.
        self.0.is_stopped.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        // Relaxed: the flag publishes nothing.
        self.0.is_stopped.store(true, Ordering::Relaxed);
    }
}
