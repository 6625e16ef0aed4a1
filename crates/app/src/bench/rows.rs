//! Printing rows, one by one as they are measured.

use std::fmt::Display;

use rheostat_measure::record::{Build, Header, TableRow};
use serde::Serialize;

/// Prints rows for people, or for programs.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    json: bool,
}

impl Rows {
    /// Prints the header, which names machine, and commit and profile of `build`.
    pub fn begin(build: &Build, json: bool) -> Rows {
        let header = Header::new(build);
        if json {
            out!("{}", serde_json::to_string(&header).expect("a header is plain data"));
        } else {
            out!("{}, rheo {} ({})", header.machine, header.commit, header.profile);
        }
        Rows { json }
    }

    /// The same, and for people the heading of a table of rows `R`.
    pub fn table<R: TableRow>(build: &Build, json: bool) -> Rows {
        let rows = Rows::begin(build, json);
        rows.heading::<R>();
        rows
    }

    /// For people, the heading of a table of rows `R`.
    pub fn heading<R: TableRow>(self) {
        if !self.json {
            out!("{}", R::heading());
        }
    }

    /// A row of a table.
    pub fn print<R: TableRow>(self, row: &R) {
        if self.json { self.print_as(row, "") } else { out!("{}", row.line()) }
    }

    /// A row without columns: to programs a line of JSON, to people `text`.
    pub fn print_as(self, row: &impl Serialize, text: impl Display) {
        if self.json {
            out!("{}", serde_json::to_string(row).expect("a row is plain data"));
        } else {
            out!("{text}");
        }
    }
}
