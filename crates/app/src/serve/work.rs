//! `rheo serve work`: its calibration, and what its requests took.

mod counts;

use std::fmt;
use std::thread;

use rheostat_base::{Clock, CoreId};
use rheostat_kernel::CoreSet;
use rheostat_kernel::core_set::pin_current_thread;
use rheostat_serve::registry::{
    Action, ApplicationError, ApplicationRegistration, ApplicationReport, MadeApplication, Making,
};
use rheostat_serve::work::calibration::{Calibration, TOLERANCE, calibrate, measure_again};
use rheostat_serve::work::{
    ClassTimes, Computation, Operations, Work, WorkConfig, WorkKind, WorkMonitor, application,
    buffer_bytes, program, wrong_buffer,
};
use serde::Serialize;

use self::counts::KeptCounts;

/// Counts operations anew, and prints them.
const CALIBRATE: Action = Action {
    flag: "calibrate",
    help: "Find how many operations take each service time, keep and print the counts, and end",
};

/// `work`, with counts of operations that are kept from one run to the next.
pub(super) fn registration() -> ApplicationRegistration {
    application(prepare).acting(CALIBRATE, run_calibration).register()
}

/// Calibrates anew, and prints what was found.
fn run_calibration(config: &WorkConfig, is_json: bool) -> Result<(), ApplicationError> {
    let work = config.work;
    let buffer = buffer_bytes(config).map_err(wrong_buffer)?;
    let cores = CoreSet::available().map_err(|error| ApplicationError(error.to_string()))?;
    let core = cores.cores().first().copied();
    let found = measure(work, buffer, config.service_time.targets(), core);
    let mut kept = KeptCounts::open();
    kept.put(work, buffer, &found);
    for calibration in &found {
        match is_json {
            true => out!("{}", row(work, calibration)),
            false => out!("{}", describe(work, calibration)),
        }
    }
    if let Err(error) = kept.save() {
        err!("warning: counts of operations are not kept: {error}");
    } else if !is_json {
        out!("kept in {}", kept.place());
    }
    warn(&found);
    Ok(())
}

/// The application, and what reports it; counts that are not kept yet are measured and kept.
fn prepare(config: &WorkConfig, making: &Making) -> Result<MadeApplication, ApplicationError> {
    let buffer = buffer_bytes(config).map_err(wrong_buffer)?;
    let cores = making.cores.clone();
    let found = kept_or_measured(
        config.work,
        buffer,
        config.service_time.targets(),
        cores.first().copied(),
    );
    let pairs = found.iter().map(|found| (found.target_ns, found.operations));
    let work = Work::new(config, Operations::new(pairs), buffer as usize, cores);
    let report = WorkReport {
        work: config.work,
        names: config.service_time.classes(),
        buffer,
        monitor: work.monitor(),
    };
    Ok(MadeApplication { program: program(work), report: Some(Box::new(report)) })
}

/// How many square roots take each time.
pub fn operations_of_roots(mut targets: Vec<u64>, core: Option<CoreId>) -> Operations {
    targets.sort_unstable();
    targets.dedup();
    let found = kept_or_measured(WorkKind::Roots, 0, targets, core);
    Operations::new(found.iter().map(|found| (found.target_ns, found.operations)))
}

/// The counts of these times, on `core`. If one is not kept yet, or a kept one takes another time now, all are measured and kept.
fn kept_or_measured(
    work: WorkKind,
    buffer: u64,
    targets: Vec<u64>,
    core: Option<CoreId>,
) -> Vec<Calibration> {
    let mut kept = KeptCounts::open();
    let earlier: Option<Vec<Calibration>> =
        targets.iter().map(|target| kept.get(work, buffer, *target)).collect();
    let mut found = match earlier {
        Some(earlier) => on_core(work, buffer, core, move |computation, clock| {
            earlier.iter().map(|found| measure_again(computation, clock, found)).collect()
        }),
        None => Vec::new(),
    };
    if let Some(changed) = found.iter().find(|found| !found.still_holds()) {
        tracing::info!(target: "serve", "{} now, and are counted anew", describe(work, changed));
    }
    if work != WorkKind::Null
        && (found.len() < targets.len() || !found.iter().all(Calibration::still_holds))
    {
        found = measure(work, buffer, targets, core);
        kept.put(work, buffer, &found);
        if let Err(error) = kept.save() {
            tracing::warn!(target: "serve", "counts of operations are not kept: {error}");
        }
        warn(&found);
    }
    for calibration in &found {
        tracing::info!(target: "serve", "{}, kept in {}", describe(work, calibration), kept.place());
    }
    found
}

/// Finds the counts of these times on `core`.
fn measure(
    work: WorkKind,
    buffer: u64,
    targets: Vec<u64>,
    core: Option<CoreId>,
) -> Vec<Calibration> {
    on_core(work, buffer, core, move |computation, clock| {
        targets.into_iter().map(|target| calibrate(computation, clock, target)).collect()
    })
}

/// Measures on a thread of its own, on `core`.
fn on_core(
    work: WorkKind,
    buffer: u64,
    core: Option<CoreId>,
    measure: impl FnOnce(&mut Computation, &Clock) -> Vec<Calibration> + Send + 'static,
) -> Vec<Calibration> {
    if work == WorkKind::Null {
        return Vec::new();
    }
    let measuring = thread::spawn(move || {
        // Refused, it is measured wherever the thread runs.
        let _ = core.map(pin_current_thread);
        measure(&mut Computation::new(work, buffer as usize, 1), &Clock::new())
    });
    measuring.join().unwrap_or_default()
}

fn describe(work: WorkKind, found: &Calibration) -> String {
    format!(
        "{work}: {} operations take {:.3} us (for {} us; 20 repetitions within {:.1} %)",
        found.operations,
        found.measured_ns / 1e3,
        found.target_ns as f64 / 1e3,
        found.spread * 100.0
    )
}

fn row(work: WorkKind, found: &Calibration) -> serde_json::Value {
    serde_json::json!({
        "work": work.to_string(),
        "target_ns": found.target_ns,
        "operations": found.operations,
        "measured_ns": found.measured_ns,
        "spread": found.spread,
    })
}

fn warn(found: &[Calibration]) {
    for calibration in found.iter().filter(|found| !found.holds()) {
        tracing::warn!(
            target: "serve",
            "for {} us, the count is not within {:.0} %: the machine is not quiet, or one operation takes longer; \
             `rheo serve work --calibrate` measures again",
            calibration.target_ns as f64 / 1e3,
            TOLERANCE * 100.0
        );
    }
}

/// What requests took, for the summary.
#[derive(Clone, Debug)]
struct WorkReport {
    work: WorkKind,
    names: Vec<String>,
    buffer: u64,
    monitor: WorkMonitor,
}

/// What requests took by the end.
#[derive(Debug, Serialize)]
struct WorkSummary {
    work: String,
    buffer_bytes: u64,
    classes: Vec<ClassSummary>,
}

#[derive(Debug, Serialize)]
struct ClassSummary {
    class: usize,
    name: String,
    requests: u64,
    target_ns: f64,
    mean_ns: f64,
    p50_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
}

impl ApplicationReport for WorkReport {
    fn text(&self) -> String {
        self.summary().to_string()
    }

    fn json(&self) -> String {
        serde_json::to_string(&self.summary()).expect("names and numbers")
    }
}

impl WorkReport {
    fn summary(&self) -> WorkSummary {
        let class = |times: ClassTimes| ClassSummary {
            class: times.class,
            name: self
                .names
                .get(times.class)
                .cloned()
                .unwrap_or_else(|| format!("class {}", times.class)),
            requests: times.requests,
            target_ns: times.target_ns,
            mean_ns: times.mean_ns,
            p50_ns: times.p50_ns,
            p99_ns: times.p99_ns,
            p999_ns: times.p999_ns,
        };
        WorkSummary {
            work: self.work.to_string(),
            buffer_bytes: self.buffer,
            classes: self.monitor.classes().into_iter().map(class).collect(),
        }
    }
}

impl fmt::Display for WorkSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for class in &self.classes {
            let us = |nanos: f64| nanos / 1e3;
            writeln!(
                f,
                "{:>24}  {} of {}: target {:.2} us, took {:.2} us on average, p50 {:.2}, p99 {:.2}, p99.9 {:.2}",
                self.work,
                class.requests,
                class.name,
                us(class.target_ns),
                us(class.mean_ns),
                us(class.p50_ns as f64),
                us(class.p99_ns as f64),
                us(class.p999_ns as f64)
            )?;
        }
        Ok(())
    }
}
