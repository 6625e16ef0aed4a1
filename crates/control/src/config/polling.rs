//! `[polling]`: what a worker does when its lanes have no packets.

use std::fmt;
use std::time::Duration;

use crate::findings::Findings;
use crate::quantity::Span;
use crate::reader::Table;
use crate::reader::convert::kind;
use crate::reader::convert::number::duration;

/// What an idle worker does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PollingConfig {
    /// Polls on: the lowest latency, at the price of the whole core.
    #[default]
    Busy,
    /// Blocks until a device has packets.
    Interrupt {
        /// How long it polls on before it does.
        spin: Duration,
    },
}

#[derive(Clone, Copy, Debug)]
enum PolicyName {
    Busy,
    Interrupt,
}

/// A few times what it takes to wake a worker.
const SPIN: Duration = Duration::from_micros(20);

impl fmt::Display for PollingConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PollingConfig::Busy => f.write_str("busy"),
            PollingConfig::Interrupt { spin } => write!(f, "interrupt after {}", Span(*spin)),
        }
    }
}

impl PollingConfig {
    pub(crate) fn read(table: &mut Table<'_>, findings: &mut Findings) -> PollingConfig {
        let policies = [("busy", PolicyName::Busy), ("interrupt", PolicyName::Interrupt)];
        let policy = table.read("policy", findings, kind(&policies, &["metronome"]));
        match policy {
            Some(PolicyName::Interrupt) => {
                let span = Duration::ZERO..=Duration::from_millis(100);
                let spin = table.read("spin", findings, duration(span));
                PollingConfig::Interrupt { spin: spin.unwrap_or(SPIN) }
            }
            Some(PolicyName::Busy) | None => {
                table.refuse(&["spin"], "policy = \"interrupt\"", findings);
                PollingConfig::Busy
            }
        }
    }
}
