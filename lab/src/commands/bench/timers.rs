//! `rheo bench timers`: what deadlines of connections cost.

use std::process::ExitCode;

use rheostat_app::bench::{Rows, SEED};
use rheostat_base::unit::parse_count;

use crate::commands::Failed;
use crate::timers::{TimerRow, TimersBench};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo bench timers
  rheo bench timers --timers 1k,1M --json

Nanoseconds to arm a deadline, to move it later, to move it earlier, to remove it, and to find it when it has expired,
in a hierarchical wheel with ticks of 0.52 ms and in an ordered map. Members are visited in a random order; deadlines are
200 to 400 ms ahead. A figure is the median over rounds. docs/tcp.md has what the wheel is for. Build with --release.")]
pub(super) struct Args {
    /// Deadlines that are armed at once.
    #[arg(long = "timers", value_name = "N", value_delimiter = ',', value_parser = timers,
          default_value = "1k,100k,1M")]
    sizes: Vec<u32>,
    /// What orders and deadlines are drawn from.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

/// Measures.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let printed = Rows::table::<TimerRow>(&crate::commands::BUILD, args.json);
    TimersBench { sizes: args.sizes.clone(), seed: args.seed }.run(|row| printed.print(row));
    Ok(ExitCode::SUCCESS)
}

fn timers(text: &str) -> Result<u32, String> {
    let number = parse_count(text).map_err(|error| error.to_string())?;
    u32::try_from(number)
        .ok()
        .filter(|number| (1..=10_000_000).contains(number))
        .ok_or_else(|| format!("{number} timers: 1 to 10M are possible"))
}
