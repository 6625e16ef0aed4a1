//! What a file of results begins with.

use rheostat_measure::machine::Machine;
use rheostat_measure::record::{Build, Header, unknown_profile};
use serde::{Deserialize, Serialize};

use crate::noise::Noise;
use crate::scenario::Scenario;

/// Everything that a figure can be traced to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileHeader {
    /// The command line.
    pub command: String,
    /// The commit that `rheo` was built from.
    pub commit: String,
    /// The cargo profile that it was built with; `unknown` in files from before it was written.
    #[serde(default = "unknown_profile")]
    pub profile: String,
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
    /// The costs that a simulation used: the file's name and the first line of it that states where they are
    /// from. `null` for real runs.
    pub costs: Option<String>,
    /// Whether the runs are simulated.
    pub simulated: bool,
}

impl FileHeader {
    /// That of real runs of `scenario` which this process makes from now on.
    pub fn real(scenario: &Scenario, build: &Build, noise: Noise) -> FileHeader {
        FileHeader { noise: Some(noise), ..FileHeader::of(scenario, build) }
    }

    /// That of runs of `scenario` which this process simulates from now on, with costs that say of
    /// themselves where they are from.
    pub fn simulated(scenario: &Scenario, build: &Build, costs: String) -> FileHeader {
        FileHeader { costs: Some(costs), simulated: true, ..FileHeader::of(scenario, build) }
    }

    fn of(scenario: &Scenario, build: &Build) -> FileHeader {
        let Header { command, commit, profile, machine, started } = Header::new(build);
        FileHeader {
            command,
            commit,
            profile,
            machine,
            started,
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
