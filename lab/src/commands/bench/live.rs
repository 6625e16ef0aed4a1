//! `rheo bench live`: real interfaces.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use rheostat_app::bench::Rows;
use rheostat_base::unit::parse_duration;

use crate::commands::{Failed, rheo};
use crate::live::{LiveBench, LivePath, LiveRow};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # all paths, 64k and 1M flows
  rheo bench live
  rheo bench live --path rheo-nat,nft-masquerade --flows 64k
  rheo bench live --json > rows.json

Needs root. Makes namespaces and virtual interfaces of its own and removes them. A row's cost is what all
processors of the machine do for a packet, less what the source does: leave the machine alone meanwhile.")]
pub(super) struct Args {
    /// What to measure.
    #[arg(long = "path", value_enum, value_delimiter = ',')]
    paths: Vec<PathName>,
    /// Flows that are open throughout, such as 64k,1M: the next power of two of each.
    #[arg(long, value_delimiter = ',', default_value = "64k,1M", value_parser = rheostat_app::bench::flows)]
    flows: Vec<u32>,
    /// Windows measured per row; the median counts.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=1000))]
    windows: u16,
    /// The length of a window.
    #[arg(long, default_value = "500ms", value_parser = parse_duration)]
    window: Duration,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PathName {
    /// rheo, a chain without functions, AF_XDP.
    RheoForward,
    /// rheo, NAT, AF_XDP.
    RheoNat,
    /// The kernel with nftables.
    NftMasquerade,
    /// A bare loop between two AF_XDP sockets.
    XdpBounce,
    /// An XDP program that redirects: the least there is.
    XdpRedirect,
}

/// Measures.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let rheo = rheo()?;
    let bench = LiveBench { rheo, windows: args.windows.into(), window: args.window };
    let paths: Vec<LivePath> = match args.paths.as_slice() {
        [] => LivePath::ALL.to_vec(),
        names => names.iter().map(|name| path(*name)).collect(),
    };
    let flows: Vec<u32> = args.flows.iter().map(|flows| flows.next_power_of_two()).collect();
    let printed = Rows::table::<LiveRow>(&crate::commands::BUILD, args.json);
    let rows = bench.run(&paths, &flows, |row| printed.print(row))?;
    for line in LiveRow::ratios(&rows) {
        if args.json {
            // Standard output is rows and nothing else.
            let _ = io::Write::write_fmt(&mut io::stderr(), format_args!("{line}\n"));
        } else {
            out!("{line}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn path(name: PathName) -> LivePath {
    match name {
        PathName::RheoForward => LivePath::RheoForward,
        PathName::RheoNat => LivePath::RheoNat,
        PathName::NftMasquerade => LivePath::NftMasquerade,
        PathName::XdpBounce => LivePath::XdpBounce,
        PathName::XdpRedirect => LivePath::XdpRedirect,
    }
}
