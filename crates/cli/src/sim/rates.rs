//! `rheo sim rates`: many small packets, up to what lanes can do and past it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use rheostat_base::CoreSet;
use rheostat_base::unit::parse_duration;
use rheostat_bench::costs::Costs;
use rheostat_bench::record::Header;
use rheostat_bench::sim::rates::{RATES, RateBench, RateRow, RateTable};

use crate::failure::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo sim rates                                    2 to 20 million packets per second
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
    /// A file of costs, instead of those that come with rheostat.
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Decides about packets.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

/// Simulates.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let costs = match &args.costs {
        Some(path) => Costs::open(path)?,
        None => Costs::built_in(),
    };
    let bench = RateBench {
        costs: &costs,
        rates: args.rates.clone(),
        duration: args.duration,
        seed: args.seed,
        threads: CoreSet::available().map_or(1, |set| set.cores().len()),
    };
    if !args.json {
        out!("simulated by rheo {}; costs: {}", Header::new(&crate::BUILD).commit, costs.about);
    }
    let rows = bench.run()?;
    if !args.json {
        out!("{}", RateTable::heading());
    }
    for row in &rows {
        if args.json {
            out!("{}", serde_json::to_string(row).expect("a row is plain data"));
        } else {
            out!("{}", RateTable::line(row));
        }
    }
    let is_sound = |row: &RateRow| row.faults == 0;
    Ok(if rows.iter().all(is_sound) { ExitCode::SUCCESS } else { ExitCode::from(2) })
}
