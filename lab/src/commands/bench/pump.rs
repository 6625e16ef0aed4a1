//! `rheo bench pump`: what a lane that is away for a while loses.

use std::process::ExitCode;
use std::time::Duration;

use rheostat_app::bench::Rows;
use rheostat_base::unit::{parse_count, parse_duration};

use crate::commands::Failed;
use crate::pump::{PumpBench, PumpRow};

/// Longer absences at higher rates take more memory than a device draws.
const LONGEST: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # 1 million packets a second into 1,024 descriptors
  rheo bench pump
  rheo bench pump --away 10ms --rate 100k,500k --descriptors 512,4096
  rheo bench pump --json > rows.json

Packets arrive evenly at a simulated NIC that needs no core of its own. A lane polls it without a pause,
stays away once, and comes back. `pumped` are the packets that found no descriptor; `stepped` those of a
NIC that is stepped through the very same polls in virtual time, packet by packet; `expected` what arrives
in the absence beyond what the ring holds. The first two are always equal, or the exit status is 2. They exceed
the third where the machine kept the lane away for longer: see `longest ms`.")]
pub(super) struct Args {
    /// How long the lane stays away.
    #[arg(long, value_delimiter = ',', default_value = "1ms,2ms,5ms,20ms", value_parser = away)]
    away: Vec<Duration>,
    /// Packets per second.
    #[arg(long = "rate", value_delimiter = ',', default_value = "1M", value_parser = rate)]
    rates: Vec<u64>,
    /// Descriptors of the receive queue.
    #[arg(long, value_delimiter = ',', default_value = "1024",
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    descriptors: Vec<u32>,
    /// Rounds per row; the median counts.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

/// Measures.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let bench = PumpBench {
        away: args.away.clone(),
        rates: args.rates.clone(),
        descriptors: args.descriptors.clone(),
        rounds: args.rounds.into(),
    };
    let printed = Rows::table::<PumpRow>(&crate::commands::BUILD, args.json);
    bench.run(|row| printed.print(row))?;
    Ok(ExitCode::SUCCESS)
}

fn away(text: &str) -> Result<Duration, String> {
    let away = parse_duration(text).map_err(|error| error.to_string())?;
    if away > LONGEST { Err("at most a second".into()) } else { Ok(away) }
}

fn rate(text: &str) -> Result<u64, String> {
    let rate = parse_count(text).map_err(|error| error.to_string())?;
    if (1..=5_000_000).contains(&rate) { Ok(rate) } else { Err("between 1 and 5M".into()) }
}
