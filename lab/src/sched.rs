//! `rheo bench sched`: a service over TCP under each scheduler, on the cores of this machine.
//!
//! The service is [`rheostat_serve::work`] on lanes of their own; its clients are inside the process (`rig`), in an open loop. For
//! each workload the schedulers are measured in turn, several rounds: first the capacity, in a closed loop, then latencies at each
//! load, which is a share of the capacity that the first scheduler had in the first round. All get the same requests.

mod comparison;
mod core_to_core;
mod error;
mod latencies;
mod lock_costs;
mod measurement;
mod members;
mod probe;
mod request_costs;
mod rig;
mod row;
mod service;
mod stage_times;
mod workload;

use std::time::Duration;

use rheostat_load::ArrivalProcess;
use rheostat_measure::confidence::Median;
use rheostat_measure::rounding::{to_tenths, to_thousandths};
use rheostat_serve::work::Operations;
use rheostat_tcp::sched::{Outstanding, Scheduler, SchedulerName};

pub use self::comparison::{Comparison, Simulated};
use self::core_to_core::{core_to_core_ns, first_two, range};
pub use self::error::SchedBenchError;
use self::latencies::SchedLatencies;
use self::measurement::{Capacity, Effort, measure_capacity, measure_open};
use self::members::application_workers;
pub use self::request_costs::{CostsEffort, measure_request_costs};
use self::rig::MOST_CLIENTS;
pub use self::row::SchedBenchRow;
use self::service::{RunningService, ServiceConfig, work};
pub use self::stage_times::{StageTime, StageTimes};
pub use self::workload::RigWorkload;
use crate::offered_load::OfferedLoad;
use crate::testbed::Cores;

/// A load is not measured from this share of the scheduler's own capacity on, and one of which less than this share is answered is
/// too much: its queue grows.
const SATURATED: f64 = 0.985;

/// Requests of a window at least, so that its p99.9 is known.
const REQUESTS: f64 = 11_000.0;
const LONGEST_WINDOW: Duration = Duration::from_millis(1_500);

/// What is measured: each workload under each scheduler at each load.
#[derive(Clone, Debug)]
pub struct SchedBench {
    /// Schedulers, measured in turn. One that is named twice shows what two measurements of the same differ by.
    pub schedulers: Vec<SchedulerName>,
    /// Workloads.
    pub workloads: Vec<RigWorkload>,
    /// Loads; shares are of the capacity of the first scheduler.
    pub loads: Vec<OfferedLoad>,
    /// How many operations take each time of the workloads.
    pub operations: Operations,
    /// Workers of inline schedulers.
    pub workers: u16,
    /// Connections for each worker that runs the application.
    pub connections: u32,
    /// Requests that a member of a central queue may hold.
    pub outstanding: Outstanding,
    /// Packets that a worker takes at a time of a receive queue that others take from, too.
    pub burst: u32,
    /// The gaps between requests.
    pub arrivals: ArrivalProcess,
    /// Rounds.
    pub rounds: u32,
    /// How long a window is, at least: it is made longer, up to 1.5 s, until it has 11,000 requests.
    pub window: Duration,
    /// Windows for each load and round.
    pub windows: u32,
    /// Requests under way in each receive queue while the capacity is measured.
    pub under_way: u32,
    /// Whether to time the stages of requests: then each load has a service of its own.
    pub times: bool,
    /// Simulates each row as well.
    pub comparison: Option<Comparison>,
    /// Decides about requests.
    pub seed: u64,
    /// The allocations of this process so far, all threads together.
    pub allocations: fn() -> u64,
}

/// What was measured of a scheduler under a workload.
struct SchedMeasurement {
    scheduler: Scheduler,
    connections: u32,
    capacities: Vec<Capacity>,
    /// What a line took between the first two workers' cores, before and behind each round.
    core_to_core_ns: Vec<f64>,
    /// By load.
    points: Vec<Point>,
}

/// What was measured at a load.
struct Point {
    offered: Vec<f64>,
    achieved: Vec<f64>,
    client_ns: Vec<f64>,
    sends: Vec<f64>,
    latencies: SchedLatencies,
    waited: u64,
    repeated: u64,
    is_saturated: bool,
    /// Of the last round.
    stages: Option<StageTimes>,
}

impl SchedBench {
    /// Measures. Rows are given to `on_row` as soon as their workload is measured.
    ///
    /// Takes for each workload, scheduler and round about half a second, the windows of the capacity, and those of each load and
    /// 0.1 s.
    ///
    /// # Errors
    /// [`SchedBenchError`] when a run cannot be made, or was not sound.
    pub fn run(&self, mut on_row: impl FnMut(&SchedBenchRow)) -> Result<(), SchedBenchError> {
        let schedulers = self.check()?;
        for workload in &self.workloads {
            let mut measured: Vec<SchedMeasurement> =
                schedulers.iter().map(|scheduler| self.unmeasured(*scheduler)).collect();
            let mut reference = None;
            for round in 0..self.rounds {
                for scheduler in &mut measured {
                    scheduler.core_to_core_ns.extend(between_workers(scheduler.scheduler)?);
                    self.measure(workload, round, &mut reference, scheduler)?;
                    scheduler.core_to_core_ns.extend(between_workers(scheduler.scheduler)?);
                }
            }
            for (place, load) in self.loads.iter().enumerate() {
                let load = share(*load, reference);
                let first = measured.first().map(|first| cost_ns(first).0);
                for (scheduler, name) in measured.iter().zip(&self.schedulers) {
                    let mut row = row(workload, load, place, scheduler, first.unwrap_or(0.0));
                    if let Some(comparison) = &self.comparison {
                        let window = self.window_at(row.offered);
                        row.simulated = comparison.simulate(&row, *name, workload, window)?;
                    }
                    on_row(&row);
                }
            }
        }
        Ok(())
    }

    fn unmeasured(&self, scheduler: Scheduler) -> SchedMeasurement {
        let point = |_: &OfferedLoad| Point {
            offered: Vec::new(),
            achieved: Vec::new(),
            client_ns: Vec::new(),
            sends: Vec::new(),
            latencies: SchedLatencies::default(),
            waited: 0,
            repeated: 0,
            is_saturated: false,
            stages: None,
        };
        SchedMeasurement {
            scheduler,
            connections: self.connections * application_workers(scheduler),
            capacities: Vec::new(),
            core_to_core_ns: Vec::new(),
            points: self.loads.iter().map(point).collect(),
        }
    }

    /// A round of a scheduler. `reference` is the capacity of which loads are shares.
    fn measure(
        &self,
        workload: &RigWorkload,
        round: u32,
        reference: &mut Option<f64>,
        measured: &mut SchedMeasurement,
    ) -> Result<(), SchedBenchError> {
        let Self { window, windows, under_way, .. } = *self;
        let effort = Effort { window, windows, under_way };
        let config = ServiceConfig {
            scheduler: measured.scheduler,
            connections: measured.connections,
            outstanding: self.outstanding,
            burst: self.burst,
            records_stages: false,
            is_timed: self.times,
        };
        let app = || work(workload, &self.operations);
        let mut service = RunningService::start(&config, app())?;
        let capacity = measure_capacity(&service, &effort, self.allocations)?;
        let rates = capacity.windows.iter().map(|window| window.capacity).collect();
        let own = Median::of(rates).value;
        measured.capacities.push(capacity);
        let reference = *reference.get_or_insert(own);
        let mut unrecorded = 0;
        for (load, point) in self.loads.iter().zip(&mut measured.points) {
            let rate = load.rate(reference);
            point.is_saturated |= rate >= SATURATED * own;
            if point.is_saturated {
                point.offered.push(rate);
                continue;
            }
            let seed = self.seed.wrapping_add(u64::from(round));
            if self.times {
                // What was timed so far is of other loads.
                service.stop(unrecorded)?;
                unrecorded = 0;
                service = RunningService::start(&config, app())?;
            }
            let effort = Effort { window: self.window_at(rate), ..effort };
            let run = measure_open(&service, &effort, self.arrivals, rate, seed);
            point.offered.push(run.offered);
            point.achieved.push(run.achieved);
            point.client_ns.push(run.client_ns);
            point.sends.push(run.sends);
            point.waited += run.waited;
            point.repeated += run.repeated;
            point.is_saturated |= run.unanswered > 0 || run.achieved < SATURATED * run.offered;
            point.latencies.add(&run);
            point.stages = service.request_times().map(|times| StageTimes::of(&times));
            unrecorded += run.unrecorded;
            if !run.is_drained {
                service.stop(unrecorded)?;
                unrecorded = 0;
                service = RunningService::start(&config, app())?;
            }
        }
        service.stop(unrecorded)
    }

    /// How long a window is at a rate.
    fn window_at(&self, rate: f64) -> Duration {
        let least = Duration::from_secs_f64(REQUESTS / rate.max(1.0)).min(LONGEST_WINDOW);
        self.window.max(least)
    }

    fn check(&self) -> Result<Vec<Scheduler>, SchedBenchError> {
        for load in &self.loads {
            match *load {
                OfferedLoad::Share(share) if !(share > 0.0 && share <= 2.0) => {
                    return Err(SchedBenchError::Load(share));
                }
                OfferedLoad::Rate(rate) if !(1.0..=1e9).contains(&rate) => {
                    return Err(SchedBenchError::Rate(rate));
                }
                OfferedLoad::Share(_) | OfferedLoad::Rate(_) => {}
            }
        }
        let cores = u16::try_from(Cores::available()?.count()).unwrap_or(u16::MAX);
        let mut schedulers = Vec::new();
        for scheduler in &self.schedulers {
            let scheduler = Scheduler::with_workers(*scheduler, self.workers, cores)?;
            let connections =
                u64::from(self.connections) * u64::from(application_workers(scheduler));
            if !(1..=u64::from(MOST_CLIENTS)).contains(&connections) {
                return Err(SchedBenchError::Connections(connections));
            }
            schedulers.push(scheduler);
        }
        Ok(schedulers)
    }
}

/// What a line takes between the cores of the first two workers, if there are two.
fn between_workers(scheduler: Scheduler) -> Result<Option<f64>, SchedBenchError> {
    let cores = first_two()?.filter(|_| scheduler.workers() >= 2);
    Ok(cores.map(core_to_core_ns).transpose()?)
}

/// A load as a row has it.
fn share(load: OfferedLoad, reference: Option<f64>) -> f64 {
    match (load, reference) {
        (OfferedLoad::Share(share), _) => share,
        (OfferedLoad::Rate(_), Some(capacity)) => to_thousandths(load.share(capacity)),
        (OfferedLoad::Rate(_), None) => 0.0,
    }
}

/// What a request costs beside the clients' and the application's work, and these two.
fn cost_ns(measured: &SchedMeasurement) -> (f64, f64, f64) {
    let windows = || measured.capacities.iter().flat_map(|capacity| &capacity.windows);
    let client = Median::of(windows().map(|window| window.client_ns).collect()).value;
    let capacity = Median::of(windows().map(|window| window.capacity).collect()).value;
    let took = measured.capacities.iter().map(|capacity| capacity.took_ns).collect();
    let took = Median::of(took).value;
    (f64::from(measured.scheduler.workers()) * 1e9 / capacity - client - took, client, took)
}

fn row(
    workload: &RigWorkload,
    load: f64,
    place: usize,
    measured: &SchedMeasurement,
    first_ns: f64,
) -> SchedBenchRow {
    let SchedMeasurement { scheduler, connections, capacities, core_to_core_ns, points } = measured;
    let point = &points[place];
    let windows = || capacities.iter().flat_map(|capacity| &capacity.windows);
    let of_windows = |of: fn(&measurement::CapacityWindow) -> f64| {
        Median::of(windows().map(of).collect::<Vec<_>>())
    };
    let capacity = of_windows(|window| window.capacity);
    let (ns_per_request, client_ns, took) = cost_ns(measured);
    let latencies = &point.latencies;
    let known = |time: Option<f64>| time.filter(|_| !point.is_saturated);
    let [short, long] = latencies
        .p999_of_classes_us()
        .map(|p999| p999.filter(|_| workload.has_classes() && !point.is_saturated));
    let median = |values: &[f64]| (!values.is_empty()).then(|| Median::of(values.to_vec()).value);
    SchedBenchRow {
        scheduler: scheduler.name().to_string(),
        workers: scheduler.workers(),
        rig: "pumped".into(),
        workload: workload.to_string(),
        connections: *connections,
        load,
        offered: median(&point.offered).unwrap_or(0.0).round(),
        achieved: median(&point.achieved).map(f64::round),
        capacity: capacity.value.round(),
        capacity_range: [capacity.low.round(), capacity.high.round()],
        ns_per_request: to_tenths(ns_per_request),
        above_first_ns: to_tenths(ns_per_request - first_ns),
        client_ns: [client_ns, median(&point.client_ns).unwrap_or(client_ns)].map(to_tenths),
        sends_per_reply: to_thousandths(
            median(&point.sends).unwrap_or_else(|| of_windows(|window| window.sends).value),
        ),
        service_ns: to_tenths(if latencies.count() > 0 { latencies.took_ns() } else { took }),
        p50_us: known(latencies.p50_us()),
        p99_us: known(latencies.p99_us()),
        p999_us: known(latencies.p999_us()),
        p9999_us: known(latencies.p9999_us()),
        p999_short_us: short,
        p999_long_us: long,
        ci95: known(latencies.ci95()),
        p999_range: latencies.p999_range_us().filter(|_| !point.is_saturated),
        saturated: point.is_saturated,
        waited: point.waited,
        repeated: point.repeated,
        requests: latencies.count(),
        allocations: of_windows(|window| window.allocations).value,
        stages: point.stages.clone(),
        core_to_core_ns: range(core_to_core_ns),
        simulated: None,
    }
}
