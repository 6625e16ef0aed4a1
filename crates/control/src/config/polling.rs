//! `[polling]`: what a worker does when its lanes have no packets.

use std::fmt;

use crate::findings::Findings;
use crate::reader::Table;
use crate::reader::convert::kind;

/// What an idle worker does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PollingConfig {
    /// Polls on: the lowest latency, at the price of the whole core.
    #[default]
    Busy,
}

impl fmt::Display for PollingConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PollingConfig::Busy => "busy",
        })
    }
}

impl PollingConfig {
    pub(crate) fn read(table: &mut Table<'_>, findings: &mut Findings) -> PollingConfig {
        let policy = kind(&[("busy", PollingConfig::Busy)], &["metronome", "interrupt"]);
        table.read("policy", findings, policy).unwrap_or_default()
    }
}
