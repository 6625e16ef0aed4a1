//! `rheo sim throughput`: what systems deliver of a load as high as the capacity of their lanes.

use std::process::ExitCode;
use std::time::Duration;

use rheostat_base::unit::parse_duration;

use super::setup::{Setup, verdict};
use crate::commands::Failed;
use crate::sim::throughput::{BURSTS, Gain, ThroughputBench, ZIPF, gains};
use crate::testbed::threads;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # five exponents, four lengths of bursts
  rheo sim throughput
  rheo sim throughput --zipf 1.1 --burst 1,32
  rheo sim throughput --json > throughput.jsonl

Use case II of Dyssect: RSS, RSS++, RSS with one lookup for all functions (`disaggregation`), Dyssect's model for balance
(`balance`), and Dyssect, which also hands flows over to one of its lanes; each with 16 shards and with 128. Eight lanes, 36 Gb/s in packets of 1001 bytes, of a million
flows by Zipf's law. The last lines compare Dyssect with 16 shards and RSS++ with 128. docs/policies.md has the figures. The
exit status is 2 when a packet was lost, doubled or overtaken.")]
pub(crate) struct Args {
    /// Exponents of Zipf's law: how unequal flows are.
    #[arg(long, value_name = "S", value_delimiter = ',', default_values_t = ZIPF)]
    zipf: Vec<f64>,
    /// Packets of a flow that come in a row.
    #[arg(long = "burst", value_name = "N", value_delimiter = ',', default_values_t = BURSTS)]
    bursts: Vec<u32>,
    /// How long each run takes, without half a second before.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    duration: Duration,
    #[command(flatten)]
    setup: Setup,
}

/// Simulates.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let costs = args.setup.costs()?;
    let bench = ThroughputBench {
        costs: &costs,
        zipf: args.zipf.clone(),
        bursts: args.bursts.clone(),
        duration: args.duration,
        seed: args.setup.seed,
        threads: threads(),
    };
    let rows = bench.run()?;
    args.setup.print(&rows);
    for Gain { zipf, burst, throughput, migrations } in gains(&rows) {
        if !args.setup.json {
            let percent = 100.0 * (throughput - 1.0);
            let (moves, others) = migrations;
            out!(
                "zipf {zipf:.1} burst {burst}: dyssect {percent:+.2} %, {moves} moves for {others}"
            );
        }
    }
    Ok(verdict(rows.iter().map(|row| row.faults)))
}
