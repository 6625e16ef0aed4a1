//! `rheo bench shared`: one receive queue that several workers empty.

use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use rheostat_app::bench::Rows;
use rheostat_base::unit::{parse_count, parse_duration};

use crate::commands::Failed;
use crate::shared::{PacketWork, QueueKind, SharedBench, SharedStateRow};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # all of it, in less than three minutes
  rheo bench shared
  rheo bench shared --queue non-blocking,per-worker --workers 1,2 --work heavy
  rheo bench shared --queue non-blocking,ordered --workers 2,4 --size 60,1514 \\
    --load 0
  rheo bench shared --json > rows.json

The queue needs no producer: its descriptors hold packets again as soon as they are given back, and, in rows with a load,
once a packet is due. `by own` compares a rate with that of a queue for each worker in the same rounds. Order is that in
which packets leave (RFC 4737). With more workers than cores, workers lose the processor while they receive: then order,
loss and delays are measured, and no rate. Leave the machine alone meanwhile. The exit status is 1 when a packet was lost,
doubled, or out of order where it must not be.")]
pub(super) struct Args {
    /// Kinds of queues.
    #[arg(long = "queue", value_enum, value_delimiter = ',')]
    queues: Vec<QueueName>,
    /// Numbers of workers.
    #[arg(long, value_delimiter = ',', default_value = "1,2,3,4",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: Vec<u16>,
    /// Bytes of packets, from the Ethernet header on.
    #[arg(long = "size", value_delimiter = ',', default_value = "60,512,1514",
          value_parser = clap::value_parser!(u16).range(60..=1_514))]
    sizes: Vec<u16>,
    /// What is done with packets.
    #[arg(long, value_enum, value_delimiter = ',')]
    work: Vec<WorkName>,
    /// Loads at which latencies are measured, as shares of what workers with queues of their own can do; 0 for none.
    #[arg(long = "load", value_delimiter = ',', default_value = "0.3,0.6,0.8,0.9", value_parser = load)]
    loads: Vec<f64>,
    /// Descriptors of a queue; rounded up to a power of two.
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    descriptors: u32,
    /// Windows per rate; the median counts.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1000))]
    windows: u16,
    /// The length of a window.
    #[arg(long, default_value = "60ms", value_parser = parse_duration)]
    window: Duration,
    /// Packets whose order, and whose latency at each load, is looked at.
    #[arg(long, default_value = "100k", value_parser = packets)]
    packets: u64,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum QueueName {
    /// Workers claim packets of one queue and do not wait for each other.
    NonBlocking,
    /// The same, and packets leave in the order of claims.
    Ordered,
    /// One queue behind a lock for which workers spin.
    SpinLock,
    /// One queue behind a lock for which workers sleep.
    Mutex,
    /// A queue for each worker.
    PerWorker,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WorkName {
    /// A route, TTL and checksum.
    Light,
    /// The same, and 100 pseudo-random numbers.
    Heavy,
}

/// Measures.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let queues = args.queues.iter().map(|queue| match queue {
        QueueName::NonBlocking => QueueKind::NonBlocking,
        QueueName::Ordered => QueueKind::Ordered,
        QueueName::SpinLock => QueueKind::SpinLock,
        QueueName::Mutex => QueueKind::Mutex,
        QueueName::PerWorker => QueueKind::PerWorker,
    });
    let work = args.work.iter().map(|work| match work {
        WorkName::Light => PacketWork::Light,
        WorkName::Heavy => PacketWork::Heavy,
    });
    let bench = SharedBench {
        queues: or(queues.collect(), &QueueKind::ALL),
        workers: args.workers.iter().map(|workers| usize::from(*workers)).collect(),
        sizes: args.sizes.iter().map(|size| usize::from(*size)).collect(),
        work: or(work.collect(), &PacketWork::ALL),
        loads: args.loads.iter().copied().filter(|load| *load > 0.0).collect(),
        descriptors: u64::from(args.descriptors.next_power_of_two()),
        windows: args.windows.into(),
        window: args.window,
        packets: args.packets,
    };
    let told = Rows::table::<SharedStateRow>(&crate::commands::BUILD, args.json);
    let mut is_sound = true;
    bench.run(|row| {
        is_sound &= row.is_sound();
        told.print(row);
    })?;
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What was asked for, or everything.
fn or<T: Copy>(asked: Vec<T>, all: &[T]) -> Vec<T> {
    if asked.is_empty() { all.to_vec() } else { asked }
}

fn load(text: &str) -> Result<f64, String> {
    let load = text.parse::<f64>().ok().filter(|load| (0.0..=1.5).contains(load));
    load.ok_or_else(|| "a share between 0 and 1.5".into())
}

fn packets(text: &str) -> Result<u64, String> {
    let packets = parse_count(text).map_err(|error| error.to_string())?;
    let range = 1_000..=10_000_000;
    if range.contains(&packets) { Ok(packets) } else { Err("between 1k and 10M".into()) }
}
