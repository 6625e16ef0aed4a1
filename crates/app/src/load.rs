//! `rheo load`: an open-loop client that measures the latency of a server over TCP.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rheostat_base::unit::{parse_count, parse_duration};
use rheostat_load::classes::ClassError;
use rheostat_load::protocol::ProtocolError;
use rheostat_load::report::{Asked, Verdict};
use rheostat_load::spread::SpreadError;
use rheostat_load::{
    ArrivalProcess, Class, ClassMix, Floor, LoadError, LoadPlan, LoadReport, Protocol, QueueHash,
    RunPlan, RunResult, Session, Spread, interval_log, self_check,
};
use rheostat_measure::record::{Header, RecordError, RowRecorder};
use thiserror::Error;

use crate::interrupt;

/// Why nothing was measured, or not kept.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Option(#[from] LoadOptionError),
    #[error("{0}")]
    Load(#[from] LoadError),
    #[error("{0}")]
    Record(#[from] RecordError),
    /// Signals cannot be watched.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Connections at most.
const MOST_CONNECTIONS: u32 = 50_000;
/// The exit status when the rate was not offered.
const NOT_OFFERED: u8 = 3;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo load --address 10.0.0.1:7000 --rate 50k --connections 64
  rheo load --address 10.0.0.1:7000 --rate 20k --class short=99.5%:1us \\
    --class long=0.5%:100us --json
  rheo load --address 10.0.0.1:7000 --rate 20k --spread even --queues 2 \\
    --hash-key microsoft
  # of dispatcher-1:7
  rheo load --address 10.0.0.1:7000 --rate 20k --connections 64 --workers 7
  rheo load --address 127.0.0.1:6379 --protocol resp --rate 10k \\
    --class 'get=0.9:GET key' --class 'set=0.1:SET key {data}'
  rheo load --address 127.0.0.1:8080 --protocol http --rate 1k \\
    --class home=1:/index.html --hdr latencies.hlog
  # for `rheo bench report`
  rheo load --address 10.0.0.1:7000 --rate 20k --scheduler inline-ws \\
    --record requests.jsonl
  rheo load --address 127.0.0.1:7 --protocol echo --rate 5k --runs 1 \\
    --duration 5s --tsv

Requests are due at moments that no reply changes, and latency counts from the moment a request was due, not from its
sending. What is due while no connection takes it waits, and that counts; what is not sent by the end of its run is
counted as not sent. First the client measures itself against a sink in its own process: `floor` is the p99.9 that it
would measure of any server.

Ctrl-C ends early and reports what was measured; a second one ends at once.

The exit status is 0 when the rate was offered, 1 when nothing was answered or the server went away, 2 when the client
could not start, 3 when the rate was not offered, 130 when it was ended at once.")]
pub(crate) struct Args {
    /// The server, as ADDRESS:PORT (IPv6 addresses in brackets) or NAME:PORT.
    #[arg(long, value_name = "HOST:PORT")]
    address: String,
    /// Requests a second, such as 50k.
    #[arg(long, value_name = "R", value_parser = parse_rate)]
    rate: u64,
    /// Connections; with --workers, for each of those.
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=MOST_CONNECTIONS.into()))]
    connections: u32,
    /// The server's workers that handle requests, so that schedulers with more and fewer of them get connections in proportion.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1_024))]
    workers: u32,
    /// How requests get there: linux (sockets of the kernel).
    #[arg(long, value_name = "NAME", default_value = "linux", value_parser = ["linux"])]
    transport: String,
    /// The server's protocol: work (`rheo serve work`), echo, http or resp (Redis).
    #[arg(long, value_name = "NAME", default_value = "work")]
    protocol: String,
    /// Bytes of a request; of http at least, of resp where a command has the word {data}.
    #[arg(long, value_name = "BYTES", default_value_t = 128)]
    size: u32,
    /// The gaps between requests: exponential, uniform, lognormal (or lognormal:SIGMA) or pareto (or pareto:SHAPE).
    #[arg(long, value_name = "NAME", default_value_t = ArrivalProcess::Exponential)]
    arrivals: ArrivalProcess,
    /// A class of requests, as NAME=SHARE:WHAT; may be given several times. WHAT is a service time (work), a path (http) or a
    /// command (resp).
    #[arg(long, value_name = "NAME=SHARE:WHAT")]
    class: Vec<Class>,
    /// How connections are spread over the server's queues: even, random (as the kernel picks ports) or skew (half on the first).
    #[arg(long, value_name = "NAME", default_value_t)]
    spread: Spread,
    /// The server's receive queues, or lanes, for --spread.
    #[arg(long, value_name = "N")]
    queues: Option<usize>,
    /// Entries of the server's indirection table.
    #[arg(long, value_name = "N", default_value_t = 128)]
    buckets: usize,
    /// The key of the server's hash: microsoft, symmetric or 80 hexadecimal digits.
    #[arg(long, value_name = "KEY", default_value = "microsoft")]
    hash_key: String,
    /// Requests under way on a connection at most: 1 for http, else 64.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    outstanding: Option<u32>,
    /// Runs, each with arrivals of its own.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: u16,
    /// How long each run sends.
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = parse_duration)]
    duration: Duration,
    /// The part of each run that is not measured: the first half without.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    warm_up: Option<Duration>,
    /// How long replies are waited for at the end of a run.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    wait: Duration,
    /// What arrivals, classes and draws start from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The sender never sleeps: it has a core to itself.
    #[arg(long)]
    spin: bool,
    /// Do not measure the client first.
    #[arg(long)]
    no_self_check: bool,
    /// Print one line of JSON.
    #[arg(long, conflicts_with = "tsv")]
    json: bool,
    /// Print lines with tabs.
    #[arg(long)]
    tsv: bool,
    /// The server's scheduler: what records and charts call it, instead of its address.
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,
    /// Add the report, behind a header, to this file, which `rheo bench report` shows and compares.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Write all latencies to a log of HdrHistogram.
    #[arg(long, value_name = "FILE")]
    hdr: Option<PathBuf>,
}

/// Why a load makes no sense.
#[derive(Debug, Error)]
pub(crate) enum LoadOptionError {
    /// More than are possible.
    #[error(
        "{each} connections for each of {workers} workers are more than {MOST_CONNECTIONS}: use fewer --connections"
    )]
    Connections {
        /// For each worker.
        each: u32,
        /// Workers.
        workers: u32,
    },
    #[error("cannot find `{address}`: {reason}")]
    Address { address: String, reason: String },
    #[error("{0}")]
    Protocol(#[from] ProtocolError),
    #[error("{0}")]
    Class(#[from] ClassError),
    #[error("{0}")]
    Spread(#[from] SpreadError),
    #[error("--spread {0} needs the number of the server's queues: pass --queues N")]
    NoQueues(Spread),
    #[error("--warm-up is not shorter than --duration")]
    WarmUp,
    #[error("a run of no time measures nothing: --duration must be at least 10ms")]
    NoTime,
    #[error("cannot write {}: {source}", file.display())]
    Log { file: PathBuf, source: io::Error },
}

fn parse_rate(text: &str) -> Result<u64, String> {
    match parse_count(text.strip_suffix("/s").unwrap_or(text)) {
        Ok(rate @ 1..=100_000_000) => Ok(rate),
        Ok(_) => Err("a rate is from 1 to 100M requests a second".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Measures, and prints what was measured.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Error> {
    let mix = ClassMix::new(args.class.clone()).map_err(LoadOptionError::from)?;
    let plan = plan(args, &mix)?;
    let run = run_plan(args, mix.clone())?;
    // Before minutes are spent on what cannot be written.
    let log = args.hdr.as_ref().map(|file| {
        File::create(file).map_err(|source| LoadOptionError::Log { file: file.clone(), source })
    });
    let log = log.transpose()?;
    let header = Header::new(&crate::BUILD);
    let mut recorder =
        args.record.as_deref().map(|path| RowRecorder::append(path, &header)).transpose()?;
    let stop = Arc::new(AtomicBool::new(false));
    interrupt::set(&stop)?;
    let floor = match floor(args, &plan, &run, &stop) {
        Ok(floor) => floor,
        Err(refusal) => {
            err!("error: {refusal}");
            return Ok(ExitCode::from(NOT_OFFERED));
        }
    };
    let mut session = Session::open(plan.clone())?;
    let mut runs: Vec<(SystemTime, RunResult)> = Vec::new();
    for number in 0..args.runs {
        // Relaxed: nothing is read that was written before.
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let seed = args.seed.wrapping_add(u64::from(number).wrapping_mul(0x9e37_79b9));
        let begin = SystemTime::now();
        let result = session.run(&RunPlan { seed, ..run.clone() }, &stop);
        let is_over = result.problem.is_some();
        // A run that did not come to its window says nothing beside others that did.
        if !result.is_warm_up || runs.is_empty() || is_over {
            runs.push((begin, result));
        }
        if is_over {
            break;
        }
    }
    let asked = Asked {
        server: plan.server.to_string(),
        scheduler: args.scheduler.clone(),
        protocol: plan.protocol.name().to_owned(),
        arrivals: args.arrivals.to_string(),
        connections: plan.connections,
        rate: args.rate as f64,
        mix,
    };
    let queues = session.queues().map(<[usize]>::to_vec);
    drop(session);
    let (starts, results): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
    let report = LoadReport::new(asked, &results, floor, queues);
    if let (Some(log), Some(file)) = (log, &args.hdr) {
        let runs: Vec<_> = starts.into_iter().zip(results).collect();
        let mut out = BufWriter::new(log);
        let written = interval_log::write(&mut out, &report, &runs).and_then(|()| out.flush());
        written.map_err(|source| LoadOptionError::Log { file: file.clone(), source })?;
    }
    print(args, &report);
    if let Some(recorder) = &mut recorder {
        recorder.add(&report)?;
    }
    Ok(match report.verdict() {
        Verdict::Offered => ExitCode::SUCCESS,
        Verdict::Failed => ExitCode::FAILURE,
        Verdict::NotOffered => ExitCode::from(NOT_OFFERED),
    })
}

fn print(args: &Args, report: &LoadReport) {
    if args.json {
        out!("{}", serde_json::to_string(report).expect("names and numbers"));
    } else if args.tsv {
        out!("{}", report.tsv());
    } else {
        out!("{}", report.to_string().trim_end());
    }
    if let Some(complaint) = report.complaint() {
        err!("error: {complaint}");
    }
}

/// The client's own latency. Where there is no sink, there is no floor, which is said.
fn floor(
    args: &Args,
    plan: &LoadPlan,
    run: &RunPlan,
    stop: &AtomicBool,
) -> Result<Option<Floor>, LoadError> {
    if args.no_self_check {
        return Ok(None);
    }
    match self_check(plan, run, args.size, stop) {
        Ok(floor) => Ok(Some(floor)),
        Err(refusal @ LoadError::Floor { .. }) => Err(refusal),
        Err(error) => {
            err!("warning: the client cannot be measured by itself: {error}");
            Ok(None)
        }
    }
}

fn connections(each: u32, workers: u32) -> Result<usize, LoadOptionError> {
    match each.checked_mul(workers).filter(|all| *all <= MOST_CONNECTIONS) {
        Some(all) => Ok(all as usize),
        None => Err(LoadOptionError::Connections { each, workers }),
    }
}

fn plan(args: &Args, mix: &ClassMix) -> Result<LoadPlan, LoadOptionError> {
    let server = server(&args.address)?;
    let protocol = Protocol::new(&args.protocol, args.size, mix, server)?;
    let hash = match (args.queues, args.spread) {
        (Some(queues), _) => Some(QueueHash::new(&args.hash_key, args.buckets, queues)?),
        (None, Spread::Random) => None,
        (None, spread) => return Err(LoadOptionError::NoQueues(spread)),
    };
    let usual = protocol.usual_outstanding();
    Ok(LoadPlan {
        server,
        connections: connections(args.connections, args.workers)?,
        outstanding: args.outstanding.map_or(usual, |outstanding| outstanding as usize),
        protocol,
        spread: args.spread,
        hash,
        spins: args.spin,
        seed: args.seed,
    })
}

fn run_plan(args: &Args, mix: ClassMix) -> Result<RunPlan, LoadOptionError> {
    if args.duration < Duration::from_millis(10) {
        return Err(LoadOptionError::NoTime);
    }
    let warm_up = args.warm_up.unwrap_or(args.duration / 2);
    if warm_up >= args.duration {
        return Err(LoadOptionError::WarmUp);
    }
    Ok(RunPlan {
        process: args.arrivals,
        rate: args.rate as f64,
        mix,
        duration: args.duration,
        warm_up,
        wait: args.wait,
        seed: args.seed,
    })
}

fn server(address: &str) -> Result<SocketAddr, LoadOptionError> {
    let wrong = |reason: String| LoadOptionError::Address { address: address.to_owned(), reason };
    let mut found = address.to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
    found
        .find(|found| found.port() != 0)
        .ok_or_else(|| wrong("it has no address and port".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_for_each_worker_and_bounded() {
        assert!(matches!(connections(64, 7), Ok(448)));
        assert!(matches!(connections(50_000, 1), Ok(50_000)));
        for (each, workers) in [(50_000, 2), (u32::MAX, u32::MAX)] {
            let error = connections(each, workers).unwrap_err().to_string();
            assert!(error.contains("fewer --connections"), "{error}");
        }
    }
}
