//! Printing rows, one by one as they are measured.

use std::fmt::Display;

use rheostat_measure::record::{Build, Header};
use serde::Serialize;

/// Prints rows for people, or for programs.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    json: bool,
}

impl Rows {
    /// Prints the header, which names machine, and commit and profile of `build`, and above a table its `heading`.
    pub fn begin(build: &Build, json: bool, heading: &str) -> Rows {
        let header = Header::new(build);
        if json {
            out!("{}", serde_json::to_string(&header).expect("a header is plain data"));
        } else {
            out!("{}, rheo {} ({})", header.machine, header.commit, header.profile);
        }
        if !json && !heading.is_empty() {
            out!("{heading}");
        }
        Rows { json }
    }

    /// A row: to programs a line of JSON, to people `line`.
    pub fn print(self, row: &impl Serialize, line: impl Display) {
        if self.json {
            out!("{}", serde_json::to_string(row).expect("a row is plain data"));
        } else {
            out!("{line}");
        }
    }
}
