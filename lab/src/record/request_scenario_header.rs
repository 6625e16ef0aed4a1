//! What a file of rows of a scenario about requests begins with.

use rheostat_measure::record::{Build, Header};
use serde::{Deserialize, Serialize};

use crate::scenario::RequestScenario;

/// Everything that its figures can be traced to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestScenarioHeader {
    /// The command, the build, the machine and the time.
    #[serde(flatten)]
    pub header: Header,
    /// The scenario's name.
    pub scenario: String,
    /// Its title.
    pub title: String,
    /// What it is to find out.
    pub question: String,
    /// The whole text of the scenario.
    pub text: String,
    /// The costs that a simulation uses, by what they state of themselves; `null` for measured rows.
    pub costs: Option<String>,
}

impl RequestScenarioHeader {
    /// That of what this process measures from now on, or simulates with costs that state this of themselves.
    pub fn new(scenario: &RequestScenario, build: &Build, costs: Option<String>) -> Self {
        RequestScenarioHeader {
            header: Header::new(build),
            scenario: scenario.name.clone(),
            title: scenario.title.clone(),
            question: scenario.question.clone(),
            text: scenario.text.clone(),
            costs,
        }
    }

    /// The name of its file: the rig, the scenario and the time.
    pub fn file_name(&self) -> String {
        let rig = if self.costs.is_some() { "sim" } else { "bench" };
        let time = self.header.started.replace([':', '-'], "");
        format!("{rig}-{}-{time}.jsonl", self.scenario)
    }
}
