//! Where rows of figures come from.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::machine::Machine;

/// The build of `rheo` that measures. Figures that are committed come from the profile `dist` alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// The commit it was built from; ends in `+changes` where files had been changed.
    pub commit: &'static str,
    /// The cargo profile: `dist`, `release`, `debug`.
    pub profile: &'static str,
}

/// What a list of rows begins with, as one line of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The command line.
    pub command: String,
    /// The commit that `rheo` was built from.
    pub commit: String,
    /// The cargo profile that it was built with.
    pub profile: String,
    /// The machine it ran on.
    pub machine: Machine,
    /// When it was started, in UTC, such as `2026-11-21T20:30:00Z`.
    pub started: String,
}

impl Header {
    /// That of what this process measures from now on.
    pub fn new(build: &Build) -> Header {
        // Arguments with blanks in them are rare, and a reader knows where they belong.
        let arguments = std::env::args().skip(1);
        let command = std::iter::once("rheo".to_owned()).chain(arguments).collect::<Vec<_>>();
        Header {
            command: command.join(" "),
            commit: build.commit.to_owned(),
            profile: build.profile.to_owned(),
            machine: Machine::this(),
            started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        }
    }
}

/// The profile of results that were written before results named it.
pub fn unknown_profile() -> String {
    "unknown".to_owned()
}
