//! `rheo bench polling`: what polling policies cost, lose and delay.

use std::process::ExitCode;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use rheostat_app::bench::{Rows, SEED};
use rheostat_base::CoreId;
use rheostat_base::unit::parse_duration;
use rheostat_measure::record::TableRow;
use serde_json::json;

use crate::commands::Failed;
use crate::polling::{PolicyUnderTest, PollingBench, PollingChain, PollingRow, aims, compete};

/// A sleep beyond this is none between polls.
const TARGETS: std::ops::RangeInclusive<Duration> =
    Duration::from_micros(1)..=Duration::from_millis(100);
/// Where the shortest trial leaves a policy time to settle.
const WINDOWS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(20)..=Duration::from_secs(60);

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # all policies, from no load to the full one
  rheo bench polling
  rheo bench polling --policy busy,metronome --load 0,0.5,0.95 --target 100us
  rheo bench polling --policy metronome --load 0 --target 10us,15us --workers 2
  rheo bench polling --chain firewall,monitor,busy-1us --policy busy,metronome
  rheo bench polling --policy busy,metronome --load 0.5 --beside nice:19,nice:0
  rheo bench polling --json > rows.json

Packets of 64 bytes arrive at random (Poisson) at a simulated NIC that needs no core of its own. A load of 1 is what
busy polling delivers at most, measured at the start. `CPU` is the processor time of all workers by the threads' own
clocks ÷ (wall clock × lanes); the part of the source, a packet's cost on its way from the device measured alone,
is taken off and stated as `source`. Latency counts from the moment a packet is due. busy and busy-again are the same:
what they differ by is chance. metronome shares lanes among all workers and aims at a mean vacation of --target;
metronome-p99 at a latency of --latency for 99 of 100 packets; step-sleep sleeps a microsecond longer after each poll of
fewer than 16 packets, at most --target; metronome-equal aims at the p99 of step-sleep.
Without load, metronome has two rows: between polls (mode metronome) and once lanes wait for an interrupt. --beside runs a program of its own that computes on the cores of the workers; against a
nice value above 0 workers get -20 where the process may.")]
pub(super) struct Args {
    /// What to measure; busy polling runs twice.
    #[arg(long = "policy", value_delimiter = ',', value_parser = policies(),
          default_value = "busy,metronome,metronome-p99,interrupt,step-sleep,metronome-equal")]
    policies: Vec<PolicyUnderTest>,
    /// Loads, as shares of what busy polling can do.
    #[arg(long = "load", value_delimiter = ',', value_parser = load,
          default_value = "0,0.05,0.2,0.5,0.8,0.95,1")]
    loads: Vec<f64>,
    /// Target vacations of metronome, and the longest sleep of step-sleep.
    #[arg(long = "target", value_delimiter = ',', default_value = "10us", value_parser = target)]
    targets: Vec<Duration>,
    /// The target latency of metronome-p99.
    #[arg(long, default_value = "100us", value_parser = target)]
    latency: Duration,
    /// Workers of metronome; other policies have as many as lanes at most. As many as lanes without it.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: Option<u16>,
    /// Lanes, each with a core of its own where it is polled without a pause.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    lanes: u16,
    /// What lanes do with a packet.
    #[arg(long = "chain", value_delimiter = ',', value_parser = chains(), default_value = "forward")]
    chains: Vec<PollingChain>,
    /// Run a program beside on the same cores, at this nice value, such as nice:19.
    #[arg(long, value_delimiter = ',', value_parser = nice, value_name = "nice:N")]
    beside: Vec<i8>,
    /// What is not measured at the start of a trial.
    #[arg(long, default_value = "300ms", value_parser = window)]
    warm_up: Duration,
    /// What is measured of a trial; less at rates of millions of packets.
    #[arg(long, default_value = "1.5s", value_parser = window)]
    window: Duration,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

/// The program that `--beside` runs.
#[derive(Debug, clap::Args)]
pub(super) struct CompetitorArgs {
    /// The cores to compute on.
    #[arg(long, value_delimiter = ',', required = true)]
    cores: Vec<u16>,
    /// The nice value.
    #[arg(long, allow_negative_numbers = true)]
    nice: i8,
}

/// Measures.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let printed = Rows::begin(&crate::commands::BUILD, args.json);
    for &chain in &args.chains {
        for &target in &args.targets {
            measure(args, chain, target, printed)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(
    args: &Args,
    chain: PollingChain,
    target: Duration,
    printed: Rows,
) -> Result<(), Failed> {
    let lanes = usize::from(args.lanes);
    let bench = PollingBench {
        policies: args.policies.clone(),
        loads: args.loads.clone(),
        target,
        latency: args.latency,
        workers: args.workers.map_or(lanes, usize::from),
        lanes,
        chain,
        beside: args.beside.clone(),
        warm_up: args.warm_up,
        window: args.window,
        seed: SEED,
    };
    let prepared = bench.prepare()?;
    let costs = prepared.costs();
    printed.print_as(
        &json!({ "chain": chain.name(), "costs": costs }),
        format!(
            "{}: a load of 1 is {:.0} packets/s; a packet's way from the device costs {:.1} ns, an empty poll {:.2} us, a \
             sleep of about the target {:.2} us of CPU; the shortest sleep takes {:.1} us, one of step-sleep without packets {:.1} us; machine noise p99 {:.1} us\n{}",
            chain.name(),
            costs.capacity_pps,
            costs.source_ns,
            costs.empty_poll_us,
            costs.sleep_cycle_us,
            costs.shortest_sleep_us,
            costs.step_sleep_period_us,
            costs.noise_p99_us,
            PollingRow::heading(),
        ),
    );
    let rows = prepared.run(|row| printed.print(row))?;
    let reached = aims(&rows, costs, target.as_secs_f64() * 1e6);
    let lines: Vec<_> = reached.iter().map(ToString::to_string).collect();
    printed.print_as(&json!({ "chain": chain.name(), "aims": reached }), lines.join("\n"));
    Ok(())
}

/// Computes beside lanes until standard input ends.
pub(super) fn compete_with_lanes(args: &CompetitorArgs) -> Result<ExitCode, Failed> {
    let cores: Vec<_> = args.cores.iter().copied().map(CoreId).collect();
    compete(&cores, args.nice)?;
    Ok(ExitCode::SUCCESS)
}

fn policies() -> impl clap::builder::TypedValueParser<Value = PolicyUnderTest> {
    let names = PolicyUnderTest::ALL.map(PolicyUnderTest::name);
    PossibleValuesParser::new(names).map(|name| {
        let mut all = PolicyUnderTest::ALL.into_iter();
        all.find(|policy| policy.name() == name).expect("one of the names")
    })
}

fn chains() -> impl clap::builder::TypedValueParser<Value = PollingChain> {
    let names = PollingChain::ALL.map(PollingChain::name);
    PossibleValuesParser::new(names).map(|name| {
        let mut all = PollingChain::ALL.into_iter();
        all.find(|chain| chain.name() == name).expect("one of the names")
    })
}

fn load(text: &str) -> Result<f64, String> {
    let load = text.parse::<f64>().ok().filter(|load| (0.0..=2.0).contains(load));
    load.ok_or_else(|| "a share of what busy polling can do, between 0 and 2".into())
}

fn target(text: &str) -> Result<Duration, String> {
    within(text, TARGETS)
}

fn window(text: &str) -> Result<Duration, String> {
    within(text, WINDOWS)
}

fn within(text: &str, range: std::ops::RangeInclusive<Duration>) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    if range.contains(&time) {
        Ok(time)
    } else {
        Err(format!("between {:?} and {:?}", range.start(), range.end()))
    }
}

fn nice(text: &str) -> Result<i8, String> {
    let number = text.strip_prefix("nice:").and_then(|number| number.parse().ok());
    number
        .filter(|nice| (-20..=19).contains(nice))
        .ok_or_else(|| "nice: and a number from -20 to 19, such as nice:19".into())
}
