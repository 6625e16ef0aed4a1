//! `rheo sim cases`: what each policy gets through where flows are unequal.

use std::process::ExitCode;
use std::time::Duration;

use rheostat_base::unit::parse_duration;
use rheostat_steer::policy;

use super::setup::{Setup, verdict};
use crate::commands::Failed;
use crate::sim::cases::{CaseBench, NamedCase, gaps};
use crate::testbed::threads;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # eleven cases on eight lanes
  rheo sim cases
  rheo sim cases --cores 16 --policy rsspp,dyssect --json

Flows by Zipf's law, in bursts, with few shards, with an elephant, with a flow whose weight changes every second, with a table that is slow to rewrite: 95 % of
what all lanes can do arrives, and what a policy delivers shows how even its lanes are. The last line has the case in which
`auto` is furthest from the best other policy. docs/policies.md has the figures. The exit status is 2 when a packet was lost,
doubled or overtaken.")]
pub(crate) struct Args {
    /// Lanes, each on a core: 3 to 64.
    #[arg(long, value_name = "N", default_value_t = 8)]
    cores: u16,
    /// Policies to compare.
    #[arg(long = "policy", value_name = "NAME", value_delimiter = ',', default_values = policy::NAMES)]
    policies: Vec<String>,
    /// How long each run takes, without the two seconds before.
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = parse_duration)]
    duration: Duration,
    #[command(flatten)]
    setup: Setup,
}

/// Simulates.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let costs = args.setup.costs()?;
    let bench = CaseBench {
        costs: &costs,
        lanes: args.cores,
        policies: args.policies.clone(),
        cases: NamedCase::ALL.to_vec(),
        duration: args.duration,
        seed: args.setup.seed,
        threads: threads(),
    };
    let rows = bench.run()?;
    args.setup.print(&rows);
    let gaps = gaps(&rows);
    let worst = gaps.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio));
    if let Some(worst) = worst.filter(|_| !args.setup.json) {
        let (case, best) = (&worst.case, &worst.best);
        out!("auto delivers {:.4} of what {best} does in {case}, its worst case", worst.ratio);
    }
    Ok(verdict(rows.iter().map(|row| row.faults)))
}
