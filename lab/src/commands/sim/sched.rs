//! `rheo sim sched`: a service over TCP under each scheduler.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rheostat_base::unit::parse_duration;
use rheostat_measure::record::{Header, RowRecorder, TableRow};
use rheostat_tcp::sched::{Outstanding, SchedulerName};
use thiserror::Error;

use crate::commands::Failed;
use crate::commands::machine_costs::{CostsOption, UsedCosts};
use crate::costs::Costs;
use crate::record::RequestRow;
use crate::report::{ReportError, requests};
use crate::sim::sched::{
    CONNECTIONS, CostsSource, LOADS, RequestCosts, SchedBench, SchedRow, Workload,
};
use crate::testbed::threads;

/// A time of a lock that no lock takes.
#[derive(Debug, Error)]
#[error("--lock {0}: between 0 and 1000000 nanoseconds")]
pub(crate) struct LockTime(f64);

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo sim sched
  rheo sim sched --cores 16 --workload constant-1us --load 0.5,0.8
  rheo sim sched --scheduler inline-cfcfs,dispatcher-2:6-ws --lock 40
  rheo sim sched --costs thesis
  rheo sim sched --costs measured:my-costs.json --json > sched.jsonl
  rheo sim sched --workload bimodal-1 --ideals --output sched.html
  rheo sim sched --cores 2 --record requests.jsonl
  rheo sim sched --print-costs > my-costs.json

Requests arrive at random (Poisson) in an open loop, and pass packet delivery, TCP in, the application and TCP out on the
workers that a scheduler gives them to. Load 1 is what the cores could do if TCP and the application were all there is to do.
Times are from a request's arrival until its reply has left. Runs go on until half of the 95 % interval of p99.9 is at most
5 % of it (10 % after 12.8 million requests). Beyond a scheduler's capacity queues grow: `saturated` in JSON.
The cost of a lock decides which scheduler is best for short requests. At constant-1us the one is searched up to which no inline
scheduler is better than inline-cfcfs by more than 5 % of p99.9. docs/schedulers.md has the model, the fields of rows, and what comes of it.")]
pub(crate) struct Args {
    /// Cores, each with a worker.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    cores: u16,
    /// Schedulers, instead of all that use the cores: inline-cfcfs, inline-dfcfs, inline-ws, dispatcher-D:A, which may have -dfcfs
    /// or -ws behind it, and then +receive-cfcfs or +receive-ws. Those with +receive are simulated when they are named.
    #[arg(long = "scheduler", value_name = "NAME", value_delimiter = ',')]
    schedulers: Vec<SchedulerName>,
    /// Workloads, instead of those of the thesis, and constant-350ns, constant-3.5us and constant-35us beside them with measured
    /// costs: constant-TIME, exponential-TIME, bimodal-1, bimodal-2.
    #[arg(long = "workload", value_name = "NAME", value_delimiter = ',')]
    workloads: Vec<Workload>,
    /// Loads, each above 0 and at most 2.
    #[arg(long = "load", value_name = "SHARE", value_delimiter = ',', default_values_t = LOADS)]
    loads: Vec<f64>,
    #[command(flatten)]
    setup: SchedSetup,
    /// Simulate until p99.99 is known as well, with up to 64 million requests for a row.
    #[arg(long)]
    full: bool,
    /// Add what is possible without any cost of scheduling: one queue, and processor sharing.
    #[arg(long)]
    ideals: bool,
    /// Also add the rows, behind a header, to this file, which `rheo bench report` shows and compares.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Also write a page with charts.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the costs in the format of their file, and simulate nothing.
    #[arg(long)]
    print_costs: bool,
}

/// What `rheo sim sched` and `rheo advise` have in common.
#[derive(Debug, clap::Args)]
pub(crate) struct SchedSetup {
    /// What requests cost beside the application: `machine`, `thesis`, or `measured:FILE`. Those of this machine are measured at
    /// first use, in up to 20 s, and kept in costs.json in the cache folder.
    #[arg(long, value_name = "COSTS", default_value = "machine")]
    costs: CostsOption,
    /// Nanoseconds that a queue's lock takes whose last holder was another worker, instead of that of the costs; all locks
    /// and steals change in proportion.
    #[arg(long, value_name = "NS")]
    lock: Option<f64>,
    /// Connections for each worker that runs the application.
    #[arg(long, value_name = "N", default_value_t = CONNECTIONS)]
    connections: u32,
    /// Requests that are taken from a shared queue, or stolen, at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
    burst: u32,
    /// Requests that a member of a central queue may hold, the one in work included: 1 or 2.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    outstanding: u32,
    /// Idle workers sleep after this time; without it they never do.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    spin: Option<Duration>,
    /// Workers pause as lanes did on the machine whose costs come with rheostat.
    #[arg(long)]
    pauses: bool,
    /// Decides about requests.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl SchedSetup {
    /// The costs. Those of this machine may have to be measured first.
    pub(crate) fn costs(&self) -> Result<UsedCosts, Failed> {
        self.check_lock()?;
        let mut used = self.costs.open()?;
        used.costs = self.with_lock(used.costs);
        Ok(used)
    }

    /// The costs of the thesis, if they are not those of [`SchedSetup::costs`].
    pub(crate) fn thesis(&self) -> Option<RequestCosts> {
        let is_used = self.costs == CostsOption::Source(CostsSource::Thesis);
        (!is_used).then(|| self.with_lock(RequestCosts::thesis()))
    }

    fn with_lock(&self, costs: RequestCosts) -> RequestCosts {
        match self.lock {
            Some(lock) => costs.with_lock(lock),
            None => costs,
        }
    }

    pub(crate) fn check_lock(&self) -> Result<(), LockTime> {
        match self.lock {
            Some(lock) if !(0.0..=1e6).contains(&lock) => Err(LockTime(lock)),
            _ => Ok(()),
        }
    }

    /// The pauses, if there are any.
    pub(crate) fn machine(&self) -> Option<Costs> {
        self.pauses.then(Costs::built_in)
    }

    /// What is simulated by default, with these settings.
    pub(crate) fn bench<'a>(
        &self,
        cores: u16,
        costs: &'a RequestCosts,
        machine: Option<&'a Costs>,
    ) -> SchedBench<'a> {
        SchedBench {
            connections: self.connections,
            burst: self.burst,
            outstanding: Outstanding::new(self.outstanding).unwrap_or(Outstanding::ONE),
            spin: self.spin,
            noise: machine.map(|machine| &machine.noise),
            seed: self.seed,
            threads: threads(),
            ..SchedBench::new(cores, costs)
        }
    }
}

/// What the page states of loads and times.
pub(crate) const NOTE: &str = "Simulated. Load 1 is what the cores could do if TCP and the application were all there is to do. Times are \
                    from a request's arrival until its reply has left. Loads beyond a scheduler's capacity are left out.";

/// Simulates.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    args.setup.check_lock()?;
    let (unused, machine) = (RequestCosts::thesis(), args.setup.machine());
    let mut bench = args.setup.bench(args.cores, &unused, machine.as_ref());
    bench.schedulers.clone_from(&args.schedulers);
    let thesis = args.setup.thesis();
    if !args.workloads.is_empty() {
        bench.workloads.clone_from(&args.workloads);
    } else if thesis.is_some() {
        bench.workloads.extend(Workload::proportional());
    }
    bench.loads.clone_from(&args.loads);
    (bench.full, bench.ideals) = (args.full, args.ideals);
    // Before anything is measured.
    bench.check()?;
    let used = args.setup.costs()?;
    if args.print_costs {
        out!("{}", used.costs.to_text().trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    bench.costs = &used.costs;
    let header = Header::new(&crate::commands::BUILD);
    let mut recorder =
        args.record.as_deref().map(|path| RowRecorder::append(path, &header)).transpose()?;
    let begun = Instant::now();
    let rows = bench.run()?;
    if args.setup.json {
        err!("costs: {used}");
        for row in &rows {
            out!("{}", serde_json::to_string(row).expect("a row is plain data"));
        }
    } else {
        out!("simulated by rheo {}; costs: {used}", header.commit);
        out!("{}", SchedRow::heading());
        for row in &rows {
            out!("{}", row.line());
        }
        for verdict in SchedRow::verdicts(&rows) {
            out!("{verdict}");
        }
        if let Some(thesis) = &thesis {
            let others = SchedBench { costs: thesis, ..bench.clone() }.run()?;
            for verdict in SchedRow::other_verdicts(&rows, &others) {
                out!("with the thesis's costs, {verdict}");
            }
        }
    }
    report_speed(&rows, begun.elapsed());
    if let Some(recorder) = &mut recorder {
        rows.iter().try_for_each(|row| recorder.add(row))?;
    }
    if let Some(path) = &args.output {
        let rows: Vec<RequestRow> = rows.iter().map(RequestRow::from).collect();
        fs::write(path, requests::page(&header, NOTE, &rows))
            .map_err(|source| ReportError::Io { path: path.clone(), source })?;
        err!("charts in {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn report_speed(rows: &[SchedRow], time: Duration) {
    let requests: u64 = rows.iter().map(|row| row.requests).sum();
    err!(
        "{:.1} M requests of rows simulated in {:.1} s",
        requests as f64 / 1e6,
        time.as_secs_f64()
    );
}
