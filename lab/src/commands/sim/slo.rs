//! `rheo sim slo`: traffic classes with latency objectives under a rising load.

use std::process::ExitCode;
use std::time::Duration;

use rheostat_base::unit::parse_duration;
use rheostat_steer::policy::{Latency, Objectives};

use super::setup::{Setup, verdict};
use crate::commands::Failed;
use crate::sim::slo::{POLICIES, SloBench};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # RSS++ beside Dyssect, 2.5 to 22 Gb/s
  rheo sim slo --cores 8
  # phases as long as in the thesis
  rheo sim slo --cores 8 --phase 10s
  rheo sim slo --cores 8 --priority 60us --policy dyssect --json
  # lanes pause as on the machine of the costs
  rheo sim slo --cores 16 --noisy

Use case I of Dyssect: one packet in a thousand is of the priority class, all others are regular. Lanes are 85 % busy in
the last phase; more or fewer than 8 get more or less load. Latencies are from arrival to departure, in virtual time, and
simulated tails are to be compared with each other, not with those of a machine: docs/objectives.md. The exit status is 2
when a packet was lost, doubled or overtaken.")]
pub(crate) struct Args {
    /// Lanes, each on a core: 3 to 64.
    #[arg(long, value_name = "N", default_value_t = 8)]
    cores: u16,
    /// Policies to compare.
    #[arg(long = "policy", value_name = "NAME", value_delimiter = ',', default_values = POLICIES)]
    policies: Vec<String>,
    /// How long each of the nine phases takes.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = parse_duration)]
    phase: Duration,
    /// The objective of priority packets.
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = parse_duration)]
    priority: Duration,
    /// The objective of all others.
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = parse_duration)]
    regular: Duration,
    /// The share of packets that are to be within their objective.
    #[arg(long, value_name = "SHARE", default_value_t = Objectives::PERCENTILE)]
    percentile: f64,
    /// Lanes pause as those of the machine of the costs did.
    #[arg(long)]
    noisy: bool,
    /// The exponent of Zipf's law, by which packets belong to a million flows: 0 for flows alike, at most 2.
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    zipf: f64,
    #[command(flatten)]
    setup: Setup,
}

/// Simulates.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let costs = args.setup.costs()?;
    let objectives = Objectives {
        latency: Latency::Total,
        percentile: args.percentile,
        ..Objectives::waiting(args.priority, args.regular)
    };
    let bench = SloBench {
        costs: &costs,
        noisy: args.noisy,
        lanes: args.cores,
        policies: args.policies.clone(),
        phase: args.phase,
        objectives,
        zipf: args.zipf,
        seed: args.setup.seed,
    };
    let rows = bench.run()?;
    args.setup.print(&rows);
    Ok(verdict(rows.iter().map(|row| row.faults)))
}
