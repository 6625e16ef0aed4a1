//! One scheduler under one load.

use std::time::Duration;

use rheostat_tcp::sched::{Outstanding, Queueing, Scheduler, SchedulerName};

use super::costs::RequestCosts;
use super::dispatcher::Dispatchers;
use super::estimate::{Precision, SchedEstimate, estimate};
use super::inline::Inline;
use super::sharing::Sharing;
use super::source::RequestSource;
use super::system::System;
use super::workload::Workload;
use crate::noise::Noise;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting<'a> {
    pub(super) scheduler: Scheduler,
    /// Processor sharing on as many workers, in place of the scheduler.
    pub(super) shares: bool,
    pub(super) costs: &'a RequestCosts,
    pub(super) workload: Workload,
    /// Requests per second.
    pub(super) rate: f64,
    /// Connections for each worker that runs the application.
    pub(super) connections_each: u32,
    /// Requests taken from a shared queue at once.
    pub(super) burst: u32,
    pub(super) outstanding: Outstanding,
    /// How long idle workers look at their queues before they sleep.
    pub(super) spin: Option<Duration>,
    /// The machine's pauses.
    pub(super) noise: Option<&'a Noise>,
    pub(super) seed: u64,
}

impl Setting<'_> {
    /// Whether replies leave at the end of their poll.
    pub(super) fn holds_replies(&self) -> bool {
        matches!(self.scheduler.name(), SchedulerName::Inline(Queueing::Dfcfs)) && !self.shares
    }

    pub(super) fn connections(&self) -> u32 {
        let workers = match self.scheduler.name() {
            SchedulerName::Inline(_) => self.scheduler.workers(),
            SchedulerName::Dispatcher(dispatcher) => dispatcher.split().members(),
        };
        self.connections_each.max(1).saturating_mul(workers.into())
    }

    /// Requests per second that workers could do if they never waited: for each other, for locks, for work.
    pub(super) fn bound(&self) -> f64 {
        let (service, network) = (self.workload.mean_ns(), self.costs.network_ns());
        match self.scheduler.name() {
            SchedulerName::Inline(_) => {
                f64::from(self.scheduler.workers()) / (service + network) * 1e9
            }
            SchedulerName::Dispatcher(dispatcher) => {
                let (split, costs) = (dispatcher.split(), self.costs);
                let (give, take) = match self.outstanding {
                    Outstanding::ONE => (&costs.handoff_give_k1_ns, &costs.handoff_take_k1_ns),
                    _ => (&costs.handoff_give_k2_ns, &costs.handoff_take_k2_ns),
                };
                let handoff = give.mean_ns() + take.mean_ns();
                let network = f64::from(split.dispatchers()) / (network + handoff);
                let members =
                    f64::from(split.members()) / (service + costs.handoff_member_ns.mean_ns());
                network.min(members) * 1e9
            }
        }
    }

    /// Simulates.
    pub(super) fn run(&self, precision: &Precision) -> SchedEstimate {
        match self.scheduler.name() {
            _ if self.shares => self.run_on(Sharing::new(self), precision),
            SchedulerName::Inline(_) => self.run_on(Inline::new(self), precision),
            SchedulerName::Dispatcher(dispatcher) => {
                self.run_on(Dispatchers::new(self, dispatcher), precision)
            }
        }
    }

    fn run_on<S: System>(&self, mut system: S, precision: &Precision) -> SchedEstimate {
        let mut source =
            RequestSource::new(self.workload, self.rate, self.connections(), self.seed);
        estimate(&mut system, &mut source, precision)
    }

    /// Requests per second that leave when more arrive than can be done.
    pub(super) fn capacity(&self) -> f64 {
        let overload = Setting { rate: 1.2 * self.bound(), ..*self };
        overload.run(&Precision::fixed(10_000)).throughput
    }
}
