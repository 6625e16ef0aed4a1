//! `rheo bench txn`: transactions on shared objects, and locks.

use std::process::ExitCode;

use clap::ValueEnum;
use rheostat_app::bench::Rows;
use rheostat_base::unit::parse_count;

use crate::commands::Failed;
use crate::txn::{EngineKind, TxnBench, TxnRow, TxnSelection, Workload};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # all engines and workloads, batches of 1 and 32
  rheo bench txn
  rheo bench txn --workload read4 --lanes 1
  rheo bench txn --engine txn,two-phase --workload rw-uniform,rw-zipf --lanes 2
  rheo bench txn --json > rows.json

A packet reads one of 10,000 elements, or four, and may write one; a row's cost is what lanes spend on a
packet, loop included (the row of engine `none`). The last column compares it with transactions in the same
rounds. Every lane has a core of its own; leave the machine alone meanwhile.")]
pub(super) struct Args {
    /// What keeps lanes apart.
    #[arg(long = "engine", value_enum, value_delimiter = ',')]
    engines: Vec<EngineName>,
    /// What packets do.
    #[arg(long = "workload", value_enum, value_delimiter = ',')]
    workloads: Vec<WorkloadName>,
    /// Numbers of lanes; one and two where there are two cores.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=64))]
    lanes: Vec<u16>,
    /// Packets to a transaction, or to a hold of the global lock.
    #[arg(long = "batch", value_delimiter = ',', default_value = "1,32", value_parser = clap::value_parser!(u16).range(1..=32))]
    batches: Vec<u16>,
    /// Windows measured per row; the median counts.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=1000))]
    windows: u16,
    /// Packets of each lane per window.
    #[arg(long, default_value = "256k", value_parser = packets)]
    packets: u32,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum EngineName {
    /// Transactions on a vector.
    Txn,
    /// One lock for everything.
    GlobalLock,
    /// A lock per element, for readers or one writer.
    TwoPhase,
    /// The concurrent flow table of `rheo bench sharing`.
    SharedTable,
    /// Each lane has elements of its own.
    None,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WorkloadName {
    /// Four reads; one packet in a hundred writes.
    Read4,
    /// One read, any element alike.
    RoUniform,
    /// One read, by Zipf's law with exponent 0.99.
    RoZipf,
    /// One element read and written, any alike.
    RwUniform,
    /// One element read and written, by Zipf's law.
    RwZipf,
}

/// Measures.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let bench = TxnBench { windows: args.windows.into(), packets: args.packets };
    let engines = args.engines.iter().map(|name| match name {
        EngineName::Txn => EngineKind::Txn,
        EngineName::GlobalLock => EngineKind::GlobalLock,
        EngineName::TwoPhase => EngineKind::TwoPhase,
        EngineName::SharedTable => EngineKind::SharedTable,
        EngineName::None => EngineKind::None,
    });
    let workloads = args.workloads.iter().map(|name| match name {
        WorkloadName::Read4 => Workload::ReadFour,
        WorkloadName::RoUniform => Workload::ReadUniform,
        WorkloadName::RoZipf => Workload::ReadZipf,
        WorkloadName::RwUniform => Workload::WriteUniform,
        WorkloadName::RwZipf => Workload::WriteZipf,
    });
    let selection = TxnSelection {
        engines: rheostat_app::bench::given(engines.collect(), &EngineKind::ALL, usize::MAX),
        workloads: rheostat_app::bench::given(workloads.collect(), &Workload::ALL, usize::MAX),
        lanes: rheostat_app::bench::lanes(&args.lanes),
        batches: args.batches.iter().map(|batch| usize::from(*batch)).collect(),
    };
    let printed = Rows::table::<TxnRow>(&crate::commands::BUILD, args.json);
    bench.run(&selection, |row| printed.print(row))?;
    Ok(ExitCode::SUCCESS)
}

fn packets(text: &str) -> Result<u32, String> {
    let count = parse_count(text).map_err(|error| error.to_string())?;
    let fits = u32::try_from(count).ok().filter(|fits| (1_000..=10_000_000).contains(fits));
    fits.ok_or_else(|| "between 1k and 10M packets".into())
}
