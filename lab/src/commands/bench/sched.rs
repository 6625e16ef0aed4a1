//! `rheo bench sched`: a service over TCP under each scheduler.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use rheostat_app::bench::{Rows, SEED, operations_of_roots};
use rheostat_base::unit::parse_duration;
use rheostat_load::ArrivalProcess;
use rheostat_measure::allocation;
use rheostat_measure::record::{Header, RowRecorder};
use rheostat_serve::work::WorkKind;
use rheostat_tcp::sched::{Outstanding, Queueing, SchedulerName};

use crate::commands::Failed;
use crate::commands::page_file::PageFile;
use crate::error::BenchError;
use crate::noise::Noise;
use crate::offered_load::OfferedLoad;
use crate::record::RequestRow;
use crate::report::{ReportError, requests};
use crate::sched::{
    Comparison, CostsEffort, RigWorkload, SchedBench, SchedBenchRow, measure_request_costs,
};
use crate::sim::sched::RequestCosts;
use crate::testbed::Cores;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo bench sched
  rheo bench sched --workload constant-1us,bimodal-1 --load 0.5,0.8
  rheo bench sched --workload null,constant-350ns,constant-3.5us,constant-35us \\
    --connections 1024 --json
  # what two measurements of the same differ by
  rheo bench sched --scheduler inline-dfcfs,inline-dfcfs
  # what `rheo sim sched --costs measured:costs.json` reads
  rheo bench sched --costs costs.json
  # the same in simulation, beside each row
  rheo bench sched --workload constant-1us --compare costs.json
  # where the time of requests goes, stage by stage
  rheo bench sched --workload bimodal-1 --times
  # the same as stacked bars, beside charts of latencies
  rheo bench sched --workload bimodal-1 --times --output sched.html
  # rows for `rheo bench report`
  rheo bench sched --workload constant-1us --record requests.jsonl
  rheo bench sched --rounds 5 --windows 4 --window 500ms \\
    --json > sched-bench.jsonl

The rig `pumped`: clients inside the process send requests of 128 bytes over TCP to a service on lanes of their own. In the open loop
each request has a moment at which it is due, whatever becomes of others; latency counts from it until the reply is transmitted.
Lanes do the clients' work, too: `client` is its time per request, at the capacity and at the load, and it is part of the
capacity. `ns/req` is what a request costs beside it and beside the application: the time of all workers. Load 1 is the
capacity of the first scheduler in the first round; a scheduler that cannot do a load is not measured at it. Schedulers are measured in
turn in each round. A percentile is the median of windows, of which each has at least ten requests beyond it. `95 %` is the interval of p99.9.
Leave the machine alone meanwhile; docs/schedulers.md has the fields of rows.")]
pub(super) struct Args {
    /// Schedulers; if none is given those that services of this build run with, of dispatchers those with a central queue.
    #[arg(long = "scheduler", value_name = "NAME", value_delimiter = ',')]
    schedulers: Vec<SchedulerName>,
    /// Workloads, instead of those of the thesis: null, constant-TIME, exponential-TIME, bimodal-1, bimodal-2.
    #[arg(long = "workload", value_name = "NAME", value_delimiter = ',')]
    workloads: Vec<RigWorkload>,
    /// Loads, each above 0 and at most 2.
    #[arg(long = "load", value_name = "SHARE", value_delimiter = ',', default_values_t = [0.2, 0.5, 0.7, 0.9])]
    loads: Vec<f64>,
    /// Workers of inline schedulers, each on a core of its own; as many as there are cores, and at most 2, if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: Option<u16>,
    /// Connections for each worker that runs the application.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=16_384))]
    connections: u32,
    /// Requests that a member of a central queue may hold: 1, or 2 to hide the hand-off.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    outstanding: u32,
    /// Packets that a worker takes at a time of a receive queue that others take from, too.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
    burst: u32,
    /// The gaps between requests: exponential, uniform, lognormal (or lognormal:SIGMA) or pareto (or pareto:SHAPE).
    #[arg(long, value_name = "NAME", default_value_t = ArrivalProcess::Exponential)]
    arrivals: ArrivalProcess,
    /// Rounds, in each of which schedulers are measured in turn.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Windows of each load in each round.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=100))]
    windows: u16,
    /// How long a window is.
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = window)]
    window: Duration,
    /// Requests under way in each receive queue while the capacity is measured.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    under_way: u32,
    /// Time the stages of requests, of one in 256 and of the slowest 1,000.
    #[arg(long)]
    times: bool,
    /// Simulate each row as well, with the costs of this file and the pauses of this machine.
    #[arg(long, value_name = "COSTS")]
    compare: Option<PathBuf>,
    /// Also add the rows, behind a header, to this file, which `rheo bench report` shows and compares.
    #[arg(long, value_name = "FILE", conflicts_with = "costs")]
    record: Option<PathBuf>,
    /// Also write a page with charts: with --times where the time of requests goes, and latencies over the load.
    #[arg(short, long, value_name = "FILE", conflicts_with = "costs")]
    output: Option<PathBuf>,
    /// Measure instead what a request costs, for `rheo sim sched --costs measured:FILE`, and write the file.
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Decides about requests.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

/// Measures.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    if let Some(path) = &args.costs {
        return measure_costs(path);
    }
    let cores = Cores::available().map_err(BenchError::from)?;
    let workers = args.workers.unwrap_or_else(|| cores.count().min(2) as u16);
    let workloads = match args.workloads.is_empty() {
        true => RigWorkload::thesis(),
        false => args.workloads.clone(),
    };
    let roots = workloads.iter().filter(|workload| workload.kind() == WorkKind::Roots);
    let targets: Vec<u64> = roots.flat_map(|workload| workload.times().targets()).collect();
    let schedulers = match args.schedulers.is_empty() {
        true => central(workers),
        false => args.schedulers.clone(),
    };
    let bench = SchedBench {
        schedulers,
        workloads,
        loads: args.loads.iter().map(|load| OfferedLoad::Share(*load)).collect(),
        operations: operations_of_roots(targets, Some(cores.first())),
        workers,
        connections: args.connections,
        outstanding: outstanding(args),
        burst: args.burst,
        arrivals: args.arrivals,
        rounds: args.rounds.into(),
        window: args.window,
        windows: args.windows.into(),
        under_way: args.under_way,
        times: args.times,
        comparison: args.compare.as_deref().map(|costs| comparison(args, costs)).transpose()?,
        seed: args.seed,
        allocations: allocation::count,
    };
    let header = Header::new(&crate::commands::BUILD);
    let page = args.output.as_deref().map(PageFile::create).transpose()?;
    let mut recorder =
        args.record.as_deref().map(|path| RowRecorder::append(path, &header)).transpose()?;
    let printed = Rows::table::<SchedBenchRow>(&crate::commands::BUILD, args.json);
    let mut recorded = Ok(());
    let mut rows = Vec::new();
    let result = bench.run(|row| {
        printed.print(row);
        rows.push(RequestRow::from(row));
        if let (Ok(()), Some(recorder)) = (&recorded, &mut recorder) {
            recorded = recorder.add(row);
        }
    });
    // What was measured until an error is kept.
    if let Some(page) = page {
        page.write(&requests::page(&header, NOTE, &rows))?;
    }
    result?;
    recorded?;
    Ok(ExitCode::SUCCESS)
}

/// What the page states of loads and times.
pub(crate) const NOTE: &str = "Load 1 is the capacity of the first scheduler in the first round. Times are from when a request was due until its \
                    reply was transmitted. Workers do the clients' work, too.";

/// How long each core is listened to for pauses.
const LISTENED: Duration = Duration::from_secs(2);

fn comparison(args: &Args, costs: &Path) -> Result<Comparison, Failed> {
    let costs = RequestCosts::open(costs)?;
    let noise = Noise::measure(LISTENED)?;
    let (outstanding, connections) = (outstanding(args), args.connections);
    Ok(Comparison { costs, noise, outstanding, burst: args.burst, connections })
}

fn outstanding(args: &Args) -> Outstanding {
    Outstanding::new(args.outstanding).unwrap_or(Outstanding::ONE)
}

/// Those that use so many workers, the default first, without dispatchers whose members have queues of their own.
fn central(workers: u16) -> Vec<SchedulerName> {
    let mut all = SchedulerName::all(workers);
    all.retain(|scheduler| match scheduler {
        SchedulerName::Inline(_) => true,
        SchedulerName::Dispatcher(dispatcher) => dispatcher.queueing() == Queueing::Cfcfs,
    });
    all.sort_by_key(|scheduler| *scheduler != SchedulerName::default());
    all
}

fn measure_costs(path: &Path) -> Result<ExitCode, Failed> {
    let costs = measure_request_costs(&crate::commands::BUILD, CostsEffort::THOROUGH, |step| {
        err!("{step}")
    })?;
    std::fs::write(path, costs.to_text())
        .map_err(|source| ReportError::Io { path: path.to_owned(), source })?;
    out!("{}", costs.about);
    for (what, cost) in [
        ("packet delivery and TCP in", &costs.tcp_in_ns),
        ("parsing", &costs.parse_ns),
        ("TCP out", &costs.tcp_out_ns),
        ("a poll, beside its requests", &costs.flush_ns),
        ("giving a request to a member, or taking its reply, k = 1", &costs.handoff_give_k1_ns),
        ("the same, k = 2", &costs.handoff_give_k2_ns),
        ("until the other side sees it", &costs.handoff_latency_ns),
        ("a packet of a shared queue, by the worker that took the last", &costs.queue_lock_free_ns),
        ("the same, by another", &costs.queue_lock_taken_ns),
        ("the same, while both take them all the time", &costs.queue_lock_contended_ns),
        ("a shared connection, by the worker that had it last", &costs.connection_lock_same_ns),
        ("the same, by another", &costs.connection_lock_other_ns),
        ("shared queues, beside locks", &costs.sharing_ns),
        ("a connection that comes from another worker", &costs.connection_move_ns),
        ("a worker woken", &costs.wake_ns),
    ] {
        out!("{what}: {:.0} ns", cost.mean_ns());
    }
    if let Some([least, greatest]) = costs.core_to_core_ns {
        out!("a line, from core to core: {least:.0} to {greatest:.0} ns");
    }
    out!("written to {}", path.display());
    Ok(ExitCode::SUCCESS)
}

fn window(text: &str) -> Result<Duration, String> {
    let window = parse_duration(text).map_err(|error| error.to_string())?;
    let possible = Duration::from_millis(1)..=Duration::from_secs(10);
    possible.contains(&window).then_some(window).ok_or_else(|| "between 1ms and 10s".into())
}
