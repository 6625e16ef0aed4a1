//! `rheo bench offload`: what it costs that flows are away from their lane.

use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

use rheostat_app::bench::{Rows, SEED, moves};
use rheostat_base::unit::parse_duration;

use crate::commands::Failed;
use crate::offload::heavy::HeavyRow;
use crate::offload::lookups::LookupRow;
use crate::offload::{OffloadBench, Sabotage, heavy, lookups};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo bench offload
  rheo bench offload --transitions 1M --limit 5min --json
  rheo bench offload --lookups 1M
  rheo bench offload --heavy 1M

First, flows leave two working lanes and come home while shards move between these. Lost, doubled and overtaken packets
are found in what leaves, by the packets' numbers; `lost` are those that no counter explains. Then one working and one
offloading lane have a core each: `hop` is the time from when the home of a flow publishes a packet until the other lane is
about to process it. docs/offloading.md has figures. The exit status is 1 when a packet was lost, doubled or overtaken, and
2 when an invariant broke or a run could not be made. Leave the machine alone meanwhile, and build with --release.")]
pub(super) struct Args {
    /// How often flows leave or come home, at least.
    #[arg(long, default_value = "200k", value_name = "N", value_parser = moves)]
    transitions: u64,
    /// Packets that arrive per second meanwhile.
    #[arg(long, default_value = "300k", value_name = "N", value_parser = moves)]
    rate: u64,
    /// Decides about the packets, and what moves when.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Give up moving flows after this long.
    #[arg(long, default_value = "60s", value_parser = parse_duration)]
    limit: Duration,
    /// How long hops are measured, once away and once at home.
    #[arg(long, default_value = "5s", value_parser = parse_duration)]
    window: Duration,
    /// Instead of all this, measure what it brings on so many flows that the functions of a chain find their states by one lookup
    /// and not by one each.
    #[arg(long, value_name = "FLOWS", value_parser = rheostat_app::bench::flows)]
    lookups: Option<u32>,
    /// Instead of all this, state how well a lane knows the heaviest of so many flows, by the packets that it samples.
    #[arg(long, value_name = "FLOWS", value_parser = rheostat_app::bench::flows, conflicts_with = "lookups")]
    heavy: Option<u32>,
    /// Lose or double every N-th packet where it leaves, or reverse every N-th burst, to see that it is noticed.
    #[arg(long, hide = true, value_name = "lose:N|double:N|reverse:N", value_parser = sabotage)]
    sabotage: Option<Sabotage>,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

/// Measures.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let &Args { transitions, rate, seed, limit, window, sabotage, json, .. } = args;
    if let Some(flows) = args.lookups {
        let printed = Rows::table::<LookupRow>(&crate::commands::BUILD, json);
        lookups::measure(flows, |row| printed.print(row))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(flows) = args.heavy {
        let printed = Rows::table::<HeavyRow>(&crate::commands::BUILD, json);
        heavy::measure(flows, seed, |row| printed.print(row));
        return Ok(ExitCode::SUCCESS);
    }
    let bench =
        OffloadBench { transitions, packets_per_second: rate, seed, limit, window, sabotage };
    let printed = Rows::begin(&crate::commands::BUILD, json);
    let row = bench.run(|step| {
        if !json {
            err!("{step} ...");
        }
    })?;
    printed.print_as(&row, &row);
    Ok(if row.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn sabotage(text: &str) -> Result<Sabotage, String> {
    let sabotage = text.split_once(':').and_then(|(what, every)| {
        let every: NonZeroU32 = every.parse().ok()?;
        match what {
            "lose" => Some(Sabotage::Lose(every)),
            "double" => Some(Sabotage::Double(every)),
            "reverse" => Some(Sabotage::Reverse(every)),
            _ => None,
        }
    });
    sabotage.ok_or_else(|| "such as lose:1000, double:1000 or reverse:100".into())
}
