//! A measured row beside the same in simulation.

use std::fmt;

use rheostat_serve::AvailableScheduler;
use rheostat_tcp::sched::Outstanding;
use serde::{Deserialize, Serialize};

use super::row::SchedBenchRow;
use super::workload::RigWorkload;
use crate::noise::Noise;
use crate::offered_load::OfferedLoad;
use crate::rounding::to_thousandths;
use crate::sim::sched::{RequestCosts, SchedBench, SchedError, SchedRow};

/// What rows are simulated with.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What requests cost.
    pub costs: RequestCosts,
    /// The machine's pauses.
    pub noise: Noise,
    /// Connections for each worker that runs the application.
    pub connections: u32,
    /// Requests that a member of a central queue may hold.
    pub outstanding: Outstanding,
    /// Packets that a worker takes at a time of a receive queue that others take from, too.
    pub burst: u32,
}

/// The simulated figures of a row. A ratio is measured by simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Simulated {
    /// Replies per second when there is always more to do.
    pub capacity: f64,
    /// The median.
    pub p50_us: f64,
    /// The 99th percentile, with the machine's pauses.
    pub p99_us: f64,
    /// The same without them.
    pub p99_quiet_us: f64,
    /// Of the capacities.
    pub capacity_ratio: f64,
    /// Of the medians.
    pub p50_ratio: Option<f64>,
    /// Of the 99th percentiles, with pauses.
    pub p99_ratio: Option<f64>,
}

impl Comparison {
    /// Simulates what `row` measured, at the same rate. The clients' work is part of TCP in, where most of it is done: for the capacity what
    /// it was at the capacity, for latencies what it was at the row's load. Service times are scaled to what the application really took.
    /// `None` for a workload that is not simulated, and at a rate that the simulation does not reach.
    pub(super) fn simulate(
        &self,
        row: &SchedBenchRow,
        scheduler: AvailableScheduler,
        workload: &RigWorkload,
    ) -> Result<Option<Simulated>, SchedError> {
        let Some(workload) = workload.simulated() else { return Ok(None) };
        let workload = workload.scaled(row.service_ns / workload.mean_ns());
        let with_clients = |ns: f64| RequestCosts {
            tcp_in_ns: self.costs.tcp_in_ns.plus(ns),
            ..self.costs.clone()
        };
        let [costs, costs_at_capacity] = [row.client_ns[1], row.client_ns[0]].map(with_clients);
        let bench = SchedBench::new(row.workers, &costs);
        let bench = SchedBench {
            schedulers: vec![scheduler.name()],
            workloads: vec![workload],
            loads: vec![OfferedLoad::Rate(row.offered).share(bench.rate_of_load_1(workload))],
            connections: self.connections,
            outstanding: self.outstanding,
            burst: self.burst,
            threads: 2,
            ..bench
        };
        let full = SchedBench { costs: &costs_at_capacity, ..bench.clone() };
        let full = full.run_without_crossover()?;
        let quiet = bench.run_without_crossover()?;
        let paused = SchedBench { noise: Some(&self.noise), ..bench }.run_without_crossover()?;
        let (Some(full), Some(quiet), Some(paused)) = (full.first(), quiet.first(), paused.first())
        else {
            return Ok(None);
        };
        let is_reached = !quiet.saturated && !paused.saturated;
        Ok(is_reached.then(|| Simulated::of(row, full.capacity, quiet, paused)))
    }
}

impl Simulated {
    fn of(row: &SchedBenchRow, capacity: f64, quiet: &SchedRow, paused: &SchedRow) -> Simulated {
        let ratio = |measured: Option<f64>, simulated: f64| {
            measured.map(|time| to_thousandths(time / simulated))
        };
        Simulated {
            capacity,
            p50_us: paused.p50_us,
            p99_us: paused.p99_us,
            p99_quiet_us: quiet.p99_us,
            capacity_ratio: to_thousandths(row.capacity / capacity),
            p50_ratio: ratio(row.p50_us, paused.p50_us),
            p99_ratio: ratio(row.p99_us, paused.p99_us),
        }
    }
}

impl fmt::Display for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratio = |of: Option<f64>| of.map_or_else(|| "-".to_owned(), |of| format!("{of:.2}"));
        write!(
            f,
            "simulated: capacity {:.1}k, p50 {:.2} us, p99 {:.2} us ({:.2} without pauses); measured by simulated: {:.2}, {}, {}",
            self.capacity / 1e3,
            self.p50_us,
            self.p99_us,
            self.p99_quiet_us,
            self.capacity_ratio,
            ratio(self.p50_ratio),
            ratio(self.p99_ratio)
        )
    }
}
