//! `rheo bench`: the experiments, and comparisons of their results.

mod advice;
mod costs;
mod idle;
mod live;
mod offload;
mod polling;
mod pump;
mod report;
mod sampling;
mod scenario;
mod sched;
mod shared;
mod sharing;
mod solver;
mod tcp;
mod throughput;
mod timers;
mod txn;
mod vacation;

use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

use crate::migrate::{DESCRIPTORS, MigrateBench};
use clap::Subcommand;
use rheostat_app::bench::{SEED, moves};
use rheostat_base::unit::parse_duration;
use rheostat_measure::machine::Machine;

pub(crate) use self::sched::NOTE as PUMPED_NOTE;
use crate::commands::Failed;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Debug, Subcommand)]
enum Scenario {
    /// Compare policies on real lanes near full load: latency, drops, imbalance.
    Balance(scenario::Args),
    /// Run another scenario: of packets on real lanes, of requests on the rig that it names.
    Run(scenario::NamedScenario),
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
    /// Measure what a request costs that a service over TCP answers, clients in the process.
    Tcp(tcp::Args),
    /// Measure schedulers of a service over TCP: capacity, and latency in an open loop, clients in the process.
    Sched(sched::Args),
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

/// Measures or compares.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failed> {
    match &args.scenario {
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
        Scenario::Tcp(args) => tcp::run(args),
        Scenario::Sched(args) => sched::run(args),
        Scenario::Report(args) => report::run(args),
        Scenario::Migrate(args) => migrate(args),
    }
}

fn migrate(args: &MigrateArgs) -> Result<ExitCode, Failed> {
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
