//! `rheo sim`: scenarios on as many lanes as one likes, in virtual time.

mod cases;
mod queues;
mod rates;
mod sched;
mod setup;
mod slo;
mod throughput;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::costs::Costs;
use crate::record::{FileHeader, RecordedRow, Results, rows};
use crate::report;
use crate::scenario::AnyScenario;
use crate::sim::Simulator;
use crate::testbed::threads;
use indicatif::{ProgressBar, ProgressStyle};
use rheostat_base::Clock;
use rheostat_measure::record::TableRow;

pub(crate) use self::sched::{NOTE as SIMULATED_NOTE, SchedSetup};
use crate::commands::Failed;
use crate::commands::choices::Choices;
use crate::commands::page_file::PageFile;
use crate::commands::request_scenario;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:
  # what two cores cannot show
  rheo sim balance --cores 16
  rheo sim balance --cores 1,4,16,64 --policy rsspp,local-search --load 0.9
  rheo sim my-scenario.toml --costs my-machine.json --json
  # a scenario about requests, as `rheo sim sched`
  rheo sim schedulers --cores 8
  # without the pauses of the machine
  rheo sim balance --cores 2 --quiet-machine
  # latency objectives under a rising load
  rheo sim slo --cores 8
  # unequal flows, bursts, an elephant
  rheo sim cases
  # RSS, RSS++ and Dyssect at capacity
  rheo sim throughput
  # small packets, up to capacity and past it
  rheo sim rates
  # a service over TCP under each scheduler
  rheo sim sched
  # a queue for each server beside one for all, in theory
  rheo sim queues

Controller, policies, hash and traffic are those of a run; lanes, queues and time are simulated, with costs that
`rheo bench costs` measured. Lanes pause as those of that machine do, unless --quiet-machine is given. Runs are
kept in a file, from which `rheo bench report` draws. The exit status is 2 when a packet was lost or doubled.")]
pub(crate) struct Args {
    #[command(subcommand)]
    model: Option<Model>,
    /// A scenario that comes with rheostat, or a file.
    #[arg(required = true)]
    scenario: Option<String>,
    /// Numbers of lanes, each on a core, instead of those of the scenario.
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=256))]
    cores: Vec<u16>,
    /// A file of costs, instead of those that come with rheostat.
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Lanes never pause.
    #[arg(long)]
    quiet_machine: bool,
    #[command(flatten)]
    choices: Choices,
}

/// Simulations without a scenario.
#[derive(Debug, clap::Subcommand)]
enum Model {
    /// Simulate a queue for each server (k x M/G/1) beside one queue for all (M/G/k).
    Queues(queues::Args),
    /// Simulate traffic classes with latency objectives while the load rises (Dyssect's use case I).
    Slo(slo::Args),
    /// Simulate what each policy delivers where flows are unequal, come in bursts, or change their weight.
    Cases(cases::Args),
    /// Simulate what RSS, RSS++ and Dyssect deliver of a load as high as capacity (Dyssect's use case II).
    Throughput(throughput::Args),
    /// Simulate high rates of small packets, up to capacity and past it (Dyssect's use case III).
    Rates(rates::Args),
    /// Simulate a service over TCP under each way to schedule it over cores.
    Sched(sched::Args),
}

/// Simulates.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failed> {
    match (&args.model, &args.scenario) {
        (Some(Model::Queues(args)), _) => queues::run(args),
        (Some(Model::Slo(args)), _) => slo::run(args),
        (Some(Model::Cases(args)), _) => cases::run(args),
        (Some(Model::Throughput(args)), _) => throughput::run(args),
        (Some(Model::Rates(args)), _) => rates::run(args),
        (Some(Model::Sched(args)), _) => sched::run(args),
        (None, Some(scenario)) => run_scenario(args, scenario),
        (None, None) => unreachable!("clap requires a scenario"),
    }
}

fn run_scenario(args: &Args, scenario: &str) -> Result<ExitCode, Failed> {
    let choices = &args.choices;
    let scenario = match choices.scenario(scenario, &args.cores)? {
        AnyScenario::Packets(scenario) => *scenario,
        AnyScenario::Requests(mut scenario) => {
            scenario.simulation.pauses &= !args.quiet_machine;
            return request_scenario::simulate(&scenario, args.costs.as_deref(), choices);
        }
    };
    let page = choices.output.as_deref().map(PageFile::create).transpose()?;
    let (costs, file) = match &args.costs {
        Some(path) => (Costs::open(path)?, path.display().to_string()),
        None => (Costs::built_in(), Costs::built_in_name().to_owned()),
    };
    let about = format!("{file}: {}", costs.about);
    let file_header = FileHeader::simulated(&scenario, &crate::commands::BUILD, about.clone());
    let mut recorder = choices.recorder(&file_header)?;
    if !choices.json {
        out!("{}: {}", scenario.title, scenario.question);
        out!("simulated by rheo {}; costs: {about}", file_header.commit);
    }
    let noisy = !args.quiet_machine && costs.was_left_alone();
    if !args.quiet_machine && !noisy {
        err!("{file}: measured while something else ran on the machine; lanes do not pause");
    }
    let simulator = Simulator {
        scenario: &scenario,
        costs: &costs,
        noisy,
        stopwatch: Clock::new(),
        threads: threads(),
    };
    let bar = progress();
    let mut kept = Ok(());
    let runs = simulator.run(
        |run| {
            if let Some(recorder) = &mut recorder
                && kept.is_ok()
            {
                kept = recorder.add(run);
            }
        },
        |share| bar.set_position((share * STEPS as f64) as u64),
    );
    bar.finish_and_clear();
    let runs = runs?;
    kept?;
    let rows = rows(&runs, None);
    if !choices.json {
        out!("{}", RecordedRow::heading());
    }
    for row in &rows {
        if choices.json {
            out!("{}", serde_json::to_string(row).expect("a row is plain data"));
        } else {
            out!("{}", row.line());
        }
    }
    if let Some(page) = page {
        let results = Results { file_header, runs: runs.clone() };
        page.write(&report::page(&[results], &[], &[]))?;
    }
    if let Some(recorder) = &recorder {
        err!("{} runs kept in {}", runs.len(), recorder.path().display());
    }
    let is_sound = |row: &RecordedRow| (row.lost, row.duplicated) == (0, 0);
    Ok(if rows.iter().all(is_sound) { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// Steps of the bar.
const STEPS: u64 = 1_000;

/// How much is done and the time left, where standard error is a terminal.
fn progress() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {percent} %, {eta} left");
    ProgressBar::new(STEPS).with_style(style.expect("a valid template"))
}
