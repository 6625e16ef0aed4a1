//! `rheo gen`: writes traffic, generated or replayed, to a capture, or describes it.

mod captures;
mod options;
mod page;
mod traffic;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::ProgressBar;
use rheostat_base::unit::{parse_count, parse_duration};
use rheostat_io::{OpenError, is_standard};
use rheostat_traffic::statistics::Summary;
use rheostat_traffic::{Source, SourceError};
use thiserror::Error;

use crate::interrupt;
use crate::machine::is_same_file;
use captures::{CaptureError, Captures};
use options::{OptionError, Options};

/// Why no traffic was written or described.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Option(#[from] OptionError),
    #[error("there is no such traffic: {0}")]
    Traffic(#[from] SourceError),
    #[error("{0}")]
    Open(#[from] OpenError),
    #[error("{0}")]
    Captures(#[from] CaptureError),
    #[error("`{}` would be read and overwritten{alias}; write into a file of its own", output.display())]
    SameFile { output: PathBuf, alias: String },
    #[error("`{}` would be written twice; name two files", .0.display())]
    WrittenTwice(PathBuf),
    #[error("{}: {source}; name a file in a folder that is there", file.display())]
    Page { file: PathBuf, source: io::Error },
    /// The description is not JSON.
    #[error("{0}")]
    Io(#[from] io::Error),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo gen --output mix.pcap --packets 1M
  rheo gen --output long.pcapng --rate 2Mpps --duration 10s --flows 1M --seed 7
  rheo gen --packets 1M --describe
  rheo gen --input trace.pcap --describe --json
  rheo gen --input trace.pcap --plot trace.html
  rheo gen --traffic replay --input trace.pcap --loops 10 --copies 4 \\
    --rate 500kpps --output fast.pcap
  rheo gen --traffic elephant --share 0.3 --output elephant.pcap
  rheo gen --traffic flash-crowd --rate 5kpps --factor 300 --at 2s \\
    --lasting 1s --duration 5s --describe
  rheo gen --traffic attack --attack syn-flood --share 0.6 \\
    --target 10.0.0.5:443 --output flood.pcap
  rheo gen --traffic imix --step 1s=2 --step 2s=0.5 --duration 3s --describe
  rheo gen --traffic visitors --target 198.51.100.10:443 --output visitors.pcap
  rheo gen --traffic visitors --target 203.0.113.1:8080 --server 10.0.0.5:80 \\
    --sides lan.pcap wan.pcap")]
pub(crate) struct Args {
    /// The capture to write (.pcap or .pcapng); with -, pcapng goes to standard output, and all else to standard error.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["sides", "describe", "plot"])]
    output: Option<PathBuf>,
    /// Write two captures instead: what private addresses send, and what all others send.
    #[arg(long, num_args = 2, value_names = ["INSIDE", "OUTSIDE"], conflicts_with = "output")]
    sides: Vec<PathBuf>,
    /// How many packets; 100k of traffic that does not end by itself.
    #[arg(long, value_name = "COUNT", value_parser = parse_count)]
    packets: Option<u64>,
    /// For how long, on the clock of the traffic.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "packets")]
    duration: Option<Duration>,
    #[command(flatten)]
    options: Options,
    /// Say what the traffic is like.
    #[arg(long)]
    describe: bool,
    /// Draw it, into a page that is one file.
    #[arg(long, value_name = "FILE.html")]
    plot: Option<PathBuf>,
    /// Say it as one line of JSON, with numbers to draw.
    #[arg(long)]
    json: bool,
}

/// Generates, writes and describes.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Error> {
    args.options.check()?;
    check_files(args)?;
    let traffic::Opened { mut source, warnings } = traffic::open(args)?;
    let mut captures =
        Captures::create(args.output.as_ref().map_or(&args.sides[..], std::slice::from_ref))?;
    let bar =
        if io::stderr().is_terminal() { ProgressBar::new(1_000) } else { ProgressBar::hidden() };
    let interrupted = Arc::new(AtomicBool::new(false));
    interrupt::set(&interrupted)?;
    let is_described = args.describe || args.plot.is_some();
    let mut statistics = is_described.then(|| args.options.statistics());
    let mut frame = Vec::new();
    let mut count = 0_u64;
    while let Some(arrival) = source.next(&mut frame) {
        if let Some(statistics) = &mut statistics {
            statistics.count(arrival.time, &frame, arrival.wire_len, arrival.link);
        }
        captures.write(&frame, &arrival);
        count += 1;
        // Nothing would receive the packets still to come.
        let is_unread = captures.have_failed() && statistics.is_none();
        if is_unread || interrupted.load(Ordering::Relaxed) {
            break;
        }
        if count.is_multiple_of(65_536) {
            bar.set_position((source.progress().unwrap_or(0.0) * 1_000.0) as u64);
        }
    }
    bar.finish_and_clear();
    // What is missing in a capture does not cost the description.
    let written = captures.close();
    for warning in warnings() {
        err!("warning: {warning}");
    }
    let summary = statistics.map(|statistics| statistics.summary());
    if let (Some(file), Some(summary)) = (&args.plot, &summary) {
        draw(file, args, summary)?;
    }
    let text = text(summary.filter(|_| args.describe), count, args.json)?;
    match args.output.iter().chain(&args.sides).any(|output| is_standard(output)) {
        true => err!("{text}"),
        false => out!("{text}"),
    }
    match written {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            err!("error: {error}");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Refuses to overwrite the input, by whatever link or spelling, and to write two things into one file.
fn check_files(args: &Args) -> Result<(), Error> {
    let outputs: Vec<&Path> =
        args.output.iter().chain(&args.sides).chain(&args.plot).map(PathBuf::as_path).collect();
    if let Some(input) = args.options.input.as_deref()
        && let Some(output) = outputs.iter().find(|output| is_same_file(input, output))
    {
        let alias = match input == *output {
            true => String::new(),
            false => format!(": `{}` is the same file", input.display()),
        };
        return Err(Error::SameFile { output: output.to_path_buf(), alias });
    }
    for (number, output) in outputs.iter().enumerate() {
        if outputs[..number].iter().any(|other| is_same_file(other, output)) {
            return Err(Error::WrittenTwice(output.to_path_buf()));
        }
    }
    Ok(())
}

fn draw(file: &Path, args: &Args, summary: &Summary) -> Result<(), Error> {
    let input = args.options.input.as_deref().and_then(Path::file_name);
    let title = input.map_or("Generated traffic".into(), |name| name.to_string_lossy());
    let command: Vec<String> = std::env::args().skip(1).collect();
    let page = page::page(&title, &format!("rheo {}", command.join(" ")), summary);
    std::fs::write(file, page).map_err(|source| Error::Page { file: file.to_owned(), source })
}

fn text(summary: Option<Summary>, packets: u64, json: bool) -> Result<String, Error> {
    Ok(match (summary, json) {
        (Some(summary), true) => serde_json::to_string(&summary).map_err(io::Error::from)?,
        (Some(summary), false) => summary.to_string(),
        (None, true) => serde_json::json!({ "packets": packets }).to_string(),
        (None, false) => format!("{packets} packets"),
    })
}
