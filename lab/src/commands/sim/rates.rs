//! `rheo sim rates`: many small packets, up to what lanes can do and past it.

use std::process::ExitCode;
use std::time::Duration;

use rheostat_base::unit::parse_duration;

use super::setup::{Setup, verdict};
use crate::commands::Failed;
use crate::sim::rates::{RATES, RateBench};
use crate::testbed::threads;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # 2 to 20 million packets per second
  rheo sim rates
  rheo sim rates --rate 8,16,24
  rheo sim rates --json > rates.jsonl

Use case III of Dyssect: eight lanes that can do 16 million packets of 128 bytes per second, RSS++ on all of them beside Dyssect
on seven and one that offloads. One packet in a thousand is of the priority class; latencies are those of packets that left.
docs/objectives.md has the figures. The exit status is 2 when a packet was lost, doubled or overtaken.")]
pub(crate) struct Args {
    /// Offered packets per microsecond.
    #[arg(long = "rate", value_name = "MPPS", value_delimiter = ',', default_values_t = RATES)]
    rates: Vec<f64>,
    /// How long each run takes, without half a second before.
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_duration)]
    duration: Duration,
    #[command(flatten)]
    setup: Setup,
}

/// Simulates.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let costs = args.setup.costs()?;
    let bench = RateBench {
        costs: &costs,
        rates: args.rates.clone(),
        duration: args.duration,
        seed: args.setup.seed,
        threads: threads(),
    };
    let rows = bench.run()?;
    args.setup.print(&rows);
    Ok(verdict(rows.iter().map(|row| row.faults)))
}
