//! What can be chosen of a scenario on the command line, and where its runs are kept.

use std::path::PathBuf;
use std::time::Duration;

use rheostat_base::unit::parse_duration;
use rheostat_measure::record::RowRecorder;
use thiserror::Error;

use crate::commands::Failed;
use crate::record::{FileHeader, RecordError, Recorder, RequestScenarioHeader};
use crate::scenario::{AnyScenario, RequestScenario, Scenario};

/// An option that does not concern the scenario.
#[derive(Debug, Error)]
#[error("the scenario `{scenario}` is about {subject}: leave {option} out")]
struct Misplaced {
    option: &'static str,
    scenario: String,
    subject: &'static str,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Choices {
    /// Policies, and where lanes are simulated also dispatchers, instead of those of the scenario.
    #[arg(long = "policy", value_name = "NAME", value_delimiter = ',')]
    policies: Vec<String>,
    /// Schedulers, instead of those of a scenario about requests.
    #[arg(long = "scheduler", value_name = "NAME", value_delimiter = ',')]
    schedulers: Vec<String>,
    /// Loads, each as a share of what all lanes can do, or of the capacity that a scenario about requests goes by.
    #[arg(long = "load", value_name = "SHARE", value_delimiter = ',')]
    loads: Vec<f64>,
    /// Packets of a capture, in a loop, instead of those of the scenario.
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Copies of the capture that are played in parallel, each with hosts of its own.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "capture",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    copies: u16,
    /// So many runs per row, each with a seed of its own; six or more give an interval of 95 %. Of requests, so many rounds.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    seeds: Option<u16>,
    /// How long each run is measured, on its own clock; of requests, how long a window is.
    #[arg(long, value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Where to keep the runs.
    #[arg(long, value_name = "DIR", default_value = "results", conflicts_with = "no_results")]
    results: PathBuf,
    /// Keep nothing.
    #[arg(long)]
    no_results: bool,
    /// Also write a page with charts.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print rows as lines of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Choices {
    /// The scenario of this name or file with what was chosen, and other numbers of lanes or workers, if any are given.
    pub(crate) fn scenario(&self, name: &str, lanes: &[u16]) -> Result<AnyScenario, Failed> {
        let mut scenario = AnyScenario::open(name)?;
        match &mut scenario {
            AnyScenario::Packets(scenario) => self.change_packets(scenario, lanes)?,
            AnyScenario::Requests(scenario) => self.change_requests(scenario, lanes)?,
        }
        Ok(scenario)
    }

    fn change_packets(&self, scenario: &mut Scenario, lanes: &[u16]) -> Result<(), Failed> {
        if !self.schedulers.is_empty() {
            return Err(misplaced("--scheduler", &scenario.name, "packets"));
        }
        if !self.policies.is_empty() {
            scenario.policies.clone_from(&self.policies);
        }
        if !lanes.is_empty() {
            scenario.lanes = lanes.to_vec();
        }
        if !self.loads.is_empty() {
            scenario.loads.clone_from(&self.loads);
            scenario.demands.clear();
        }
        if let Some(capture) = &self.capture {
            scenario.replay(capture, self.copies);
        }
        if let Some(seeds) = self.seeds {
            scenario.seeds = (1..=u64::from(seeds)).collect();
        }
        if let Some(duration) = self.duration {
            scenario.duration = duration;
        }
        Ok(scenario.check()?)
    }

    fn change_requests(
        &self,
        scenario: &mut RequestScenario,
        workers: &[u16],
    ) -> Result<(), Failed> {
        if !self.policies.is_empty() {
            return Err(misplaced("--policy", &scenario.name, "requests"));
        }
        if self.capture.is_some() {
            return Err(misplaced("--capture", &scenario.name, "requests"));
        }
        if !self.schedulers.is_empty() {
            scenario.replace_schedulers(&self.schedulers)?;
        }
        if !workers.is_empty() {
            scenario.workers = workers.to_vec();
        }
        if !self.loads.is_empty() {
            scenario.loads.clone_from(&self.loads);
            scenario.rates.clear();
        }
        scenario.rounds = self.seeds.unwrap_or(scenario.rounds);
        scenario.window = self.duration.unwrap_or(scenario.window);
        Ok(scenario.check()?)
    }

    /// Keeps rows, unless nothing is to be kept.
    pub(crate) fn row_recorder(
        &self,
        header: &RequestScenarioHeader,
    ) -> Result<Option<RowRecorder>, rheostat_measure::record::RecordError> {
        let create = || RowRecorder::create(&self.results, &header.file_name(), header);
        (!self.no_results).then(create).transpose()
    }

    /// Keeps the runs, unless nothing is to be kept.
    pub(crate) fn recorder(
        &self,
        file_header: &FileHeader,
    ) -> Result<Option<Recorder>, RecordError> {
        (!self.no_results).then(|| Recorder::create(&self.results, file_header)).transpose()
    }
}

fn misplaced(option: &'static str, scenario: &str, subject: &'static str) -> Failed {
    Misplaced { option, scenario: scenario.to_owned(), subject }.into()
}
