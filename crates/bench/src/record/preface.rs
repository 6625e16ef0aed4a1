//! What a file of results begins with.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::noise::Noise;
use crate::scenario::Scenario;

/// Everything that a figure can be traced to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preface {
    /// The command line.
    pub command: String,
    /// The commit that `rheo` was built from.
    pub commit: String,
    /// The machine it ran on.
    pub machine: Machine,
    /// When it was started, in UTC, such as `2026-11-21T20:30:00Z`.
    pub started: String,
    /// The scenario's name.
    pub scenario: String,
    /// Its title.
    pub title: String,
    /// What it is to find out.
    pub question: String,
    /// The whole text of the scenario.
    pub text: String,
    /// What the machine itself does to latencies; `null` where nothing ran in real time.
    pub noise: Option<Noise>,
    /// The costs that a simulation used: the file's name and the first line of it that says where they are
    /// from. `null` for real runs.
    pub costs: Option<String>,
    /// Whether the runs are simulated.
    pub simulated: bool,
}

impl Preface {
    /// That of real runs of `scenario` which this process makes from now on, built from `commit`.
    pub fn real(scenario: &Scenario, commit: &str, noise: Noise) -> Preface {
        Preface { noise: Some(noise), ..Preface::of(scenario, commit) }
    }

    /// That of runs of `scenario` which this process simulates from now on, with costs that say of
    /// themselves where they are from.
    pub fn simulated(scenario: &Scenario, commit: &str, costs: String) -> Preface {
        Preface { costs: Some(costs), simulated: true, ..Preface::of(scenario, commit) }
    }

    fn of(scenario: &Scenario, commit: &str) -> Preface {
        // Arguments with blanks in them are rare, and a reader knows where they belong.
        let arguments = std::env::args().skip(1);
        let command = std::iter::once("rheo".to_owned()).chain(arguments).collect::<Vec<_>>();
        Preface {
            command: command.join(" "),
            commit: commit.to_owned(),
            machine: Machine::this(),
            started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            scenario: scenario.name.clone(),
            title: scenario.title.clone(),
            question: scenario.question.clone(),
            text: scenario.text.clone(),
            noise: None,
            costs: None,
            simulated: false,
        }
    }
}
