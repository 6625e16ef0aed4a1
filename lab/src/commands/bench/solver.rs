//! `rheo bench solver`: what Dyssect's optimisation models take, and how good their answers are.

use std::process::ExitCode;

use rheostat_app::bench::{Rows, SEED};
use rheostat_steer::policy::dyssect::Budget;

use crate::commands::Failed;
use crate::solver::{Size, SolverBench, SolverRow};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo bench solver
  rheo bench solver --size 128x16 --instances 5000
  rheo bench solver --json > solver.jsonl

Random problems from a seed: the answers are the same on every machine, the times are not. Each problem is solved
three times and the median counts; median and p99 are over problems. `optimal` is the share of optimal answers among
those where that is known (`proved`), with up to forty times the budget; `bound` the share of answers that meet the
bound that comes with them, for `balance` within 1 % of a lane (root mean square); `feasible` violate no constraint;
`cut` are searches that the budget ended; `value` is the mean number of lanes, for the other models of changes.
docs/policies.md has the models. Build with --release.")]
pub(super) struct Args {
    /// Shards and lanes, such as 128x16.
    #[arg(long = "size", value_name = "SHARDSxLANES", value_delimiter = ',', value_parser = size,
          default_value = "16x4,16x8,128x8,128x16,512x16,512x32,512x64")]
    sizes: Vec<Size>,
    /// Problems of each size.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    instances: u32,
    /// What the problems are drawn from.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Steps that a search may take, some ten nanoseconds each.
    #[arg(long, default_value_t = Budget::default_steps())]
    budget: u64,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

/// Measures.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let &Args { ref sizes, instances, seed, budget, json } = args;
    let bench = SolverBench {
        sizes: sizes.clone(),
        instances: instances as usize,
        seed,
        budget: Budget::steps(budget),
    };
    let printed = Rows::table::<SolverRow>(&crate::commands::BUILD, json);
    bench.run(|row| printed.print(row));
    Ok(ExitCode::SUCCESS)
}

fn size(text: &str) -> Result<Size, String> {
    let error = || format!("`{text}` is not SHARDSxLANES, such as 128x16 (at most 4096x256)");
    let (shards, lanes) = text.split_once('x').ok_or_else(error)?;
    let number = |text: &str, most: usize| {
        let number = text.parse().ok().filter(|number| (1..=most).contains(number));
        number.ok_or_else(error)
    };
    Ok(Size { shards: number(shards, 4_096)?, lanes: number(lanes, 256)? })
}
