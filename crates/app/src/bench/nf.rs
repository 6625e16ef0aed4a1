//! `rheo bench nf`: what a chain of network functions costs per packet.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use rheostat_base::unit::parse_duration;
use rheostat_measure::memory::{FrameSize, Load, SourceKind};
use rheostat_measure::nf::{
    Callgrind, ChainKind, Control, Effort, Measuring, NfBench, Part, Processes, Row, SHARDS,
    Selection, Spec,
};
use rheostat_measure::{MeasureError, allocation};
use rheostat_traffic::Distribution;

use super::functions::{NfError, chains_of};
use super::rows::Rows;
use super::{SEED, flows, given, lanes, moves};
use crate::app::App;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # where this build stands, in four minutes
  rheo bench nf
  # the rows for which there are aims
  rheo bench nf --full
  # every combination
  rheo bench nf --all
  rheo bench nf --chain firewall --flows 1M --lanes 1,2 --spread uniform
  rheo bench nf --chain nat --flows 64k --source converse,replay
  rheo bench nf --chain firewall,nat --flows 64k --spread zipf --lanes 1 \\
    --instructions
  rheo bench nf --chain nat --flows 1M --lanes 1 --shards 1,8,128
  rheo bench nf --chain firewall --flows 1M --lanes 1 --measuring
  # registered functions in a row, and those of a configuration
  rheo bench nf --chain monitor+policer+firewall+nat --flows 64k --lanes 1
  rheo bench nf --config configs/nat.toml --flows 64k --lanes 1
  rheo bench nf --json > rows.json

A row's cost is what a packet takes above the harness: the same source and sink with nothing between
them. Every lane has a core of its own; leave the machine alone meanwhile. Figures are as observed. Windows in which
a processor was slow, or ran something else, are taken again; a row that has hardly any other is marked `slow` or
`preempted`, and a slow one has an estimate for a core that nothing shares beside it (docs/bench.md). Behind each row on several lanes stands its control: as many processes of one lane each,
with the same packets and at the same time. The row's ratio to it is the median of windows that are taken in turn.")]
pub(super) struct Args {
    /// What to measure: a chain that comes along, a registered function, or several in a row, such as monitor+firewall.
    #[arg(long = "chain", value_delimiter = ',', value_name = "CHAIN")]
    chains: Vec<String>,
    /// Measure the functions of this configuration between two devices from memory.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
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
    /// Numbers of shards, powers of two up to 512.
    #[arg(long, value_delimiter = ',', value_parser = shards)]
    shards: Vec<usize>,
    /// Say how long each stage of a lane takes: source, classify, probe, run, emit, sink. Costs some nanoseconds.
    #[arg(long)]
    stages: bool,
    /// Behind each row on several lanes of a chain that keeps flows in shards, measure it on lanes that own all shards together, as
    /// lanes that share a queue do.
    #[arg(long)]
    joint: bool,
    /// Behind each row, measure it with lanes that measure for latency objectives: waits of all packets, of classes, and the
    /// heaviest flows; each in turn with lanes that do not, which are there twice.
    #[arg(long)]
    measuring: bool,
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
    /// Have lanes measure this for latency objectives, or nothing, and packets stamped when they arrive.
    #[arg(long, hide = true, value_parser = measured())]
    measured: Option<Measuring>,
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

/// Measures.
pub(super) fn run(app: &App, args: &Args) -> Result<ExitCode, NfError> {
    let chains = chains_of(app, &args.chains, args.config.as_deref())?;
    Ok(measure(args, &chains)?)
}

fn measure(args: &Args, chains: &[ChainKind]) -> Result<ExitCode, MeasureError> {
    let (windows, packets) = (args.windows.into(), args.packets);
    let (window, requested) = (args.window, args.requested);
    let effort = Effort { windows, window, packets, requested, ..Effort::default() };
    let (control, stages) = (Control::default(), args.stages);
    let instructions = args.instructions.then(|| Callgrind::new(std::env::current_exe()?));
    let instructions = instructions.transpose()?;
    let processes = Some(Processes { rheo: std::env::current_exe()? });
    let measuring = args.measuring;
    let allocations = allocation::count;
    let bench =
        NfBench { effort, allocations, control, stages, instructions, processes, measuring };
    if requested {
        return answer(args, chains, &bench);
    }
    let specs = selection(args, chains);
    if packets.is_some() {
        for spec in &specs {
            out!("packets: {}", bench.pass(spec)?);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let printed = Rows::table::<Row>(&crate::BUILD, args.json);
    let mut done = 0;
    bench.run(&specs, |row| {
        done += usize::from(row.control.is_none());
        printed.print(row);
        if args.json && io::stderr().is_terminal() {
            err!("{done}/{} {}", specs.len(), row.name());
        }
    })?;
    if !args.json {
        out!("invariants ok in every row");
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures one row as another process requests it.
fn answer(args: &Args, chains: &[ChainKind], bench: &NfBench) -> Result<ExitCode, MeasureError> {
    // A process that was stopped does not see that the other one has ended.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(io::Error::from)?;
    if let Some(part) = args.part {
        let cores = rheostat_kernel::CoreSet::available()?;
        let own = cores.cores().get(part.lane);
        let lanes = (part.of, cores.cores().len());
        let core = own.ok_or(MeasureError::TooFewCores { lanes: lanes.0, cores: lanes.1 })?;
        rheostat_kernel::core_set::pin_current_thread(*core)?;
    }
    for spec in selection(args, chains) {
        bench.pass(&spec)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The rows to measure: the usual ones, unless the options select others.
fn selection(args: &Args, chains: &[ChainKind]) -> Vec<Spec> {
    let lanes = lanes(&args.lanes);
    let is_narrowed = !(chains.is_empty()
        && args.flows.is_empty()
        && args.spread.is_empty()
        && args.sizes.is_empty()
        && args.sources.is_empty()
        && args.shards.is_empty()
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
        chains: given(chains.to_vec(), &ChainKind::ALL, usize::MAX),
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
        shards: given(args.shards.clone(), &[SHARDS], 1),
        seed: SEED,
    };
    let specs = selection.specs().into_iter();
    let specs = specs.map(|spec| Spec { measuring: args.measured, ..spec });
    if args.requested {
        // One row, of which the caller runs the other.
        let load = |spec: &Spec| Load { joint_shards: args.joint, ..spec.load };
        return specs.map(|spec| Spec { part: args.part, load: load(&spec), ..spec }).collect();
    }
    let joint = |spec: &Spec| spec.with_joint_shards().filter(|_| args.joint);
    specs.flat_map(|spec| [Some(spec), joint(&spec)]).flatten().collect()
}

/// Reads what lanes measure.
fn measured() -> impl TypedValueParser<Value = Measuring> {
    PossibleValuesParser::new(Measuring::ALL.map(Measuring::name)).map(|name| {
        let named = Measuring::ALL.into_iter().find(|kind| kind.name() == name);
        named.expect("one of those there are")
    })
}

fn shards(text: &str) -> Result<usize, String> {
    let shards =
        text.parse().ok().filter(|shards: &usize| shards.is_power_of_two() && *shards <= 512);
    shards.ok_or_else(|| "a power of two up to 512".into())
}

fn part(text: &str) -> Result<Part, String> {
    let part = text
        .split_once('/')
        .and_then(|(lane, of)| Some(Part { lane: lane.parse().ok()?, of: of.parse().ok()? }));
    part.filter(|part| part.lane < part.of).ok_or_else(|| "such as 0/2".into())
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
