//! `rheo sim queues`: separate queues beside a shared one, in theory.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use rheostat_base::unit::parse_count;
use rheostat_measure::record::{Header, TableRow};

use crate::commands::Failed;
use crate::report::ReportError;
use crate::sim::queues::{QueuesBench, QueuesRow, Service, page};
use crate::testbed::threads;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # both figures: 4 and 8 servers, two distributions
  rheo sim queues
  rheo sim queues --servers 2 --service deterministic --load 0.5,0.9
  rheo sim queues --json > queues.jsonl
  # with charts
  rheo sim queues --output queues.html

Packets arrive at random (Poisson) and wait in a queue for each server (k x M/G/1) or in one for all (M/G/k). Times are
from arrival to departure, in mean service times: the mean of 20 independent runs, and how far the true value is from it
at most with a confidence of 95 %. `exact` is a closed form, where there is one. `mean by` and `p99 by` divide by the times
of separate queues with the same arrivals. Nothing but service takes time: claims, caches and order are free.")]
pub(crate) struct Args {
    /// Numbers of servers.
    #[arg(long, value_name = "K", value_delimiter = ',', default_value = "4,8")]
    servers: Vec<u16>,
    /// Distributions of service times.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "markov,deterministic")]
    service: Vec<ServiceName>,
    /// Loads, each the share of the time in which servers are busy: above 0 and at most 0.99.
    #[arg(
        long = "load",
        value_name = "SHARE",
        value_delimiter = ',',
        default_value = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.85,0.9,0.95"
    )]
    loads: Vec<f64>,
    /// Packets measured for each server in each of 20 runs.
    #[arg(long, default_value = "20k", value_parser = parse_count)]
    packets: u64,
    /// Decides about arrivals and service times.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also write a page with charts.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print rows as lines of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ServiceName {
    /// Exponential.
    Markov,
    /// All alike.
    Deterministic,
    /// Nine in ten take half of the mean, the others 5.5 times the mean.
    Bimodal,
}

/// Simulates.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let service = |name: &ServiceName| match name {
        ServiceName::Markov => Service::Markov,
        ServiceName::Deterministic => Service::Deterministic,
        ServiceName::Bimodal => Service::Bimodal,
    };
    let bench = QueuesBench {
        servers: args.servers.clone(),
        services: args.service.iter().map(service).collect(),
        loads: args.loads.clone(),
        packets: args.packets,
        threads: threads(),
        seed: args.seed,
    };
    let header = Header::new(&crate::commands::BUILD);
    let mut rows = Vec::new();
    bench.run(|row| {
        if rows.is_empty() {
            begin(args.json, &header);
        }
        if args.json {
            out!("{}", serde_json::to_string(row).expect("a row is plain data"));
        } else {
            out!("{}", row.line());
        }
        rows.push(row.clone());
    })?;
    if let Some(path) = &args.output {
        fs::write(path, page(&header.command, &rows))
            .map_err(|source| ReportError::Io { path: path.clone(), source })?;
        err!("charts in {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn begin(json: bool, header: &Header) {
    if json {
        out!("{}", serde_json::to_string(header).expect("a header is plain data"));
    } else {
        out!("simulated by rheo {}", header.commit);
        out!("{}", QueuesRow::heading());
    }
}
