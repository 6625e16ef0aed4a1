//! `rheo bench tcp`: what a request over TCP costs.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use rheostat_app::bench::{Rows, SEED, moves};
use rheostat_base::unit::{parse_count, parse_duration};
use rheostat_measure::allocation;
use rheostat_measure::record::TableRow;
use thiserror::Error;

use crate::commands::{Failed, rheo};
use crate::error::BenchError;
use crate::live::LiveError;
use crate::tcp::{
    IdleBench, IdleRow, Load, MovesBench, Peer, PeerRow, PeersBench, RequestKind, TcpBench,
    TcpProcesses, TcpRow,
};
use crate::testbed::Cores;

/// Why servers beside the kernel's were not measured.
#[derive(Debug, Error)]
enum PeersError {
    #[error("{0}")]
    Live(#[from] LiveError),
    /// This program cannot be found.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Connections of rows for which none are given.
const CONNECTIONS: [u32; 2] = [1_000, 100_000];
/// Connections that carry long replies.
const STREAMS: u32 = 16;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo bench tcp
  rheo bench tcp --connections 1k --lanes 1,2 --json
  rheo bench tcp --moves 10k --json

Clients in the process send requests of 128 bytes as fast as lanes take them, each on a connection chosen uniformly, and check the
replies. `process ns` is the cost of a request: the time inside the service, that of the clients left out. `harness` is the
same without a service: packets are turned round. `connections` opens a connection for each request and closes it behind;
figures of `bulk` are those of a segment of 1,448 bytes. Behind rows on several lanes stands their rate by that of as many processes
of one lane each at the same time. With `--moves`, shards move between two lanes meanwhile, and the exit status is 1 when a byte
was damaged or a connection reset.

Rows of peers stand behind them: `rheo serve echo` beside a server with the kernel's sockets and epoll, with the same client on
cables of the same kind, and what all processors do for a request, the client's part included. `of epoll` is the ratio in the same round, and `A/A`
the factor between two stations of the same peer. They need root. With `--idle`, servers with little to do are measured: processor
time and latency at 0, 1,000 and 10,000 requests a second. Leave the machine alone meanwhile; build with --profile dist.")]
pub(super) struct Args {
    /// Connections, such as 1k,100k.
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = connections)]
    connections: Vec<u32>,
    /// Numbers of lanes; one and two where there are two cores.
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=64))]
    lanes: Vec<u16>,
    /// Requests under way in each lane.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    under_way: u32,
    /// How long clients put off acknowledging a reply.
    #[arg(long, value_name = "TIME", default_value = "40ms", value_parser = parse_duration)]
    ack_delay: Duration,
    /// Windows measured per row; the median counts.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=1000))]
    windows: u16,
    /// How long a window is.
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse_duration)]
    window: Duration,
    /// Measure servers beside the kernel's alone.
    #[arg(long, conflicts_with_all = ["moves", "idle"])]
    peers: bool,
    /// Measure servers with little to do alone.
    #[arg(long, conflicts_with = "moves")]
    idle: bool,
    /// Move so many shards between two lanes, and look for bytes that are damaged.
    #[arg(long, value_name = "N", value_parser = moves)]
    moves: Option<u64>,
    /// With `--moves`, give up after this long.
    #[arg(long, value_name = "TIME", default_value = "150s", value_parser = parse_duration)]
    limit: Duration,
    /// Measure one row, in this process.
    #[arg(long, hide = true, value_name = "KIND", value_parser = kind)]
    row: Option<RequestKind>,
    /// The core of its first lane.
    #[arg(long, hide = true, default_value_t = 0)]
    core: usize,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

/// Measures.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    if let Some(moves) = args.moves {
        return move_shards(args, moves);
    }
    if let Some(kind) = args.row {
        return measure_one(args, kind);
    }
    if args.peers {
        measure_peers(args, Rows::begin(&crate::commands::BUILD, args.json))?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.idle {
        return measure_idle(args);
    }
    let printed = Rows::table::<TcpRow>(&crate::commands::BUILD, args.json);
    let window = format!("{}us", args.window.as_micros());
    let arguments = ["--windows", &args.windows.to_string(), "--window", &window].map(String::from);
    let rheo = std::env::current_exe()?;
    let processes = TcpProcesses { rheo, arguments: arguments.to_vec() };
    for load in loads(args)? {
        let row = processes.measure(&load)?;
        printed.print(&row);
    }
    match measure_peers(args, printed) {
        Err(PeersError::Live(LiveError::NotRoot)) => {
            err!("peers were not measured: that needs root");
        }
        outcome => outcome?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures servers beside the kernel's.
fn measure_peers(args: &Args, printed: Rows) -> Result<(), PeersError> {
    let rheo = rheo()?;
    let connections = args.connections.first().copied().unwrap_or(CONNECTIONS[0]);
    let (windows, window) = (args.windows.div_ceil(2).into(), 2 * args.window);
    let rows = PeersBench { rheo, connections, windows, window }.run(&Peer::ALL)?;
    printed.heading::<PeerRow>();
    for row in rows {
        printed.print(&row);
    }
    Ok(())
}

fn measure_idle(args: &Args) -> Result<ExitCode, Failed> {
    let rheo = rheo()?;
    let connections = args.connections.first().copied().unwrap_or(CONNECTIONS[0]);
    let printed = Rows::table::<IdleRow>(&crate::commands::BUILD, args.json);
    IdleBench { rheo, connections, span: 10 * args.window }.run(|row| printed.print(row))?;
    Ok(ExitCode::SUCCESS)
}

/// What is measured.
fn loads(args: &Args) -> Result<Vec<Load>, Failed> {
    let cores = Cores::available().map_err(BenchError::from)?.count();
    let lanes: Vec<usize> = match &args.lanes[..] {
        [] => [1, 2].into_iter().filter(|lanes| *lanes <= cores).collect(),
        given => given.iter().map(|lanes| usize::from(*lanes)).collect(),
    };
    let connections = match &args.connections[..] {
        [] => &CONNECTIONS[..],
        given => given,
    };
    let with = |kind, connections, lanes| Load {
        under_way: args.under_way,
        ack_delay: args.ack_delay,
        ..Load::new(kind, connections, lanes)
    };
    let mut loads = Vec::new();
    for &lanes in &lanes {
        for &connections in connections {
            if lanes == 1 {
                loads.push(with(RequestKind::Harness, connections, lanes));
            }
            loads.push(with(RequestKind::Requests, connections, lanes));
        }
        if lanes == 1 {
            loads.push(with(RequestKind::Connections, connections[0], lanes));
            loads.push(with(RequestKind::Bulk, STREAMS, lanes));
        }
    }
    Ok(loads)
}

/// Measures a row in this process.
fn measure_one(args: &Args, kind: RequestKind) -> Result<ExitCode, Failed> {
    let connections = args.connections.first().copied().unwrap_or(CONNECTIONS[0]);
    let lanes = args.lanes.first().copied().unwrap_or(1).into();
    let (under_way, ack_delay) = (args.under_way, args.ack_delay);
    let load = Load { under_way, ack_delay, ..Load::new(kind, connections, lanes) };
    let bench = TcpBench {
        load,
        core: args.core,
        window: args.window,
        windows: args.windows.into(),
        allocations: allocation::count,
    };
    let row = bench.run()?;
    match args.json {
        true => out!("{}", serde_json::to_string(&row).expect("a row is plain data")),
        false => out!("{}\n{}", TcpRow::heading(), row.line()),
    }
    Ok(ExitCode::SUCCESS)
}

fn move_shards(args: &Args, moves: u64) -> Result<ExitCode, Failed> {
    let connections = args.connections.first().copied().unwrap_or(CONNECTIONS[0]);
    let lanes = args.lanes.first().copied().unwrap_or(2).max(2).into();
    let bench = MovesBench { moves, connections, lanes, seed: SEED, limit: args.limit };
    let found = bench.run()?;
    match args.json {
        true => out!("{}", serde_json::to_string(&found).expect("figures are plain data")),
        false => out!("{found}"),
    }
    let is_sound = found.damaged == 0 && found.reset == 0;
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn connections(text: &str) -> Result<u32, String> {
    let number = parse_count(text).map_err(|error| error.to_string())?;
    u32::try_from(number)
        .ok()
        .filter(|number| (1..=4_000_000).contains(number))
        .ok_or_else(|| format!("{number} connections: 1 to 4M are possible"))
}

fn kind(text: &str) -> Result<RequestKind, String> {
    let all =
        [RequestKind::Harness, RequestKind::Requests, RequestKind::Connections, RequestKind::Bulk];
    let named = all.into_iter().find(|kind| kind.name() == text);
    named.ok_or_else(|| format!("no row is `{text}`"))
}
