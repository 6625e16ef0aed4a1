//! Which scheduler to take for a service.

use std::time::Duration;

use rheostat_measure::record::to_three_digits;
use rheostat_tcp::sched::{Queueing, SchedulerName};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{SchedBench, SchedError, SchedRow, Variability, Workload};

/// The scheduler with the least p99.9, by the simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// The scheduler; `None` if none can do the load.
    pub scheduler: Option<String>,
    /// Its 99.9th percentile in microseconds.
    pub expected_p999_us: Option<f64>,
    /// The scheduler with the second least; `None` if no other can do the load.
    pub runner_up: Option<String>,
    /// Its 99.9th percentile.
    pub runner_up_p999_us: Option<f64>,
    /// Why, in a sentence or two; why there is none, and a load that some scheduler can do.
    pub reason: String,
    /// Half of the interval of 95 % by the percentile.
    pub ci95: Option<f64>,
    /// What was simulated, the best first; those that cannot do the load last.
    pub considered: Vec<SchedRow>,
}

/// Why there is no advice.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum AdviceError {
    /// The service time is out of range.
    #[error("a service of {0:?}: between 10 ns and 10 ms are simulated")]
    Service(Duration),
    /// The simulation cannot be made.
    #[error(transparent)]
    Simulation(#[from] SchedError),
}

impl Advice {
    /// Checks what [`Advice::of`] would refuse.
    ///
    /// # Errors
    /// [`AdviceError`].
    pub fn check(
        bench: &SchedBench<'_>,
        (service, variability): (Duration, Variability),
        load: f64,
    ) -> Result<(), AdviceError> {
        Workload::with_mean(variability, service).ok_or(AdviceError::Service(service))?;
        Ok(SchedBench { loads: vec![load], ..bench.clone() }.check()?)
    }

    /// Asks the simulation which scheduler has the least p99.9 for a service of this mean time and variability. Of `bench`, workloads and
    /// loads do not count.
    ///
    /// # Errors
    /// [`AdviceError`].
    pub fn of(
        bench: &SchedBench<'_>,
        (service, variability): (Duration, Variability),
        load: f64,
    ) -> Result<Advice, AdviceError> {
        let workload =
            Workload::with_mean(variability, service).ok_or(AdviceError::Service(service))?;
        let bench = SchedBench { workloads: vec![workload], loads: vec![load], ..bench.clone() };
        let mut rows = bench.run_without_crossover()?;
        rows.sort_by(|a, b| {
            (a.saturated, a.p999_us)
                .partial_cmp(&(b.saturated, b.p999_us))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        let mut sound = rows.iter().filter(|row| !row.saturated);
        let (best, next) = (sound.next(), sound.next());
        Ok(Advice {
            scheduler: best.map(|row| row.scheduler.clone()),
            expected_p999_us: best.map(|row| row.p999_us),
            runner_up: next.map(|row| row.scheduler.clone()),
            runner_up_p999_us: next.map(|row| row.p999_us),
            reason: match best {
                Some(best) => reason(best, &rows, &bench),
                None => too_much(&rows, load),
            },
            ci95: best.and_then(|row| row.ci95),
            considered: rows,
        })
    }
}

/// Why no scheduler has the least p99.9, and a load that one can do.
fn too_much(rows: &[SchedRow], load: f64) -> String {
    let Some(most) = rows.iter().max_by(|a, b| a.capacity.total_cmp(&b.capacity)) else {
        return "no scheduler was simulated".to_owned();
    };
    let SchedRow { offered, scheduler, capacity, .. } = most;
    let possible = load * 0.95 * capacity / offered.max(1.0);
    format!(
        "no scheduler can do {offered:.0} requests per second: {scheduler} does most, {capacity:.0}; use more cores, or a load of at most \
         {possible:.2}"
    )
}

/// What the best scheduler does better than the others.
fn reason(best: &SchedRow, rows: &[SchedRow], bench: &SchedBench<'_>) -> String {
    let mut text = match best.scheduler.parse::<SchedulerName>() {
        Ok(SchedulerName::Inline(Queueing::Cfcfs)) => format!(
            "no request waits while a worker is idle, and a lock of {:.0} ns is little beside the work",
            bench.costs.lock_ns()
        ),
        Ok(SchedulerName::Inline(Queueing::Dfcfs)) => "workers share nothing, and locks or hand-offs would cost more than \
             requests wait for their worker"
            .to_owned(),
        Ok(SchedulerName::Inline(Queueing::Ws)) => {
            "idle workers take what waits for others, and most locks are taken by the worker that held them last".to_owned()
        }
        Ok(SchedulerName::Dispatcher(dispatcher)) => format!(
            "{} of {} cores run TCP, which the load leaves time for, and the others the application alone",
            dispatcher.split().dispatchers(),
            bench.cores
        ),
        Err(_) => String::new(),
    };
    let others = rows.iter().filter(|row| row.scheduler != best.scheduler);
    let by_name =
        |name: &str| rows.iter().find(|row| row.scheduler == name && name != best.scheduler);
    let mut compared: Vec<String> = Vec::new();
    for name in ["inline-cfcfs", "inline-dfcfs", "inline-ws"] {
        match by_name(name) {
            Some(row) if row.saturated => compared.push(format!("{name} cannot do it")),
            Some(row) => compared.push(format!("{name} has {} us", to_three_digits(row.p999_us))),
            None => {}
        }
    }
    let is_dispatcher = |row: &&SchedRow| row.scheduler.starts_with("dispatcher-");
    let dispatchers: Vec<&SchedRow> = others.filter(is_dispatcher).collect();
    match dispatchers.iter().find(|row| !row.saturated) {
        Some(row) => compared.push(format!(
            "{}, the best other dispatcher, {} us",
            row.scheduler,
            to_three_digits(row.p999_us)
        )),
        None if !dispatchers.is_empty() => {
            compared.push("no other dispatcher can do it".to_owned())
        }
        None => {}
    }
    if !compared.is_empty() {
        text += &format!("; beside {} us, {}", to_three_digits(best.p999_us), compared.join(", "));
    }
    let sure = rows.iter().filter(|row| !row.saturated).nth(1);
    if let (Some(own), Some(next)) = (best.ci95, sure)
        && next.p999_us * (1.0 - next.ci95.unwrap_or(0.0)) < best.p999_us * (1.0 + own)
    {
        text += &format!(". The difference to {} is within their intervals", next.scheduler);
    }
    text
}
