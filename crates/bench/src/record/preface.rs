//! What a file of results begins with.

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::noise::Noise;

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
