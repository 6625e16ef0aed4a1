//! `rheo sim sched`: a service over TCP under each scheduler, in virtual time.
//!
//! Requests arrive in an open loop and pass packet delivery, TCP in, the application and TCP out on the workers that a scheduler
//! gives these stages to. Queues, the locks of queues and of connections, hand-offs, steals, and the order of a connection's
//! replies are simulated; how long each takes is in a file of costs. The choices are the functions of [`rheostat_tcp::sched`] that
//! a runtime uses. `docs/schedulers.md` states what is modelled, how it was checked, and what comes of it.

mod advice;
mod costs;
mod costs_source;
mod crossover;
mod dispatcher;
mod drawn;
mod estimate;
mod inline;
mod lock;
mod meter;
mod polls;
mod receivers;
mod requests;
mod row;
mod sharing;
mod source;
mod system;
mod trial;
mod workload;

#[cfg(test)]
mod validation;

use std::time::Duration;

use rheostat_tcp::sched::{Outstanding, Queueing, Scheduler, SchedulerError, SchedulerName};
use thiserror::Error;

pub use self::advice::{Advice, AdviceError};
pub use self::costs::{Cost, RequestCosts, RequestCostsError};
pub use self::costs_source::{CostsSource, UnknownCosts};
use self::estimate::Precision;
pub use self::row::SchedRow;
use self::trial::Setting;
pub use self::workload::{UnknownWorkload, Variability, Workload};
use super::parallel::in_parallel;
use crate::noise::Noise;

/// Cores at most.
pub const MOST_CORES: u16 = 64;
/// Loads that are simulated by default.
pub const LOADS: [f64; 6] = [0.1, 0.2, 0.5, 0.7, 0.8, 0.9];
/// Loads above it only make the queue longer.
pub const HIGHEST_LOAD: f64 = 2.0;
/// Connections for each worker that runs the application, by default.
pub const CONNECTIONS: u32 = 64;

/// A point is saturated from this share of the capacity on: its queue grows, or is longer than can be simulated.
const SATURATED: f64 = 0.985;

/// Why there is no simulation.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SchedError {
    /// No cores, or too many.
    #[error("{0} cores: between 1 and {MOST_CORES} are simulated")]
    Cores(u16),
    /// A scheduler does not fit the cores.
    #[error(transparent)]
    Scheduler(#[from] SchedulerError),
    /// A load out of range.
    #[error(
        "load {0}: above 0 and at most {HIGHEST_LOAD}, where 1 is what the cores can do without waiting for anything"
    )]
    Load(f64),
    /// No connection, or more than fit.
    #[error("{0} connections: between 1 and 16384 for each worker are simulated")]
    Connections(u32),
}

/// What is simulated: every scheduler with every workload at every load.
#[derive(Clone, Debug)]
pub struct SchedBench<'a> {
    /// Cores, each with a worker.
    pub cores: u16,
    /// Schedulers; all that use the cores if there are none.
    pub schedulers: Vec<SchedulerName>,
    /// Distributions of service times.
    pub workloads: Vec<Workload>,
    /// Loads, each the share of what the cores could do if TCP and the application were all there is to do.
    pub loads: Vec<f64>,
    /// What requests cost beside the application's work.
    pub costs: &'a RequestCosts,
    /// Connections for each worker that runs the application.
    pub connections: u32,
    /// Requests that are taken from a shared queue, or stolen, at once.
    pub burst: u32,
    /// Requests that a member of a central queue may hold.
    pub outstanding: Outstanding,
    /// How long idle workers look at their queues before they sleep; for ever if `None`.
    pub spin: Option<Duration>,
    /// The pauses of a machine, if workers pause.
    pub noise: Option<&'a Noise>,
    /// Whether to simulate until p99.99 is known.
    pub full: bool,
    /// Requests of a window: percentiles are then the medians of 20 windows, as those of a measurement are, instead of all requests'. A
    /// pause shows in its window alone.
    pub window: Option<u64>,
    /// Whether to add what is possible without any cost: one queue, and processor sharing.
    pub ideals: bool,
    /// Decides about requests.
    pub seed: u64,
    /// Runs at the same time.
    pub threads: usize,
}

/// What one run is about.
#[derive(Clone, Copy, Debug)]
struct SchedCase {
    scheduler: Scheduler,
    ideal: Option<Ideal>,
    workload: Workload,
}

/// A scheduler that exists in theory only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ideal {
    /// `ideal-cfcfs`: one queue, locks and hand-offs cost nothing.
    Central,
    /// `ideal-ps`: processor sharing, which preempts at no cost.
    Sharing,
}

impl<'a> SchedBench<'a> {
    /// All schedulers, the workloads of the thesis, and [`LOADS`].
    pub fn new(cores: u16, costs: &'a RequestCosts) -> SchedBench<'a> {
        SchedBench {
            cores,
            schedulers: Vec::new(),
            workloads: Workload::thesis().to_vec(),
            loads: LOADS.to_vec(),
            costs,
            connections: CONNECTIONS,
            burst: 1,
            outstanding: Outstanding::ONE,
            spin: None,
            noise: None,
            full: false,
            window: None,
            ideals: false,
            seed: 1,
            threads: 1,
        }
    }

    /// Requests of a workload per second that are a load of 1.
    pub fn rate_of_load_1(&self, workload: Workload) -> f64 {
        f64::from(self.cores) * 1e9 / (workload.mean_ns() + self.costs.network_ns())
    }

    /// Simulates: a row for each workload, load and scheduler, in this order.
    ///
    /// Bounds: a request takes 0.1 to 0.5 us of a core in a release build. A row has 0.4 to 12.8 million requests, up to 102 million next to
    /// the capacity, where queues remember long; with `full` from 2 million to five times these. A row beyond the capacity has 0.2 million.
    ///
    /// # Errors
    /// [`SchedError`], before anything is simulated.
    pub fn run(&self) -> Result<Vec<SchedRow>, SchedError> {
        let schedulers = self.schedulers()?;
        Ok(self.rows(&schedulers, &self.crossovers()))
    }

    pub(crate) fn run_without_crossover(&self) -> Result<Vec<SchedRow>, SchedError> {
        let schedulers = self.schedulers()?;
        Ok(self.rows(&schedulers, &[]))
    }

    fn rows(
        &self,
        schedulers: &[(Scheduler, Option<Ideal>)],
        crossovers: &[(f64, f64)],
    ) -> Vec<SchedRow> {
        let free = self.costs.with_lock(0.0);
        let cases: Vec<SchedCase> = self
            .workloads
            .iter()
            .flat_map(|&workload| {
                schedulers.iter().map(move |&(scheduler, ideal)| SchedCase {
                    scheduler,
                    ideal,
                    workload,
                })
            })
            .collect();
        let costs_of = |case: &SchedCase| if case.ideal.is_some() { &free } else { self.costs };
        let setting = |case: &SchedCase, load| self.setting(case, costs_of(case), load);
        let capacities = in_parallel(&cases, self.threads, |case| setting(case, 1.0).capacity());
        let mut points: Vec<(usize, f64, f64)> = Vec::new();
        for workload in 0..self.workloads.len() {
            for &load in &self.loads {
                let own = workload * schedulers.len()..(workload + 1) * schedulers.len();
                points.extend(own.map(|case| (case, load, capacities[case])));
            }
        }
        // Those that take longest begin first.
        let mut order: Vec<usize> = (0..points.len()).collect();
        let effort = |&(case, load, capacity): &(usize, f64, f64)| {
            let share = setting(&cases[case], load).rate / capacity;
            if share < SATURATED { share } else { 0.0 }
        };
        order.sort_by(|a, b| effort(&points[*b]).total_cmp(&effort(&points[*a])));
        let estimates = in_parallel(&order, self.threads, |&point| {
            let (case, load, capacity) = points[point];
            let setting = setting(&cases[case], load);
            let is_saturated = setting.rate >= SATURATED * capacity;
            let precision = if is_saturated { Precision::fixed(10_000) } else { self.precision() };
            (setting.run(&precision), is_saturated)
        });
        let mut rows: Vec<(usize, SchedRow)> = order
            .iter()
            .zip(estimates)
            .map(|(&point, (estimate, is_saturated))| {
                let (case, load, capacity) = points[point];
                let crossover =
                    crossovers.iter().find(|(of, _)| *of == load).map(|(_, lock)| *lock);
                let crossover = crossover.filter(|_| cases[case].workload.is_shortest());
                let offered = setting(&cases[case], load).rate;
                let row = SchedRow::of(
                    self,
                    &cases[case],
                    (load, offered, capacity),
                    &estimate,
                    is_saturated,
                );
                (point, SchedRow { crossover_lock_ns: crossover, ..row })
            })
            .collect();
        rows.sort_by_key(|(point, _)| *point);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    fn precision(&self) -> Precision {
        if let Some(requests) = self.window {
            Precision::fixed(requests)
        } else if self.full {
            Precision { batch: 100_000, most: 64_000_000, margin: 0.05, percentile: 0.9999 }
        } else {
            Precision { batch: 20_000, most: 12_800_000, margin: 0.05, percentile: 0.999 }
        }
    }

    fn setting<'b>(&self, case: &SchedCase, costs: &'b RequestCosts, load: f64) -> Setting<'b>
    where
        'a: 'b,
    {
        Setting {
            scheduler: case.scheduler,
            shares: case.ideal == Some(Ideal::Sharing),
            costs,
            workload: case.workload,
            rate: load * self.rate_of_load_1(case.workload),
            connections_each: self.connections,
            burst: self.burst,
            outstanding: self.outstanding,
            spin: self.spin,
            noise: self.noise,
            seed: self.seed,
        }
    }

    /// The lock at which cFCFS stops winning, by load.
    fn crossovers(&self) -> Vec<(f64, f64)> {
        let Some(&workload) = self.workloads.iter().find(|workload| workload.is_shortest()) else {
            return Vec::new();
        };
        let name = SchedulerName::Inline(Queueing::Cfcfs);
        let Ok(scheduler) = Scheduler::on_cores(name, self.cores) else { return Vec::new() };
        let case = SchedCase { scheduler, ideal: None, workload };
        let found = in_parallel(&self.loads, self.threads, |&load| {
            crossover::crossover_lock(&self.setting(&case, self.costs, load))
        });
        self.loads.iter().copied().zip(found).collect()
    }

    /// Checks that this can be simulated.
    ///
    /// # Errors
    /// [`SchedError`], as [`SchedBench::run`] would return it.
    pub fn check(&self) -> Result<(), SchedError> {
        self.schedulers().map(drop)
    }

    /// What is simulated of each workload and load.
    fn schedulers(&self) -> Result<Vec<(Scheduler, Option<Ideal>)>, SchedError> {
        if !(1..=MOST_CORES).contains(&self.cores) {
            return Err(SchedError::Cores(self.cores));
        }
        if let Some(load) = self.loads.iter().find(|load| !(**load > 0.0 && **load <= HIGHEST_LOAD))
        {
            return Err(SchedError::Load(*load));
        }
        if !(1..=16_384).contains(&self.connections) {
            return Err(SchedError::Connections(self.connections));
        }
        let names = if self.schedulers.is_empty() {
            SchedulerName::all(self.cores)
        } else {
            self.schedulers.clone()
        };
        let on_cores = |name| Scheduler::on_cores(name, self.cores);
        let mut schedulers = Vec::new();
        for name in names {
            schedulers.push((on_cores(name)?, None));
        }
        if self.ideals {
            let central = on_cores(SchedulerName::Inline(Queueing::Cfcfs))?;
            schedulers.push((central, Some(Ideal::Central)));
            schedulers.push((central, Some(Ideal::Sharing)));
        }
        Ok(schedulers)
    }
}
