//! How rows are told, one by one as they are measured.

use std::fmt::Display;

use rheostat_bench::machine::Machine;
use serde::Serialize;

/// Prints rows for people, or for programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    json: bool,
}

impl Rows {
    /// People are told first what is measured on what, and what the columns are, if there are columns.
    pub(super) fn begin(json: bool, heading: &str) -> Rows {
        if !json {
            out!("{}, rheo {}", Machine::this(), env!("RHEO_COMMIT"));
        }
        if !json && !heading.is_empty() {
            out!("{heading}");
        }
        Rows { json }
    }

    /// A row: to programs a line of JSON, to people `line`.
    pub(super) fn print(self, row: &impl Serialize, line: impl Display) {
        if self.json {
            out!("{}", serde_json::to_string(row).expect("a row is plain data"));
        } else {
            out!("{line}");
        }
    }
}
