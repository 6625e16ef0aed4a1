//! Clients as a device of a run.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use rheostat_base::{Clock, ClockSource, DeviceId};
use rheostat_io::{Device, DeviceCounters, DeviceMonitor, QueuePair};
use rheostat_steer::Steering;

use super::counters::RigTotals;
use super::population::{Population, RigConfig, lock};
use super::receiving::Receiving;
use super::samples::Samples;
use super::schedule::{Offered, Plan, Schedule};
use super::stages::Stages;
use super::transmitting::Transmitting;

/// Clients of a service, as a device. Its clones are views of the same clients.
#[derive(Clone)]
pub(crate) struct Clients {
    all: Arc<Population>,
    queues: Arc<Mutex<Vec<QueuePair>>>,
}

impl Clients {
    /// Clients as `config` says, whose packets `steering` places; `None` when there are too many. `clock` is that of the run.
    pub(crate) fn new(
        config: RigConfig,
        steering: &Steering,
        clock: Arc<dyn ClockSource>,
    ) -> Option<Clients> {
        let all = Arc::new(Population::new(config, steering, clock)?);
        let ticks = Clock::new();
        let pair = |queue| QueuePair {
            rx: Box::new(Receiving::new(&all, queue, &ticks)),
            tx: Box::new(Transmitting::new(&all, queue, &ticks)),
        };
        let queues = (0..all.config.queues).map(pair).collect();
        Some(Clients { queues: Arc::new(Mutex::new(queues)), all })
    }

    /// Whether all connections are open.
    pub(crate) fn are_open(&self) -> bool {
        self.totals().opened >= u64::from(self.all.config.connections)
    }

    pub(crate) fn totals(&self) -> RigTotals {
        self.all.totals()
    }

    /// Draws the requests of an open loop.
    pub(crate) fn schedule(&self, offered: &Offered) -> Schedule {
        Schedule::draw(offered, &self.all.queue_of, self.all.config.queues)
    }

    /// Has clients do something else.
    pub(crate) fn follow(&self, plan: Plan) {
        self.all.set_plan(plan);
    }

    /// Records the replies that leave from now on, as far as `room` reaches for each queue.
    pub(crate) fn record(&self, room: usize) {
        for queue in &self.all.queues {
            let samples = Samples::with_room(room);
            *lock(&queue.samples) = samples;
        }
    }

    /// Takes what was recorded.
    pub(crate) fn take_samples(&self) -> Vec<Samples> {
        self.all.queues.iter().map(|queue| std::mem::take(&mut *lock(&queue.samples))).collect()
    }

    /// Records the stages of so many requests for each queue, where replies are those of a probe.
    pub(crate) fn record_stages(&self, room: usize) {
        self.all.queues.iter().for_each(|queue| *lock(&queue.stages) = Vec::with_capacity(room));
    }

    /// Takes what was recorded of stages, by transmit queue: in the order in which its lane sent.
    pub(crate) fn take_stages(&self) -> Vec<Vec<Stages>> {
        self.all.queues.iter().map(|queue| std::mem::take(&mut *lock(&queue.stages))).collect()
    }

    /// Requests under way.
    pub(crate) fn under_way(&self) -> i64 {
        self.all.queues.iter().map(|queue| queue.under_way.load(Ordering::Relaxed)).sum()
    }
}

impl Device for Clients {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn id(&self) -> DeviceId {
        self.all.config.device
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        std::mem::take(&mut *lock(&self.queues))
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        Arc::new(RigMonitor(self.all.clone()))
    }
}

struct RigMonitor(Arc<Population>);

impl DeviceMonitor for RigMonitor {
    fn counters(&self) -> DeviceCounters {
        let totals = self.0.totals();
        DeviceCounters {
            arrived: totals.received,
            arrived_bytes: totals.received_bytes,
            no_buffer: totals.no_buffer,
            sent: totals.sent,
            sent_bytes: totals.sent_bytes,
            ..DeviceCounters::default()
        }
    }

    fn is_exhausted(&self) -> bool {
        self.0.is_stopped.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        // Relaxed: the flag publishes nothing.
        self.0.is_stopped.store(true, Ordering::Relaxed);
    }
}
