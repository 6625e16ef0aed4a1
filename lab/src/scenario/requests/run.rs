//! What a scenario about requests asks of the rig and of the simulation.

use rheostat_serve::work::{Operations, WorkKind};
use rheostat_tcp::sched::Outstanding;
use thiserror::Error;

use super::RequestScenario;
use crate::costs::Costs;
use crate::scenario::{ScenarioError, line};
use crate::sched::{RigWorkload, SchedBench};
use crate::sim::sched::{
    self as sim, HIGHEST_LOAD, RequestCosts, RequestCostsError, SchedError, SchedRow, Workload,
};

/// Requests under way in each receive queue while the capacity is measured.
const UNDER_WAY: u32 = 64;

/// Why a scenario was not simulated.
#[derive(Debug, Error)]
pub enum SimulationError {
    /// It has what cannot be simulated.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Its costs cannot be read.
    #[error(transparent)]
    Costs(Box<RequestCostsError>),
    /// A scheduler or a load is impossible.
    #[error("{file}: {source}")]
    Sched {
        /// The file.
        file: String,
        /// Why.
        source: SchedError,
    },
}

impl RequestScenario {
    /// The times of square roots that have to be calibrated.
    pub fn targets(&self) -> Vec<u64> {
        let roots = self.workloads().filter(|workload| workload.kind() == WorkKind::Roots);
        roots.flat_map(|workload| workload.times().targets()).collect()
    }

    /// What is measured on so many workers. `allocations` counts those of this process so far.
    pub fn bench(
        &self,
        workers: u16,
        operations: &Operations,
        allocations: fn() -> u64,
    ) -> SchedBench {
        SchedBench {
            schedulers: self.schedulers.clone(),
            workloads: self.workloads().map(RigWorkload::clone).collect(),
            loads: self.offered(),
            operations: operations.clone(),
            workers,
            connections: self.service.connections,
            outstanding: self.outstanding(),
            burst: self.service.burst,
            arrivals: self.service.arrivals,
            rounds: self.rounds.into(),
            window: self.window,
            windows: self.windows.into(),
            under_way: UNDER_WAY,
            times: self.times,
            comparison: None,
            seed: self.seed,
            allocations,
        }
    }

    /// What requests cost in simulation.
    ///
    /// # Errors
    /// [`SimulationError::Costs`].
    pub fn costs(&self) -> Result<RequestCosts, SimulationError> {
        let opened = self.simulation.costs.within(&self.folder).open();
        let costs = opened.map_err(|error| SimulationError::Costs(Box::new(error)))?;
        Ok(match self.simulation.lock {
            None => costs,
            Some(lock) => costs.with_lock(lock),
        })
    }

    /// Simulates, with `threads` runs at a time. Rows are given to `on_rows` as soon as their workload is done.
    ///
    /// # Errors
    /// [`SimulationError`]; of what cannot be simulated at all, before anything is.
    pub fn simulate(
        &self,
        costs: &RequestCosts,
        threads: usize,
        mut on_rows: impl FnMut(&[SchedRow]),
    ) -> Result<(), SimulationError> {
        let workloads = self.simulated_workloads()?;
        self.check_rates(costs, &workloads)?;
        let machine = self.simulation.pauses.then(Costs::built_in);
        for &workers in &self.workers {
            for &workload in &workloads {
                let mut bench = sim::SchedBench {
                    schedulers: self.schedulers.clone(),
                    workloads: vec![workload],
                    connections: self.service.connections,
                    outstanding: self.outstanding(),
                    burst: self.service.burst,
                    noise: machine.as_ref().map(|machine| &machine.noise),
                    full: self.simulation.full,
                    ideals: self.simulation.ideals,
                    seed: self.seed,
                    threads,
                    ..sim::SchedBench::new(workers, costs)
                };
                let capacity = bench.rate_of_load_1(workload);
                bench.loads = self.offered().iter().map(|load| load.share(capacity)).collect();
                let rows = bench
                    .run()
                    .map_err(|source| SimulationError::Sched { file: self.name.clone(), source })?;
                on_rows(&rows);
            }
        }
        Ok(())
    }

    /// Whether rates are within what is simulated.
    fn check_rates(
        &self,
        costs: &RequestCosts,
        workloads: &[Workload],
    ) -> Result<(), ScenarioError> {
        for &workers in &self.workers {
            for &workload in workloads {
                let capacity = sim::SchedBench::new(workers, costs).rate_of_load_1(workload);
                let most = (HIGHEST_LOAD * capacity) as u64;
                if let Some(rate) = self.rates.iter().find(|rate| rate.0 > most) {
                    let problem = format!(
                        "{workload} on {workers} workers is simulated with at most {most} per second, and this is {}",
                        rate.0
                    );
                    let line = line::line_of(&self.text, "rates");
                    let file = self.name.clone();
                    return Err(ScenarioError::Value { file, line, key: "rates", problem });
                }
            }
        }
        Ok(())
    }

    fn outstanding(&self) -> Outstanding {
        Outstanding::new(self.service.outstanding).unwrap_or(Outstanding::ONE)
    }
}
