//! `rheo bench costs`: what a simulation has to know of a machine.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::commands::Failed;
use crate::costs::{Costs, measure};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo bench costs
  rheo bench costs --output my-machine.json
  rheo sim balance --cores 16 --costs my-machine.json

Measures, in some 30 seconds on two cores, what packets, polls, hand-offs and moves of shards cost, and when the
machine pauses. The file has distributions and raw times, and where they are from. Leave the machine alone
meanwhile, and build with --release.")]
pub(super) struct Args {
    /// Where to write the file.
    #[arg(long, value_name = "FILE", default_value = "costs.json")]
    output: PathBuf,
}

/// Measures.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let costs = measure(&crate::commands::BUILD, |what| {
        if io::stderr().is_terminal() {
            err!("{what}");
        }
    })?;
    std::fs::write(&args.output, costs.to_text())?;
    show(&costs);
    if !costs.was_left_alone() {
        out!(
            "something else runs on this machine: pauses are not its own, and a simulation leaves them out"
        );
    }
    if costs.debug {
        out!("built without optimisation: lanes are faster than that");
    }
    out!("written to {}", args.output.display());
    Ok(ExitCode::SUCCESS)
}

fn show(costs: &Costs) {
    out!("{}", costs.about);
    out!("{}", costs.noise);
    out!(
        "{:<10} {:>9} {:>9} {:>14} {:>14} {:>9}",
        "chain",
        "flows",
        "poll ns",
        "packet p50 ns",
        "packet p99 ns",
        "alone ns"
    );
    for chain in &costs.chains {
        for set in &chain.sets {
            out!(
                "{:<10} {:>9} {:>9.1} {:>14.1} {:>14.1} {:>9.1}",
                chain.chain,
                set.flows,
                chain.poll_ns,
                set.packet_ns.median(),
                set.packet_ns.quantile(0.99),
                set.single_ns.median()
            );
        }
    }
    let others = [
        ("a packet that changes lanes", &costs.handoff_ns),
        ("a shard given away", &costs.release_ns),
        ("a shard taken in", &costs.install_ns),
        ("a worker woken", &costs.wake_ns),
        ("a table in force", &costs.fence_ns),
    ];
    for (what, times) in others {
        out!("{what}: {:.0} ns, 99 %: {:.0} ns", times.median(), times.quantile(0.99));
    }
}
