//! A comparison of schedulers of a service, as data.

mod run;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use rheostat_base::unit::parse_count;
use rheostat_load::ArrivalProcess;
use rheostat_packet::BURST;
use rheostat_serve::work::ServiceTimes;
use rheostat_tcp::sched::{Scheduler, SchedulerName};
use serde::Deserialize;

pub use self::run::SimulationError;
use super::{ScenarioError, ScenarioProblem, parsed, quantity, read};
use crate::offered_load::OfferedLoad;
use crate::sched::RigWorkload;
use crate::sim::sched::{CONNECTIONS, CostsSource, HIGHEST_LOAD, MOST_CORES, Workload};

/// Requests, schedulers, workers and loads of a comparison, and how long and how often it is measured.
///
/// Every scheduler is measured on every number of workers, with every workload at every load. All get the same requests.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestScenario {
    /// The name of its file, without the ending.
    #[serde(skip)]
    pub name: String,
    /// The text it was read from, kept with its results.
    #[serde(skip)]
    pub text: String,
    /// The folder of its file.
    #[serde(skip)]
    pub(super) folder: PathBuf,
    /// What it is about, in a few words.
    pub title: String,
    /// What it is to find out, in a sentence.
    pub question: String,
    /// Where `rheo bench run` runs it; `rheo sim` simulates it in any case.
    #[serde(default)]
    pub rig: Rig,
    /// Schedulers to compare, the one first of whose capacity loads are shares on the rig `pumped`.
    #[serde(deserialize_with = "parsed::list")]
    pub schedulers: Vec<SchedulerName>,
    /// Numbers of workers, each on a core. A dispatcher has as many as its name states.
    pub workers: Vec<u16>,
    /// Loads as shares: on the rig `pumped` of the capacity of the first scheduler, in simulation of what the cores could do if
    /// TCP and the application were all there is to do. Either these or [`rates`](Self::rates).
    #[serde(default)]
    pub loads: Vec<f64>,
    /// Loads in requests per second (`"400k"`).
    #[serde(default)]
    pub rates: Vec<RequestRate>,
    /// Rounds, in each of which schedulers are measured in turn. A simulation has one, and ends when p99.9 is known.
    #[serde(default = "rounds")]
    pub rounds: u16,
    /// Windows of each load in each round.
    #[serde(default = "windows")]
    pub windows: u16,
    /// How long a window is, at least.
    #[serde(default = "window", with = "quantity::duration")]
    pub window: Duration,
    /// Whether to time the stages of requests, on the rig `pumped`.
    #[serde(default)]
    pub times: bool,
    /// Decides about requests.
    #[serde(default = "seed")]
    pub seed: u64,
    /// The service and its clients.
    pub service: Service,
    /// What a simulation has to know.
    #[serde(default)]
    pub simulation: Simulation,
}

/// Where a scenario runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rig {
    /// On lanes of this machine, with clients inside the process: as `rheo bench sched`.
    #[default]
    Pumped,
    /// In virtual time: as `rheo sim sched`.
    Simulated,
}

/// What requests are, and how they arrive.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// What the application does: `null`, or service times as `rheo serve work --service` has them, with a class for each
    /// `share:time` (`"1us"`, `"bimodal-1"`, `"exponential:10us"`, `"0.9:1us,0.1:20us"`); `constant-1us` is `1us`.
    pub workloads: Vec<ServiceWorkload>,
    /// Connections for each worker that runs the application.
    #[serde(default = "connections")]
    pub connections: u32,
    /// Requests that a member of a central queue may hold: 1, or 2 to hide the hand-off.
    #[serde(default = "one")]
    pub outstanding: u32,
    /// Packets that a worker takes at a time of a receive queue that others take from, too: 1 to 32.
    #[serde(default = "one")]
    pub burst: u32,
    /// The gaps between requests.
    #[serde(default = "arrivals", deserialize_with = "parsed::one")]
    pub arrivals: ArrivalProcess,
}

/// What a simulation has to know beside the rest.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Simulation {
    /// What requests cost beside the application: `thesis`, or `measured:FILE`, as seen from the folder of the scenario.
    #[serde(deserialize_with = "parsed::one")]
    pub costs: CostsSource,
    /// Nanoseconds that a queue's lock takes whose last holder was another worker, instead of that of the costs.
    pub lock: Option<f64>,
    /// Whether workers pause as lanes did on the machine whose costs come with rheostat.
    pub pauses: bool,
    /// Whether to simulate until p99.99 is known as well.
    pub full: bool,
    /// Whether to add what is possible without any cost of scheduling.
    pub ideals: bool,
}

/// Requests per second.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct RequestRate(#[serde(deserialize_with = "request_rate")] pub u64);

/// A workload by either of its names.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct ServiceWorkload(#[serde(deserialize_with = "workload")] pub RigWorkload);

fn request_rate<'a, D: serde::Deserializer<'a>>(from: D) -> Result<u64, D::Error> {
    parse_count(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

fn workload<'a, D: serde::Deserializer<'a>>(from: D) -> Result<RigWorkload, D::Error> {
    let text = String::deserialize(from)?;
    match text.parse::<RigWorkload>() {
        Ok(workload) => Ok(workload),
        Err(_) if text.starts_with("constant") => {
            let problem = format!("`{text}` is no workload: write constant-10us, or 10us");
            Err(serde::de::Error::custom(problem))
        }
        Err(_) => match text.parse::<ServiceTimes>() {
            Ok(times) => Ok(RigWorkload::from(times)),
            Err(error) => Err(serde::de::Error::custom(error)),
        },
    }
}

fn rounds() -> u16 {
    3
}

fn windows() -> u16 {
    2
}

fn window() -> Duration {
    Duration::from_millis(250)
}

fn seed() -> u64 {
    1
}

fn connections() -> u32 {
    CONNECTIONS
}

fn one() -> u32 {
    1
}

fn arrivals() -> ArrivalProcess {
    ArrivalProcess::Exponential
}

impl RequestScenario {
    /// Reads a scenario from its text.
    pub(super) fn parse(name: &str, text: &str) -> Result<RequestScenario, ScenarioError> {
        let mut scenario: RequestScenario = read(name, text)?;
        scenario.name = name.to_owned();
        scenario.text = text.to_owned();
        let wrong = |problem| Err(ScenarioError::of(name, Some(text), problem));
        scenario.problem().map_or(Ok(()), wrong)?;
        Ok(scenario)
    }

    /// Whether it is still consistent after changes.
    ///
    /// # Errors
    /// [`ScenarioError::Value`].
    pub fn check(&self) -> Result<(), ScenarioError> {
        let wrong = |problem| Err(ScenarioError::of(&self.name, None, problem));
        self.problem().map_or(Ok(()), wrong)
    }

    /// Takes other schedulers.
    ///
    /// # Errors
    /// [`ScenarioError::Value`] for a name of none.
    pub fn replace_schedulers(&mut self, names: &[String]) -> Result<(), ScenarioError> {
        let parse = |name: &String| name.parse::<SchedulerName>();
        let parsed: Result<Vec<_>, _> = names.iter().map(parse).collect();
        let wrong = |error: rheostat_tcp::sched::SchedulerError| ScenarioError::Value {
            file: self.name.clone(),
            line: None,
            key: "schedulers",
            problem: error.to_string(),
        };
        self.schedulers = parsed.map_err(wrong)?;
        Ok(())
    }

    /// The loads.
    pub fn offered(&self) -> Vec<OfferedLoad> {
        let rates = self.rates.iter().map(|rate| OfferedLoad::Rate(rate.0 as f64));
        self.loads.iter().copied().map(OfferedLoad::Share).chain(rates).collect()
    }

    /// The workloads.
    pub fn workloads(&self) -> impl Iterator<Item = &RigWorkload> {
        self.service.workloads.iter().map(|workload| &workload.0)
    }

    fn problem(&self) -> Option<ScenarioProblem> {
        let in_simulation = || match self.rig {
            Rig::Pumped => None,
            Rig::Simulated => self.problem_in_simulation(),
        };
        self.problem_of_lists().or_else(|| self.problem_of_numbers()).or_else(in_simulation)
    }

    fn problem_of_lists(&self) -> Option<ScenarioProblem> {
        let empty = |what: &str| format!("needs at least one {what}");
        if self.schedulers.is_empty() {
            return Some(("schedulers", empty("scheduler, such as \"inline-dfcfs\"")));
        }
        if self.service.workloads.is_empty() {
            return Some(("service.workloads", empty("workload, such as \"1us\"")));
        }
        let workers = 1..=MOST_CORES;
        if self.workers.is_empty() || self.workers.iter().any(|count| !workers.contains(count)) {
            return Some(("workers", format!("needs numbers from 1 to {MOST_CORES}")));
        }
        if self.loads.is_empty() == self.rates.is_empty() {
            let key = if self.rates.is_empty() { "loads" } else { "rates" };
            return Some((key, "write either `loads` or `rates`, and not both".into()));
        }
        if !self.loads.iter().all(|load| *load > 0.0 && *load <= HIGHEST_LOAD) {
            let range = format!("a load is a share of a capacity: above 0, at most {HIGHEST_LOAD}");
            return Some(("loads", range));
        }
        if !self.rates.iter().all(|rate| (1..=1_000_000_000).contains(&rate.0)) {
            return Some(("rates", "a rate is between 1 and 1G requests per second".into()));
        }
        None
    }

    fn problem_of_numbers(&self) -> Option<ScenarioProblem> {
        let window = Duration::from_millis(1)..=Duration::from_secs(10);
        let lock = 0.0..=1e6;
        for (key, is_possible, range) in [
            ("rounds", (1..=1_000).contains(&self.rounds), "between 1 and 1000"),
            ("windows", (1..=100).contains(&self.windows), "between 1 and 100"),
            ("window", window.contains(&self.window), "between 1ms and 10s"),
            (
                "service.connections",
                (1..=16_384).contains(&self.service.connections),
                "between 1 and 16384 for each worker",
            ),
            (
                "service.outstanding",
                (1..=2).contains(&self.service.outstanding),
                "1, or 2 to hide the hand-off",
            ),
            ("service.burst", (1..=BURST as u32).contains(&self.service.burst), "between 1 and 32"),
            (
                "simulation.lock",
                self.simulation.lock.is_none_or(|ns| lock.contains(&ns)),
                "between 0 and 1000000 nanoseconds",
            ),
        ] {
            if !is_possible {
                return Some((key, range.to_owned()));
            }
        }
        None
    }

    /// What cannot be simulated.
    fn problem_in_simulation(&self) -> Option<ScenarioProblem> {
        if self.service.arrivals != ArrivalProcess::Exponential {
            let what =
                "a simulation has exponential gaps; leave this out, or take rig = \"pumped\"";
            return Some(("service.arrivals", what.into()));
        }
        if self.times {
            let what = "a simulation times no stages; leave this out, or take rig = \"pumped\"";
            return Some(("times", what.into()));
        }
        let simulated = |workload: &&RigWorkload| workload.simulated().is_none();
        if let Some(workload) = self.workloads().find(simulated) {
            return Some((
                "service.workloads",
                format!(
                    "`{workload}` is not simulated: take a constant time, exponential:TIME, bimodal-1, bimodal-2 or two classes \
                     of 10ns to 10ms, or rig = \"pumped\""
                ),
            ));
        }
        let fit = |workers: &u16| {
            self.schedulers.iter().find_map(|name| Scheduler::on_cores(*name, *workers).err())
        };
        self.workers.iter().find_map(fit).map(|error| ("schedulers", error.to_string()))
    }

    /// The workloads as the simulation has them.
    ///
    /// # Errors
    /// [`ScenarioError::Value`] for what cannot be simulated.
    fn simulated_workloads(&self) -> Result<Vec<Workload>, ScenarioError> {
        match self.problem_in_simulation() {
            None => Ok(self.workloads().filter_map(RigWorkload::simulated).collect()),
            Some(problem) => Err(ScenarioError::of(&self.name, Some(&self.text), problem)),
        }
    }
}
