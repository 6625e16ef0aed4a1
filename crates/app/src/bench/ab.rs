//! `rheo bench ab`: two benchmark commands in turn, and their ratios.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use rheostat_measure::MeasureError;
use rheostat_measure::ab::Comparison;
use rheostat_measure::machine::Machine;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo bench ab --a './rheo-before bench nf --flows 1M --lanes 1 --json' \\
                --b './rheo-after  bench nf --flows 1M --lanes 1 --json'
  rheo bench ab --rounds 9 --a 'rheo bench nf --lanes 1 --json' \\
    --b 'rheo bench nf --lanes 2 --json'")]
pub(crate) struct Args {
    /// The first command line; it must print rows as JSON.
    #[arg(long, value_name = "COMMAND")]
    a: String,
    /// The second command line.
    #[arg(long, value_name = "COMMAND")]
    b: String,
    /// How often each is run.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Print ratios as lines of JSON.
    #[arg(long)]
    json: bool,
}

/// Compares.
pub(super) fn run(args: &Args) -> Result<ExitCode, MeasureError> {
    let comparison =
        Comparison { a: args.a.clone(), b: args.b.clone(), rounds: args.rounds.into() };
    let ratios = comparison.run(|round, command| {
        if io::stderr().is_terminal() {
            err!("round {} of {}: {command}", round + 1, args.rounds);
        }
    })?;
    if !args.json {
        out!("{}", Machine::this());
        out!("A: {}\nB: {}\n{} rounds, medians:", args.a, args.b, args.rounds);
    }
    for ratio in ratios {
        if args.json {
            out!("{}", serde_json::to_string(&ratio).expect("a ratio is plain data"));
        } else {
            out!("{ratio}");
        }
    }
    Ok(ExitCode::SUCCESS)
}
