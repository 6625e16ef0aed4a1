//! `rheo bench advice`: what it brings to follow the profiler's recipes.

use std::process::ExitCode;

use clap::ValueEnum;
use rheostat_app::bench::Rows;
use rheostat_base::unit::parse_count;

use crate::advice::{AdviceBench, AdviceCase, AdviceRow};
use crate::commands::Failed;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # all three cases, real and simulated lanes
  rheo bench advice
  rheo bench advice --case bridge --lanes 2 --simulate 23
  rheo bench advice --batch 1 --json > rows.json

What a function does with shared objects for each packet, without the packet, before and after the advice. Simulated
lanes take turns on one thread, in virtual time, on the same objects: conflicts are the engine's, times are those of
one lane, measured here. Every real lane has a core of its own; leave the machine alone meanwhile.")]
pub(super) struct Args {
    /// Which case studies.
    #[arg(long = "case", value_enum, value_delimiter = ',')]
    cases: Vec<CaseName>,
    /// Numbers of real lanes; one and two where there are two cores.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=64))]
    lanes: Vec<u16>,
    /// Numbers of simulated lanes.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8,12,16,23",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    simulate: Vec<u16>,
    /// Packets of a transaction at most.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=32))]
    batch: u64,
    /// Pseudo-random numbers drawn for each packet, as the rest of its processing.
    #[arg(long, default_value_t = 60)]
    work: u32,
    /// Windows per real row; the median counts.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=1000))]
    windows: u16,
    /// Packets of each lane per window, and in a simulation.
    #[arg(long, default_value = "100k", value_parser = packets)]
    packets: u64,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CaseName {
    /// Counters read at every new flow: staleness 0, then 0.1 ms.
    Antiddos,
    /// External addresses that just suffice: 53, then 55.
    Nat,
    /// Stations refreshed at every frame, then at most once a second.
    Bridge,
}

/// Measures and simulates.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let cases = args.cases.iter().map(|name| match name {
        CaseName::Antiddos => AdviceCase::AntiDdos,
        CaseName::Nat => AdviceCase::Nat,
        CaseName::Bridge => AdviceCase::Bridge,
    });
    let bench = AdviceBench {
        windows: args.windows.into(),
        packets: args.packets,
        batch: args.batch,
        work: args.work,
        real: rheostat_app::bench::lanes(&args.lanes),
        simulated: args.simulate.iter().map(|&lanes| lanes.into()).collect(),
    };
    let printed = Rows::table::<AdviceRow>(&crate::commands::BUILD, args.json);
    bench
        .run(&rheostat_app::bench::given(cases.collect(), &AdviceCase::ALL, usize::MAX), |row| {
            printed.print(row)
        })?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn packets(text: &str) -> Result<u64, String> {
    let count = parse_count(text).map_err(|error| error.to_string())?;
    let fits = (1_000..=100_000_000).contains(&count);
    if fits { Ok(count) } else { Err("between 1k and 100M packets".into()) }
}
