//! `rheo bench profile`: what it costs to note why transactions were aborted.

use std::process::ExitCode;

use rheostat_app::bench::Rows;

use crate::commands::Failed;
use crate::sampling::SamplingBench;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo bench profile
  rheo bench profile --windows 51 --json

Lanes conflict as often as they can: Anti-DDoS with staleness 0. The causes of no abort are noted, of one in 256, as
in every run, and of each, as in `rheo profile`, in turn. Leave the machine alone meanwhile.")]
pub(super) struct Args {
    /// Lanes, each with a core of its own.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    lanes: u16,
    /// Windows per row; the median counts.
    #[arg(long, default_value_t = 31, value_parser = clap::value_parser!(u16).range(1..=1000))]
    windows: u16,
    /// Packets of each lane per window.
    #[arg(long, default_value = "100k", value_parser = super::advice::packets)]
    packets: u64,
    /// Packets of a transaction at most.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=32))]
    batch: u64,
    /// Pseudo-random numbers drawn for each packet, as the rest of its processing.
    #[arg(long, default_value_t = 60)]
    work: u32,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

/// Measures.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let &Args { lanes, windows, packets, batch, work, json } = args;
    let bench =
        SamplingBench { lanes: lanes.into(), windows: windows.into(), packets, batch, work };
    let printed = Rows::begin(&crate::commands::BUILD, json);
    bench.run()?.iter().for_each(|row| printed.print_as(row, row));
    Ok(ExitCode::SUCCESS)
}
