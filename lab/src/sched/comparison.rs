//! A measured row beside the same in simulation.

use std::fmt;
use std::time::Duration;

use rheostat_measure::rounding::to_thousandths;
use rheostat_tcp::sched::{Outstanding, SchedulerName};
use serde::{Deserialize, Serialize};

use super::core_to_core::{are_like, range};
use super::row::SchedBenchRow;
use super::workload::RigWorkload;
use crate::noise::Noise;
use crate::offered_load::OfferedLoad;
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
    /// What a line took from core to core while the costs were measured, if that is known.
    #[serde(default)]
    pub core_to_core_ns: Option<[f64; 2]>,
}

impl Comparison {
    /// Simulates what `row` measured, at the same rate. The clients' work is part of TCP in, where most of it is done: for the capacity what
    /// it was at the capacity, for latencies what it was at the row's load. Service times are scaled to what the application really took.
    /// Percentiles are medians of windows, which are as long as those that were measured. `None` for a workload that is not simulated, and
    /// at a rate that the simulation does not reach.
    pub(super) fn simulate(
        &self,
        row: &SchedBenchRow,
        scheduler: SchedulerName,
        workload: &RigWorkload,
        window: Duration,
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
            schedulers: vec![scheduler],
            workloads: vec![workload],
            loads: vec![OfferedLoad::Rate(row.offered).share(bench.rate_of_load_1(workload))],
            connections: self.connections,
            outstanding: self.outstanding,
            burst: self.burst,
            window: Some((row.offered * window.as_secs_f64()) as u64),
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
        let distance = self.costs.core_to_core_ns;
        Ok(is_reached.then(|| Simulated::of(row, full.capacity, [quiet, paused], distance)))
    }
}

impl Simulated {
    fn of(
        row: &SchedBenchRow,
        capacity: f64,
        [quiet, paused]: [&SchedRow; 2],
        core_to_core_ns: Option<[f64; 2]>,
    ) -> Simulated {
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
            core_to_core_ns,
        }
    }

    /// A caution where lines took another time from core to core in `measured` than while the costs were measured.
    pub(super) fn caution(&self, measured: Option<[f64; 2]>) -> Option<String> {
        let (costs, row) = (self.core_to_core_ns?, measured?);
        (!are_like(range(&[costs, row].concat())?)).then(|| {
            format!(
                "not comparable: lines took {:.0} to {:.0} ns from core to core, and {:.0} to {:.0} while the costs were measured",
                row[0], row[1], costs[0], costs[1]
            )
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_another_distance_are_named() {
        let simulated = |core_to_core_ns| Simulated {
            capacity: 1e6,
            p50_us: 2.0,
            p99_us: 9.0,
            p99_quiet_us: 4.0,
            capacity_ratio: 0.7,
            p50_ratio: Some(1.4),
            p99_ratio: None,
            core_to_core_ns,
        };
        let near = simulated(Some([47.0, 50.0]));
        assert_eq!(near.caution(Some([45.0, 60.0])), None);
        for unknown in [near.caution(None), simulated(None).caution(Some([47.0, 50.0]))] {
            assert_eq!(unknown, None);
        }
        let expected = "not comparable: lines took 52 to 271 ns from core to core, and 47 to 50 while the costs were measured";
        assert_eq!(near.caution(Some([52.0, 271.0])).as_deref(), Some(expected));
        assert!(near.caution(Some([260.0, 271.0])).is_some(), "all of it at another distance");
        assert!(simulated(Some([50.0, 260.0])).caution(Some([50.0, 50.0])).is_some());
    }
}
