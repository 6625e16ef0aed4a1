//! `rheo serve work`: its flags, its calibration, and what its requests took.

mod counts;

use std::process::ExitCode;
use std::{fmt, thread};

use clap::{ArgMatches, Args, Command, FromArgMatches};
use rheostat_base::core_set::pin_current_thread;
use rheostat_base::{Clock, CoreId, CoreSet, Topology};
use rheostat_serve::work::buffer::BufferError;
use rheostat_serve::work::calibration::{Calibration, TOLERANCE, calibrate, measure_again};
use rheostat_serve::work::{
    BufferSize, ClassTimes, Computation, Operations, ServiceTimes, Work, WorkConfig, WorkKind,
    WorkMonitor,
};
use serde::Serialize;

use self::counts::KeptCounts;
use super::{CommonArgs, Error};

/// The flags of `rheo serve work`. What other services require is not needed to calibrate.
#[derive(Debug)]
pub(super) struct WorkArgs {
    pub(super) flags: WorkFlags,
    json: bool,
    /// `None` with `--calibrate`.
    pub(super) common: Option<CommonArgs>,
}

#[derive(Debug, clap::Args)]
pub(super) struct WorkFlags {
    /// What the time is spent on: roots (square roots), strided (reads 63 bytes apart), random, stream, chase (reads that wait
    /// for each other) or null.
    #[arg(long, value_name = "NAME", default_value_t = WorkKind::Roots)]
    pub(super) work: WorkKind,
    /// How long requests take: 10us, bimodal-1 (99.5 % 1us, 0.5 % 100us), bimodal-2 (half each), exponential:MEAN,
    /// lognormal:MEAN, lognormal:MEAN:SIGMA, or SHARE:TIME,...
    #[arg(long, value_name = "TIMES", default_value_t = ServiceTimes::constant(1_000))]
    pub(super) service: ServiceTimes,
    /// The private buffer of each worker that work reads: a share of the last-level cache, or a size.
    #[arg(long, value_name = "SHARE|SIZE", default_value = "80%")]
    pub(super) buffer: String,
    /// Find how many operations take each service time, keep and print the counts, and end.
    #[arg(long)]
    calibrate: bool,
}

impl Args for WorkArgs {
    fn augment_args(command: Command) -> Command {
        let mut command = CommonArgs::augment_args(WorkFlags::augment_args(command));
        for id in ["device", "address", "port"] {
            command =
                command.mut_arg(id, |arg| arg.required(false).required_unless_present("calibrate"));
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        WorkArgs::augment_args(command)
    }
}

impl FromArgMatches for WorkArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<WorkArgs, clap::Error> {
        let flags = WorkFlags::from_arg_matches(matches)?;
        let common = (!flags.calibrate).then(|| CommonArgs::from_arg_matches(matches));
        Ok(WorkArgs { json: matches.get_flag("json"), common: common.transpose()?, flags })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = WorkArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Calibrates anew, and prints what was found.
pub(super) fn run_calibration(args: &WorkArgs) -> Result<ExitCode, Error> {
    let WorkFlags { work, service, buffer, .. } = &args.flags;
    let config = WorkConfig { kind: *work, times: service.clone(), buffer: buffer.parse()? };
    let buffer = buffer_bytes(&config)?;
    let core = CoreSet::available()?.cores().first().copied();
    let found = measure(*work, buffer, config.times.targets(), core);
    let mut kept = KeptCounts::open();
    kept.put(*work, buffer, &found);
    for calibration in &found {
        match args.json {
            true => out!("{}", row(*work, calibration)),
            false => out!("{}", describe(*work, calibration)),
        }
    }
    if let Err(error) = kept.save() {
        err!("warning: counts of operations are not kept: {error}");
    } else if !args.json {
        out!("kept in {}", kept.place());
    }
    warn(&found);
    Ok(ExitCode::SUCCESS)
}

/// The application, and what reports it; counts that are not kept yet are measured and kept.
pub(super) fn prepare(
    config: &WorkConfig,
    cores: Vec<CoreId>,
) -> Result<(Work, WorkReport), BufferError> {
    let buffer = buffer_bytes(config)?;
    let found =
        kept_or_measured(config.kind, buffer, config.times.targets(), cores.first().copied());
    let pairs = found.iter().map(|found| (found.target_ns, found.operations));
    let work = Work::new(config, Operations::new(pairs), buffer as usize, cores);
    let report = WorkReport {
        work: config.kind,
        names: config.times.classes(),
        buffer,
        monitor: work.monitor(),
    };
    Ok((work, report))
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
        err!("{} now, and are counted anew", describe(work, changed));
    }
    if work != WorkKind::Null
        && (found.len() < targets.len() || !found.iter().all(Calibration::still_holds))
    {
        found = measure(work, buffer, targets, core);
        kept.put(work, buffer, &found);
        if let Err(error) = kept.save() {
            err!("warning: counts of operations are not kept: {error}");
        }
        warn(&found);
    }
    for calibration in &found {
        err!("{}, kept in {}", describe(work, calibration), kept.place());
    }
    found
}

/// Bytes of a worker's buffer; none for work that reads none.
///
/// # Errors
/// [`BufferError`] when the buffer is impossible here.
pub(crate) fn buffer_bytes(config: &WorkConfig) -> Result<u64, BufferError> {
    if !config.kind.reads_memory() {
        return Ok(0);
    }
    let cache = match config.buffer {
        BufferSize::Share(_) => Topology::of_this_machine().last_level_cache(),
        BufferSize::Bytes(_) => None,
    };
    config.buffer.bytes(cache)
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
        err!(
            "warning: for {} us, the count is not within {:.0} %: the machine is not quiet, or one operation takes longer; \
             `rheo serve work --calibrate` measures again",
            calibration.target_ns as f64 / 1e3,
            TOLERANCE * 100.0
        );
    }
}

/// What requests took, for the summary.
#[derive(Clone, Debug)]
pub(super) struct WorkReport {
    work: WorkKind,
    names: Vec<String>,
    buffer: u64,
    monitor: WorkMonitor,
}

/// What requests took by the end.
#[derive(Debug, Serialize)]
pub(super) struct WorkSummary {
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

impl WorkReport {
    pub(super) fn summary(&self) -> WorkSummary {
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
