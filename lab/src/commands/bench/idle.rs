//! `rheo bench idle`: balancing with nothing to balance.

use std::process::ExitCode;
use std::time::Duration;

use rheostat_app::bench::{Rows, SEED};
use rheostat_base::unit::parse_duration;
use rheostat_measure::nf::ChainKind;

use crate::commands::Failed;
use crate::idle::{IdleBench, IdleFlowRow};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # no state, the least with state, the firewall
  rheo bench idle
  rheo bench idle --chain firewall --lanes 2 --windows 101
  # the same twice: what it shows is chance
  rheo bench idle --chain harness
  rheo bench idle --json > rows.json

Pairs of runs of one even load: static RSS without any count of the load, and RSS++ with all
that it needs. A row's cost is the share of the first's throughput by which the second is lower,
with its 95 % confidence interval. Packets of 64 bytes come from memory as fast as lanes take
them. Plans that would have moved shards are withheld; there are none if every lane has a core
of its own: run nothing else meanwhile.")]
pub(super) struct Args {
    /// What lanes do.
    #[arg(long = "chain", value_delimiter = ',', value_parser = rheostat_app::bench::chain())]
    chains: Vec<ChainKind>,
    /// Flows that are open throughout.
    #[arg(long, default_value = "64k", value_parser = rheostat_app::bench::flows)]
    flows: u32,
    /// Numbers of lanes; one and two where there are two cores.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=64))]
    lanes: Vec<u16>,
    /// Pairs of runs per row; the median counts.
    #[arg(long, default_value_t = 31, value_parser = clap::value_parser!(u16).range(LEAST..=1000))]
    windows: u16,
    /// How long each run is measured, once it has come into its stride.
    #[arg(long, default_value = "300ms", value_parser = parse_duration)]
    window: Duration,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

const LEAST: i64 = IdleBench::LEAST_WINDOWS as i64;

/// Measures.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let windows = args.windows.into();
    let bench = IdleBench { windows, window: args.window, flows: args.flows, seed: SEED };
    let usual = [ChainKind::EmptyRss, ChainKind::Placed, ChainKind::Firewall];
    let chains = rheostat_app::bench::given(args.chains.clone(), &usual, usize::MAX);
    let printed = Rows::table::<IdleFlowRow>(&crate::commands::BUILD, args.json);
    bench.run(&chains, &rheostat_app::bench::lanes(&args.lanes), |row| printed.print(row))?;
    Ok(ExitCode::SUCCESS)
}
