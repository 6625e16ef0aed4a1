//! What is measured, as data: a scenario is a TOML file that the benchmark on real lanes and the simulator
//! read alike. It is about packets that chains process, or about [requests](RequestScenario) of a service.

mod any;
mod line;
mod offloading;
mod parsed;
mod quantity;
pub mod requests;
mod traffic;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rheostat_steer::{Steering, SteeringError, dispatch, policy};
use rheostat_traffic::{RateStep, Source, Stepped};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::error::BenchError;
use crate::testbed::dut;
pub use any::AnyScenario;
pub use offloading::{LatencyGoals, Offloading};
pub use requests::RequestScenario;
pub use traffic::Traffic;

/// Traffic, chain, policies, lanes and load of a comparison, and how long and how often it runs.
///
/// Every policy is run on every number of lanes, under every load, with every seed. Runs that differ in the
/// policy alone see the same packets at the same times.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The name of its file, without the ending.
    #[serde(skip)]
    pub name: String,
    /// The text it was read from, kept with its results.
    #[serde(skip)]
    pub text: String,
    /// What it is about, in a few words.
    pub title: String,
    /// What it is to find out, in a sentence.
    pub question: String,
    /// The packets.
    pub traffic: Traffic,
    /// Whether the flows of the traffic are so many for each lane, and not all together.
    #[serde(default)]
    pub flows_per_lane: bool,
    /// What lanes do with a packet, beside [`work`](Self::work).
    #[serde(default)]
    pub chain: ChainName,
    /// Policies, by the names of [`policy::NAMES`]; the simulator also knows those of [`dispatch::NAMES`]. With `-again`
    /// behind it, a policy runs a second time, so that what is chance shows (A/A).
    pub policies: Vec<String>,
    /// Numbers of lanes.
    pub lanes: Vec<u16>,
    /// Loads, each as a share of what all lanes can do together. Either these or
    /// [`demands`](Self::demands).
    #[serde(default)]
    pub loads: Vec<f64>,
    /// Loads as the number of lanes that could just do it, however many there are: 4.5 keeps four lanes
    /// and a half busy.
    #[serde(default)]
    pub demands: Vec<f64>,
    /// Time that a lane spends on every packet beside the chain, the same for all (RSS++ 5.2: "a fixed
    /// per-packet workload"). Either this or [`rate`](Self::rate).
    #[serde(default, with = "quantity::optional_duration")]
    pub work: Option<Duration>,
    /// Packets per second, whatever the number of lanes: work per packet grows with the lanes (RSS++
    /// Figure 12b: W proportional to the number of cores).
    #[serde(default, with = "quantity::optional_packet_rate")]
    pub rate: Option<u64>,
    /// How the load changes while the run goes on; constant without any.
    #[serde(default, rename = "step")]
    pub steps: Vec<ScenarioStep>,
    /// What is not measured at the start of each run.
    #[serde(with = "quantity::duration")]
    pub warm_up: Duration,
    /// How long each run is measured after that.
    #[serde(with = "quantity::duration")]
    pub duration: Duration,
    /// One run per seed; what is random is drawn from it.
    pub seeds: Vec<u64>,
    /// The least number of lanes that a policy may keep active; all of them without it.
    #[serde(default)]
    pub min_lanes: Option<u16>,
    /// Which lanes may take single flows of others, where the policy decides about flows; none without it. On real lanes only.
    #[serde(default)]
    pub offloading: Option<Offloading>,
    /// Latencies that packets of signalling and others should not exceed. On real lanes only.
    #[serde(default, rename = "slo")]
    pub goals: Option<LatencyGoals>,
    /// Whether there may be more lanes than cores, which then take turns on them. A load of 1 is then what the cores can do:
    /// moves, order and shares of the throughput mean something, latencies do not.
    #[serde(default)]
    pub shares_cores: bool,
    /// Packets that a lane's receive queue holds (RSS++ 5.2: 4096).
    #[serde(default = "queue")]
    pub queue: u32,
    /// Entries of the indirection table.
    #[serde(default = "buckets")]
    pub buckets: usize,
    /// Shards, a power of two and at most as many as buckets.
    #[serde(default = "shards")]
    pub shards: usize,
}

/// What lanes run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChainName {
    /// The stateful firewall, which lets everything from inside out and picks connections up midway.
    #[default]
    Firewall,
    /// No function but the fixed work.
    Empty,
}

/// From a moment on, the load is another.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioStep {
    /// Counted from the start of the measurement, after the warm-up.
    #[serde(with = "quantity::duration")]
    pub at: Duration,
    /// By what the load of the scenario is multiplied from then on.
    pub factor: f64,
}

fn queue() -> u32 {
    4_096
}

fn buckets() -> usize {
    512
}

fn shards() -> usize {
    128
}

/// Why there is no such scenario.
#[derive(Debug, Error)]
pub enum ScenarioError {
    /// Neither a name nor a file.
    #[error("there is no scenario `{0}`; name a file that ends in .toml, or one of {list}", list = names().join(", "))]
    Unknown(String),
    /// The file cannot be read.
    #[error("{}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not a scenario; the message shows the line.
    #[error("{file}: {source}")]
    Parse {
        /// The file.
        file: String,
        /// Line, column and what is wrong.
        source: Box<toml::de::Error>,
    },
    /// It is about requests, and packets are what the command measures.
    #[error(
        "{0}: the scenario is about requests of a service: `rheo bench run` measures it, `rheo sim` simulates it"
    )]
    NoPackets(String),
    /// A value makes no sense.
    #[error("{file}{}: `{key}`: {problem}", in_line(*line))]
    Value {
        /// The file.
        file: String,
        /// Where in the file the key stands; `None` for a value from elsewhere.
        line: Option<usize>,
        /// The key.
        key: &'static str,
        /// What is wrong, and what would be right.
        problem: String,
    },
}

fn in_line(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!(", line {line}"))
}

/// The scenarios that come with rheostat, by name.
const BUILT_IN: &[(&str, &str)] = &[
    ("balance", include_str!("../scenarios/balance.toml")),
    ("balance-many", include_str!("../scenarios/balance-many.toml")),
    ("validation", include_str!("../scenarios/validation.toml")),
    ("surge", include_str!("../scenarios/surge.toml")),
    ("fairness", include_str!("../scenarios/fairness.toml")),
    ("tail", include_str!("../scenarios/tail.toml")),
    ("cores", include_str!("../scenarios/cores.toml")),
    ("solver", include_str!("../scenarios/solver.toml")),
    ("overload", include_str!("../scenarios/overload.toml")),
    ("prioritisation", include_str!("../scenarios/prioritisation.toml")),
    ("small-packets", include_str!("../scenarios/small-packets.toml")),
    ("schedulers", include_str!("../scenarios/schedulers.toml")),
];

/// Behind the name of a policy: the same once more. What two runs of one policy differ by is chance, and a gain
/// within it shows nothing.
const AGAIN: &str = "-again";

/// The policy that a name of a scenario means: `rss-again` is `rss`.
pub fn policy_of(name: &str) -> &str {
    name.strip_suffix(AGAIN).unwrap_or(name)
}

/// What a policy is called where it runs once more.
pub(crate) fn again(policy: &str) -> String {
    format!("{policy}{AGAIN}")
}

/// A key, and what is wrong with its value.
type ScenarioProblem = (&'static str, String);

impl ScenarioError {
    /// A value of a scenario is wrong: with its line, where `text` is what was read.
    fn of(name: &str, text: Option<&str>, (key, problem): ScenarioProblem) -> ScenarioError {
        let line = text.and_then(|text| line::line_of(text, key));
        ScenarioError::Value { file: name.to_owned(), line, key, problem }
    }
}

/// What a text of TOML has.
fn read<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, ScenarioError> {
    toml::from_str(text)
        .map_err(|source| ScenarioError::Parse { file: name.to_owned(), source: Box::new(source) })
}

/// The names of the scenarios that come with rheostat.
pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

impl Scenario {
    /// The scenario about packets of this name, or in this file.
    ///
    /// # Errors
    /// [`ScenarioError`] when there is none, or it is wrong.
    pub fn open(name: &str) -> Result<Scenario, ScenarioError> {
        match AnyScenario::open(name)? {
            AnyScenario::Packets(scenario) => Ok(*scenario),
            AnyScenario::Requests(_) => Err(ScenarioError::NoPackets(name.to_owned())),
        }
    }

    /// Reads a scenario from its text.
    ///
    /// # Errors
    /// [`ScenarioError::Parse`] and [`ScenarioError::Value`].
    pub fn parse(name: &str, text: &str) -> Result<Scenario, ScenarioError> {
        let mut scenario: Scenario = read(name, text)?;
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

    fn problem(&self) -> Option<ScenarioProblem> {
        let known: Vec<&str> = policy::NAMES.into_iter().chain(dispatch::NAMES).collect();
        if let Some(name) = self.policies.iter().find(|name| !known.contains(&policy_of(name))) {
            let hint = policy::spelled_as(name)
                .map_or_else(String::new, |known| format!("did you mean `{known}`? "));
            return Some((
                "policies",
                format!("there is no `{name}`; {hint}write any of {}", known.join(", ")),
            ));
        }
        let empty = |what: &str| format!("needs at least one {what}");
        if self.policies.is_empty() {
            return Some(("policies", empty("policy")));
        }
        if self.lanes.is_empty() || self.lanes.iter().any(|&lanes| !(1..=256).contains(&lanes)) {
            return Some(("lanes", "needs numbers from 1 to 256".into()));
        }
        if self.seeds.is_empty() {
            return Some(("seeds", empty("seed")));
        }
        if self.loads.is_empty() == self.demands.is_empty() {
            return Some(("loads", "write either `loads` or `demands`, and not both".into()));
        }
        let positive = |value: &f64| value.is_finite() && *value > 0.0;
        if !self.loads.iter().all(|load| positive(load) && *load <= 10.0) {
            return Some((
                "loads",
                "a load is a share of what all lanes can do: above 0, at most 10".into(),
            ));
        }
        if !self.demands.iter().all(positive) {
            return Some(("demands", "a demand is a number of lanes above 0".into()));
        }
        if self.shares_cores && self.loads.is_empty() {
            let what = "lanes that share cores take `loads`, shares of what the cores can do";
            return Some(("demands", what.into()));
        }
        if self.work.is_some() == self.rate.is_some() {
            return Some(("work", "write either `work` or `rate`, and not both".into()));
        }
        if self.duration.is_zero() {
            return Some(("duration", "has to be longer than nothing".into()));
        }
        if !self.shards.is_power_of_two()
            || !self.buckets.is_power_of_two()
            || self.shards > self.buckets
        {
            return Some((
                "shards",
                "shards and buckets are powers of two, and there are no more shards than buckets"
                    .into(),
            ));
        }
        if !(1..=1 << 20).contains(&self.queue) {
            return Some(("queue", "holds from 1 to 1048576 packets".into()));
        }
        if self.min_lanes.is_some_and(|min| min == 0 || self.lanes.iter().any(|&lanes| lanes < min))
        {
            return Some(("min_lanes", "lies between 1 and the least of `lanes`".into()));
        }
        if let Some(offloading) = self.offloading
            && self.lanes.iter().any(|&lanes| offloading.most >= lanes)
        {
            return Some(("offloading", "leaves at least one of `lanes` to work".into()));
        }
        let rising = self.steps.windows(2).all(|pair| pair[0].at < pair[1].at);
        if !rising || !self.steps.iter().all(|step| step.factor.is_finite() && step.factor >= 0.0) {
            return Some((
                "step",
                "steps follow each other in time, and factors are not negative".into(),
            ));
        }
        self.traffic.problem()
    }

    /// Its packets where there are so many lanes.
    pub fn traffic_on(&self, lanes: u16) -> Traffic {
        self.traffic.with_more_flows(if self.flows_per_lane { lanes } else { 1 })
    }

    /// Its packets on so many lanes: at `packets_per_second`, times the factor of the step that holds. The clock begins with the
    /// warm-up.
    ///
    /// # Errors
    /// As [`Traffic::source`].
    pub fn source(
        &self,
        lanes: u16,
        packets_per_second: u64,
        seed: u64,
    ) -> Result<Box<dyn Source>, BenchError> {
        let source = self.traffic_on(lanes).source(packets_per_second, seed)?;
        if self.steps.is_empty() {
            return Ok(source);
        }
        let step = |&ScenarioStep { at, factor }: &ScenarioStep| RateStep {
            at: self.warm_up + at,
            factor,
        };
        Ok(Box::new(Stepped::new(source, self.steps.iter().map(step).collect())?))
    }

    /// How its packets are placed: clients are in 10.0.0.0/8 and fd00::/8.
    ///
    /// # Errors
    /// [`SteeringError`] when buckets and shards do not fit.
    pub fn steering(&self) -> Result<Steering, SteeringError> {
        dut::steering(self.buckets, self.shards)
    }

    /// Takes the packets of a capture instead, in a loop and in so many parallel copies, each with hosts of its own.
    pub fn replay(&mut self, capture: &Path, copies: u16) {
        let stem = capture.file_stem().unwrap_or_default().to_string_lossy();
        self.name = format!("{}-{stem}", self.name);
        self.traffic = Traffic::replay(capture.to_owned(), copies);
    }

    /// The loads to run `lanes` lanes under, each as a share of what all of them can do.
    pub fn loads_on(&self, lanes: u16) -> Vec<f64> {
        let of_demands = self.demands.iter().map(|demand| demand / f64::from(lanes));
        self.loads.iter().copied().chain(of_demands).collect()
    }
}

#[cfg(test)]
mod tests;
