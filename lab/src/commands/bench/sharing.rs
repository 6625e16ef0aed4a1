//! `rheo bench sharing`: flow state that lanes share, and packets that are sprayed.

use std::process::ExitCode;

use clap::ValueEnum;
use rheostat_app::bench::Rows;
use rheostat_base::unit::parse_count;

use crate::commands::Failed;
use crate::sharing::{SharingAction, SharingBench, SharingRow, SharingSelection, System};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # all systems, 4, 1k and 64k flows
  rheo bench sharing
  rheo bench sharing --system per-shard,shared --action write --flows 1k \\
    --lanes 1,2
  rheo bench sharing --system per-shard,spray --lanes 2 --queue 32
  rheo bench sharing --json > rows.json

A row's cost is what lanes spend on a packet, the same work for each included; the last
columns compare it, and the rate, with tables per shard in the same rounds. Order is that in
which packets leave. Every lane has a core of its own; leave the machine alone meanwhile.")]
pub(super) struct Args {
    /// How lanes share flow state.
    #[arg(long = "system", value_enum, value_delimiter = ',')]
    systems: Vec<SystemName>,
    /// What is done with a packet's flow.
    #[arg(long = "action", value_enum, value_delimiter = ',')]
    actions: Vec<ActionName>,
    /// Flows, such as 4,1k,64k.
    #[arg(long, value_delimiter = ',', default_value = "4,1k,64k", value_parser = flows)]
    flows: Vec<u32>,
    /// Numbers of lanes; one and two where there are two cores.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=64))]
    lanes: Vec<u16>,
    /// Pseudo-random numbers drawn for each packet, as its processing.
    #[arg(long, default_value_t = 100)]
    work: u32,
    /// Packets that each lane's queue holds: by so many, lanes can be apart.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(32..=1_000_000))]
    queue: u32,
    /// Windows measured per row; the median counts.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=1000))]
    windows: u16,
    /// Packets per window.
    #[arg(long, default_value = "256k", value_parser = packets)]
    packets: u32,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SystemName {
    /// Tables owned by the lanes that get all packets of their flows.
    PerShard,
    /// One table with locks; flows keep their lanes.
    Shared,
    /// One table with locks; any lane gets any packet.
    Spray,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ActionName {
    /// The flow is not looked up.
    Nothing,
    /// Its state is read.
    Read,
    /// Its state is written.
    Write,
    /// Its state is written, and no other lane works on the flow meanwhile.
    Ordered,
}

/// Measures.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let bench = SharingBench {
        windows: args.windows.into(),
        packets: args.packets,
        work: args.work,
        queue: args.queue,
    };
    let systems = args.systems.iter().map(|name| match name {
        SystemName::PerShard => System::PerShard,
        SystemName::Shared => System::Shared,
        SystemName::Spray => System::Spray,
    });
    let actions = args.actions.iter().map(|name| match name {
        ActionName::Nothing => SharingAction::Nothing,
        ActionName::Read => SharingAction::Read,
        ActionName::Write => SharingAction::Write,
        ActionName::Ordered => SharingAction::Ordered,
    });
    let selection = SharingSelection {
        systems: rheostat_app::bench::given(systems.collect(), &System::ALL, usize::MAX),
        actions: rheostat_app::bench::given(actions.collect(), &SharingAction::ALL, usize::MAX),
        flows: args.flows.clone(),
        lanes: rheostat_app::bench::lanes(&args.lanes),
    };
    let printed = Rows::table::<SharingRow>(&crate::commands::BUILD, args.json);
    bench.run(&selection, |row| printed.print(row))?;
    Ok(ExitCode::SUCCESS)
}

fn flows(text: &str) -> Result<u32, String> {
    count(text, 1, 10_000_000, "flows")
}

fn packets(text: &str) -> Result<u32, String> {
    count(text, 1_000, 100_000_000, "packets")
}

fn count(text: &str, least: u64, most: u32, what: &str) -> Result<u32, String> {
    let count = parse_count(text).map_err(|error| error.to_string())?;
    let fits = u32::try_from(count).ok().filter(|fits| count >= least && *fits <= most);
    fits.ok_or_else(|| format!("between {least} and {most} {what}"))
}
