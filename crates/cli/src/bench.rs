//! `rheo bench`: measures, and compares measurements.

mod advice;
mod chain;
mod costs;
mod idle;
mod live;
mod offload;
mod polling;
mod pump;
mod report;
mod rows;
mod sampling;
mod scenario;
mod shared;
mod sharing;
mod solver;
mod throughput;
mod timers;
mod txn;
mod vacation;

use std::io::{self, IsTerminal};
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use rheostat_base::unit::{parse_count, parse_duration};
use rheostat_bench::ab::Comparison;
use rheostat_bench::error::BenchError;
use rheostat_bench::machine::Machine;
use rheostat_bench::memory::{FrameSize, Load, SourceKind};
use rheostat_bench::migrate::{DESCRIPTORS, MigrateBench};
use rheostat_bench::nf::{
    Callgrind, ChainKind, Control, Effort, NfBench, Part, Processes, Selection, Spec, Table,
};
use rheostat_traffic::Distribution;

use self::rows::Rows;
use crate::failure::Failure;

/// What everything random in a benchmark is drawn from, so that two runs see the same packets.
const SEED: u64 = 1;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Debug, Subcommand)]
enum Scenario {
    /// Measure what chains of network functions cost per packet, packets from memory.
    Nf(NfArgs),
    /// Compare policies on real lanes near full load: latency, drops, imbalance.
    Balance(scenario::Args),
    /// Run another scenario on real lanes.
    Run(scenario::Named),
    /// Find the highest rate without loss, or with little (RFC 2544).
    Throughput(throughput::Args),
    /// Measure what forwarding costs on real interfaces, the whole machine counted.
    Live(live::Args),
    /// Measure what a simulation has to know of this machine.
    Costs(costs::Args),
    /// Measure what it costs to share flow state between lanes, and to spray packets.
    Sharing(sharing::Args),
    /// Measure one receive queue that several workers empty, beside a queue for each and locked ones.
    Shared(shared::Args),
    /// Measure what transactions on shared objects cost, beside locks.
    Txn(txn::Args),
    /// Measure what it brings to follow the profiler's recipes.
    Advice(advice::Args),
    /// Measure what it costs to note why transactions were aborted.
    Profile(sampling::Args),
    /// Measure what a lane that is away for a while loses on the simulated NIC.
    Pump(pump::Args),
    /// Measure what polling policies cost, lose and delay, from no load to the full one.
    Polling(polling::Args),
    /// Compute on some cores, for `polling --beside`.
    #[command(hide = true)]
    Competitor(polling::CompetitorArgs),
    /// Measure what balancing costs while there is nothing to balance.
    Idle(idle::Args),
    /// Compare Metronome's models with what threads do, and simulate what needs more cores.
    Vacation(vacation::Args),
    /// Measure what Dyssect's optimisation models take, and how good their answers are.
    Solver(solver::Args),
    /// Count what becomes of packets while flows leave their lanes and come home, and measure what that costs.
    Offload(offload::Args),
    /// Measure what deadlines of connections cost: to arm, to move, to expire.
    Timers(timers::Args),
    /// Run two benchmark commands in turn and print their ratios.
    Ab(AbArgs),
    /// Write a page about results, or compare two of them.
    Report(report::Args),
    /// Move shards between lanes under load, and look for packets lost, doubled or out of order.
    Migrate(MigrateArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo bench migrate
  rheo bench migrate --migrations 2M --rate 1M --lanes 8 --json

The firewall runs on the synthetic mix from a simulated NIC. Lost and doubled packets are found in what
leaves, not from the lanes' counters. `lost` are those that no counter explains; packets that full queues and rings
dropped, because more arrived than the lanes can process, are counted by reason in `dropped`. The exit status is 1 when a packet was
lost, doubled, overtaken or late, and 2 when an invariant broke or the run could not be made.")]
struct MigrateArgs {
    /// How many shards to move.
    #[arg(long, default_value = "200k", value_name = "N", value_parser = moves)]
    migrations: u64,
    /// Between how many lanes.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=64))]
    lanes: u16,
    /// Packets that arrive per second.
    #[arg(long, default_value = "500k", value_name = "N", value_parser = moves)]
    rate: u64,
    /// Decides about the packets, and which shards move where.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Give up after this long.
    #[arg(long, default_value = "55s", value_parser = parse_duration)]
    limit: Duration,
    /// Take every N-th packet away where it leaves, to see that it is noticed.
    #[arg(long, hide = true, value_name = "N")]
    sabotage: Option<NonZeroU32>,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo bench nf                                        where this build stands, in four minutes
  rheo bench nf --full                                 the rows for which there are aims
  rheo bench nf --all                                  every combination
  rheo bench nf --chain firewall --flows 1M --lanes 1,2 --spread uniform
  rheo bench nf --chain nat --flows 64k --source converse,replay
  rheo bench nf --chain firewall,nat --flows 64k --spread zipf --lanes 1 --instructions
  rheo bench nf --json > rows.json

A row's cost is what a packet takes above the harness: the same source and sink with nothing between
them. Every lane has a core of its own; leave the machine alone meanwhile. Virtual processors change their
speed: windows in which one was slow are taken again, and a row that has hardly any other is marked `slow` and scaled
to the speed of a core of its own. Behind each row on several lanes stands its control: as many processes of one lane each,
with the same packets and at the same time. The row's ratio to it is the median of windows that are taken in turn.")]
struct NfArgs {
    /// What to measure.
    #[arg(long = "chain", value_delimiter = ',', value_parser = chain::parser())]
    chains: Vec<ChainKind>,
    /// Flows that are open throughout, such as 64k,1M,10M.
    #[arg(long, value_delimiter = ',', value_parser = flows)]
    flows: Vec<u32>,
    /// How packets are spread over flows: uniform, zipf, or zipf-EXPONENT.
    #[arg(long, value_delimiter = ',', value_parser = spread)]
    spread: Vec<Distribution>,
    /// Packet sizes.
    #[arg(long = "size", value_enum, value_delimiter = ',')]
    sizes: Vec<SizeName>,
    /// Where packets come from: written anew as they are requested, or copied from memory.
    #[arg(long = "source", value_enum, value_delimiter = ',')]
    sources: Vec<SourceName>,
    /// Shares of packets that open a flow, between 0 and 0.2; with any, packets are written anew.
    #[arg(long = "new", value_name = "SHARE", value_delimiter = ',', value_parser = share)]
    new_flow_shares: Vec<f64>,
    /// Numbers of lanes; one and two where there are two cores.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=64))]
    lanes: Vec<u16>,
    /// Say how long each stage of a lane takes: source, classify, probe, run, emit, sink. Costs some nanoseconds.
    #[arg(long)]
    stages: bool,
    /// Behind each row on several lanes of a chain that keeps flows in shards, measure it on lanes that own all shards together, as
    /// lanes that share a queue do.
    #[arg(long)]
    joint: bool,
    /// Count instructions per packet, too, by callgrind. Needs valgrind, and about a minute more per row with 64k flows, 20 s
    /// with 1k.
    #[arg(long)]
    instructions: bool,
    /// Pass this many packets in each row and print how many passed, as `--instructions` has it done.
    #[arg(long, hide = true, value_name = "N", value_parser = moves, conflicts_with_all = ["instructions", "stages", "json"])]
    packets: Option<u64>,
    /// Take windows as lines on standard input request them, as rows on several lanes have it done.
    #[arg(long, hide = true, conflicts_with_all = ["instructions", "stages", "json", "packets"])]
    requested: bool,
    /// On one lane, have the packets of this lane of so many, on its core.
    #[arg(long, hide = true, value_name = "LANE/LANES", value_parser = part, requires = "requested")]
    part: Option<Part>,
    /// All rows for which there are aims; takes an hour.
    #[arg(long, conflicts_with = "all")]
    full: bool,
    /// Every combination of what is not given.
    #[arg(long)]
    all: bool,
    /// Windows measured per row; the median counts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    windows: u16,
    /// The length of a window.
    #[arg(long, default_value = "200ms", value_parser = parse_duration)]
    window: Duration,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo bench ab --a './rheo-before bench nf --flows 1M --lanes 1 --json' \\
                --b './rheo-after  bench nf --flows 1M --lanes 1 --json'
  rheo bench ab --rounds 9 --a 'rheo bench nf --lanes 1 --json' --b 'rheo bench nf --lanes 2 --json'")]
struct AbArgs {
    /// The first command line; it must print rows as JSON.
    #[arg(long, value_name = "COMMAND")]
    a: String,
    /// The second command line.
    #[arg(long, value_name = "COMMAND")]
    b: String,
    /// How often each is run.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Print ratios as lines of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SizeName {
    /// 64 bytes on the wire.
    #[value(name = "64")]
    Smallest,
    /// The same with a VLAN tag.
    Vlan,
    /// The smallest of TCP over IPv6 with data, 84 bytes on the wire.
    Ipv6,
    /// The sizes and protocols of the synthetic internet mix.
    Mix,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SourceName {
    /// Headers, sequence numbers and checksums are written for each packet.
    Converse,
    /// Headers are copied from memory, the same in each round.
    Replay,
}

/// Measures or compares.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.scenario {
        Scenario::Nf(args) => nf(args),
        Scenario::Balance(args) => scenario::run("balance", args),
        Scenario::Run(named) => scenario::run(&named.scenario, &named.args),
        Scenario::Throughput(args) => throughput::run(args),
        Scenario::Live(args) => live::run(args),
        Scenario::Costs(args) => costs::run(args),
        Scenario::Sharing(args) => sharing::run(args),
        Scenario::Shared(args) => shared::run(args),
        Scenario::Txn(args) => txn::run(args),
        Scenario::Advice(args) => advice::run(args),
        Scenario::Profile(args) => sampling::run(args),
        Scenario::Pump(args) => pump::run(args),
        Scenario::Polling(args) => polling::run(args),
        Scenario::Competitor(args) => polling::compete_with_lanes(args),
        Scenario::Idle(args) => idle::run(args),
        Scenario::Vacation(args) => vacation::run(args),
        Scenario::Solver(args) => solver::run(args),
        Scenario::Offload(args) => offload::run(args),
        Scenario::Timers(args) => timers::run(args),
        Scenario::Ab(args) => ab(args),
        Scenario::Report(args) => report::run(args),
        Scenario::Migrate(args) => migrate(args),
    }
}

fn nf(args: &NfArgs) -> Result<ExitCode, Failure> {
    let (windows, packets) = (args.windows.into(), args.packets);
    let (window, requested) = (args.window, args.requested);
    let effort = Effort { windows, window, packets, requested, ..Effort::default() };
    let (control, stages) = (Control::default(), args.stages);
    let instructions = args.instructions.then(|| Callgrind::new(std::env::current_exe()?));
    let instructions = instructions.transpose()?;
    let processes = Some(Processes { rheo: std::env::current_exe()? });
    let bench = NfBench { effort, allocations, control, stages, instructions, processes };
    if requested {
        return answer(args, &bench);
    }
    let specs = selection(args);
    if packets.is_some() {
        for spec in &specs {
            out!("packets: {}", bench.pass(spec)?);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let printed = Rows::begin(args.json, &Table::heading());
    let mut done = 0;
    bench.run(&specs, |row| {
        done += usize::from(row.control.is_none());
        printed.print(row, Table::line(row));
        if args.json && io::stderr().is_terminal() {
            eprintln!("{done}/{} {}", specs.len(), row.name());
        }
    })?;
    if !args.json {
        out!("invariants ok in every row");
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures one row as another process requests it.
fn answer(args: &NfArgs, bench: &NfBench) -> Result<ExitCode, Failure> {
    // A process that was stopped does not see that the other one has ended.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(io::Error::from)?;
    if let Some(part) = args.part {
        let cores = rheostat_base::CoreSet::available()?;
        let own = cores.cores().get(part.lane);
        let lanes = (part.of, cores.cores().len());
        let core = own.ok_or(BenchError::TooFewCores { lanes: lanes.0, cores: lanes.1 })?;
        rheostat_base::core_set::pin_current_thread(*core)?;
    }
    for spec in selection(args) {
        bench.pass(&spec)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The rows to measure: the usual ones, unless the options select others.
fn selection(args: &NfArgs) -> Vec<Spec> {
    let lanes = lanes(&args.lanes);
    let is_narrowed = !(args.chains.is_empty()
        && args.flows.is_empty()
        && args.spread.is_empty()
        && args.sizes.is_empty()
        && args.sources.is_empty()
        && args.new_flow_shares.is_empty());
    if !is_narrowed && !args.all {
        return if args.full { Selection::full } else { Selection::usual }(SEED, &lanes);
    }
    let sizes = args.sizes.iter().map(|size| match size {
        SizeName::Smallest => FrameSize::Smallest,
        SizeName::Vlan => FrameSize::Tagged,
        SizeName::Ipv6 => FrameSize::Ipv6,
        SizeName::Mix => FrameSize::Mix,
    });
    let sources = args.sources.iter().map(|source| match source {
        SourceName::Converse => SourceKind::Converse,
        SourceName::Replay => SourceKind::Replay,
    });
    // What is not given: everything with --all, else the first.
    let or = |all: bool| if all { usize::MAX } else { 1 };
    let selection = Selection {
        chains: given(args.chains.clone(), &ChainKind::ALL, usize::MAX),
        flows: given(args.flows.clone(), &[64_000, 1_000_000, 10_000_000], usize::MAX),
        distributions: given(
            args.spread.clone(),
            &[Distribution::Zipf(1.1), Distribution::Uniform],
            usize::MAX,
        ),
        sizes: given(
            sizes.collect(),
            &[FrameSize::Smallest, FrameSize::Tagged, FrameSize::Ipv6, FrameSize::Mix],
            or(args.all),
        ),
        sources: given(
            sources.collect(),
            &[SourceKind::Converse, SourceKind::Replay],
            or(args.all),
        ),
        new_flow_shares: given(args.new_flow_shares.clone(), &[0.0, 0.01, 0.1], or(args.all)),
        lanes,
        seed: SEED,
    };
    let specs = selection.specs().into_iter();
    if args.requested {
        // One row, of which the caller runs the other.
        let load = |spec: &Spec| Load { joint_shards: args.joint, ..spec.load };
        return specs.map(|spec| Spec { part: args.part, load: load(&spec), ..spec }).collect();
    }
    let joint = |spec: &Spec| spec.with_joint_shards().filter(|_| args.joint);
    specs.flat_map(|spec| [Some(spec), joint(&spec)]).flatten().collect()
}

/// The numbers of lanes: one and two as far as there are cores, unless the options select others.
fn lanes(asked: &[u16]) -> Vec<usize> {
    let cores = rheostat_base::CoreSet::available().map_or(1, |set| set.cores().len());
    match asked {
        [] => [1, 2].into_iter().filter(|&lanes| lanes <= cores).collect(),
        lanes => lanes.iter().map(|&lanes| lanes.into()).collect(),
    }
}

fn given<T: Copy>(given: Vec<T>, default: &[T], most: usize) -> Vec<T> {
    if given.is_empty() { default.iter().copied().take(most).collect() } else { given }
}

fn ab(args: &AbArgs) -> Result<ExitCode, Failure> {
    let comparison =
        Comparison { a: args.a.clone(), b: args.b.clone(), rounds: args.rounds.into() };
    let ratios = comparison.run(|round, command| {
        if io::stderr().is_terminal() {
            eprintln!("round {} of {}: {command}", round + 1, args.rounds);
        }
    })?;
    if !args.json {
        out!("{}", Machine::this());
        out!("A: {}\nB: {}\n{} rounds, medians:", args.a, args.b, args.rounds);
    }
    for ratio in ratios {
        if args.json {
            out!("{}", serde_json::to_string(&ratio).expect("a ratio is plain data"));
        } else {
            out!("{ratio}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn migrate(args: &MigrateArgs) -> Result<ExitCode, Failure> {
    let &MigrateArgs { migrations, lanes, rate, seed, limit, sabotage, json } = args;
    let bench = MigrateBench {
        migrations,
        lanes,
        packets_per_second: rate,
        seed,
        descriptors: DESCRIPTORS,
        limit,
        sabotage,
    };
    let row = bench.run()?;
    if json {
        out!("{}", serde_json::to_string(&row).expect("a row is plain data"));
    } else {
        out!("{}\n{row}", Machine::this());
    }
    Ok(if row.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Calls of the allocator by this process so far.
fn allocations() -> u64 {
    let stats = crate::ALLOCATOR.stats();
    (stats.allocations + stats.reallocations) as u64
}

fn part(text: &str) -> Result<Part, String> {
    let part = text
        .split_once('/')
        .and_then(|(lane, of)| Some(Part { lane: lane.parse().ok()?, of: of.parse().ok()? }));
    part.filter(|part| part.lane < part.of).ok_or_else(|| "such as 0/2".into())
}

fn moves(text: &str) -> Result<u64, String> {
    let count = parse_count(text).map_err(|error| error.to_string())?;
    if count == 0 { Err("at least 1".into()) } else { Ok(count) }
}

fn flows(text: &str) -> Result<u32, String> {
    let count = parse_count(text).map_err(|error| error.to_string())?;
    u32::try_from(count)
        .ok()
        .filter(|count| (1_000..=100_000_000).contains(count))
        .ok_or_else(|| "between 1k and 100M flows".into())
}

fn spread(text: &str) -> Result<Distribution, String> {
    let exponent = |text: &str| text.parse::<f64>().ok().filter(|e| (0.1..=10.0).contains(e));
    match text {
        "uniform" => Ok(Distribution::Uniform),
        "zipf" => Ok(Distribution::Zipf(1.1)),
        _ => text
            .strip_prefix("zipf-")
            .and_then(exponent)
            .map(Distribution::Zipf)
            .ok_or_else(|| "uniform, zipf, or zipf- with an exponent between 0.1 and 10".into()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=0.2).contains(share));
    share.ok_or_else(|| "a share between 0 and 0.2".into())
}
