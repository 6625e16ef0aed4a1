//! What simulations without a scenario are given, and how they print.

use std::path::PathBuf;
use std::process::ExitCode;

use rheostat_measure::record::{Header, TableRow};

use crate::commands::Failed;
use crate::costs::Costs;

#[derive(Debug, clap::Args)]
pub(super) struct Setup {
    /// A file of costs, instead of those that come with rheostat.
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Decides about packets.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Print rows as lines of JSON.
    #[arg(long)]
    pub(super) json: bool,
}

impl Setup {
    /// The costs, of which people are told.
    pub(super) fn costs(&self) -> Result<Costs, Failed> {
        let costs = match &self.costs {
            Some(path) => Costs::open(path)?,
            None => Costs::built_in(),
        };
        if !self.json {
            out!(
                "simulated by rheo {}; costs: {}",
                Header::new(&crate::commands::BUILD).commit,
                costs.about
            );
        }
        Ok(costs)
    }

    /// Rows: lines of JSON for programs, a table for people.
    pub(super) fn print<R: TableRow>(&self, rows: &[R]) {
        if !self.json {
            out!("{}", R::heading());
        }
        for row in rows {
            if self.json {
                out!("{}", serde_json::to_string(row).expect("a row is plain data"));
            } else {
                out!("{}", row.line());
            }
        }
    }
}

/// The exit status: whether no packet was lost, doubled or overtaken in any run.
pub(super) fn verdict(faults: impl IntoIterator<Item = u64>) -> ExitCode {
    let is_sound = faults.into_iter().all(|faults| faults == 0);
    if is_sound { ExitCode::SUCCESS } else { ExitCode::from(2) }
}
