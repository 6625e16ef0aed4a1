//! `rheo bench balance`, `rheo bench run`: scenarios on real lanes.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use rheostat_app::terminal::set_when_interrupted;
use rheostat_measure::record::TableRow;

use crate::commands::choices::Choices;
use crate::commands::page_file::PageFile;
use crate::commands::{Failed, request_scenario};
use crate::noise::Noise;
use crate::real::{Real, Trial, trials};
use crate::record::{FileHeader, RecordedRow, Results, rows};
use crate::report;
use crate::scenario::requests::Rig;
use crate::scenario::{AnyScenario, Scenario};

/// How long each core is listened to before anything is measured.
const LISTENED: Duration = Duration::from_secs(1);

/// A machine that takes more of a core's time than this was not left alone.
const DISTURBED: f64 = 0.05;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # every policy at 80, 90 and 94 % load
  rheo bench balance
  rheo bench balance --policy rss,rsspp --load 0.95 --seeds 12
  rheo bench balance --capture in.pcap --copies 4
  rheo bench balance --json --no-results

Packets arrive when they are due, whether or not a lane is ready, and latency counts from that moment.
Every lane has a core of its own; leave the machine alone meanwhile. A star marks latencies below twice
what the machine alone does to them. Runs are kept in a file, from which `rheo bench report` draws.
The exit status is 2 when an invariant broke.")]
pub(super) struct Args {
    /// Numbers of lanes, instead of those of the scenario.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=64))]
    lanes: Vec<u16>,
    #[command(flatten)]
    choices: Choices,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo bench run balance
  rheo bench run my-scenario.toml --json
  # schedulers of a service, as `rheo bench sched`
  rheo bench run schedulers
  rheo bench run schedulers --scheduler inline-dfcfs,inline-ws --load 0.5 \\
    --output page.html

A scenario with a table [service] is about requests: it compares schedulers, on the rig that it names (`pumped` or
`simulated`). --lanes are its workers then, --seeds its rounds, and --duration is that of a window. Rows are those of
`rheo bench sched` or `rheo sim sched`. docs/bench.md explains every key.")]
pub(super) struct NamedScenario {
    /// A scenario that comes with rheostat, or a file.
    pub(super) scenario: String,
    #[command(flatten)]
    pub(super) args: Args,
}

/// Runs a scenario.
pub(super) fn run(name: &str, args: &Args) -> Result<ExitCode, Failed> {
    let Args { lanes, choices } = args;
    match choices.scenario(name, lanes)? {
        AnyScenario::Packets(scenario) => measure(&scenario, choices),
        AnyScenario::Requests(scenario) => match scenario.rig {
            Rig::Pumped => request_scenario::measure(&scenario, choices),
            Rig::Simulated => request_scenario::simulate(&scenario, None, choices),
        },
    }
}

fn measure(scenario: &Scenario, choices: &Choices) -> Result<ExitCode, Failed> {
    let page = choices.output.as_deref().map(PageFile::create).transpose()?;
    let mut real = Real::new(scenario)?;
    let noise = Noise::measure(LISTENED)?;
    let file_header = FileHeader::real(scenario, &crate::commands::BUILD, noise.clone());
    let mut recorder = choices.recorder(&file_header)?;
    if !choices.json {
        out!("{}: {}", scenario.title, scenario.question);
        out!("{}, rheo {}", file_header.machine, file_header.commit);
        out!("{noise}");
        if noise.share > DISTURBED {
            out!("something else runs on this machine: metrics are not worth much");
        }
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    set_when_interrupted(&interrupted)?;
    let trials = trials(scenario);
    let bar = progress(trials.len());
    let mut runs = Vec::new();
    for trial in &trials {
        // Relaxed: the flag publishes nothing.
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        bar.set_message(described(trial));
        let run = real.run(trial)?;
        if let Some(recorder) = &mut recorder {
            recorder.add(&run)?;
        }
        runs.push(run);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if !choices.json {
        let capacity = runs.first().map_or(0.0, |run| run.capacity);
        out!("a lane can do {:.0} packets per second: a load of 1", capacity);
        out!("{}", RecordedRow::heading());
    }
    for row in rows(&runs, Some(&noise)) {
        if choices.json {
            out!("{}", serde_json::to_string(&row).expect("a row is plain data"));
        } else {
            out!("{}", row.line());
        }
    }
    let measured = runs.len();
    if let Some(page) = page {
        let results = Results { file_header, runs };
        page.write(&report::page(&[results], &[], &[]))?;
    }
    if let Some(recorder) = &recorder {
        err!("{measured} of {} runs kept in {}", trials.len(), recorder.path().display());
    }
    if !choices.json {
        out!("invariants ok in every run");
    }
    Ok(if measured < trials.len() { ExitCode::from(130) } else { ExitCode::SUCCESS })
}

fn described(trial: &Trial) -> String {
    let Trial { policy, lanes, load, seed } = trial;
    format!("{policy} on {lanes} lanes at {load:.2}, seed {seed}")
}

/// Runs done and the time left, where standard error is a terminal.
fn progress(runs: usize) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len}, {eta} left: {msg}");
    ProgressBar::new(runs as u64).with_style(style.expect("a valid template"))
}
