//! `[polling]`: what a worker does when its lanes have no packets.

mod metronome;

use std::fmt;
use std::time::Duration;

use rheostat_run::poll::metronome::MetronomeSettings;

use crate::findings::Findings;
use crate::quantity::Span;
use crate::reader::Table;
use crate::reader::convert::choice;
use crate::reader::convert::number::duration;

/// What an idle worker does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum PollingConfig {
    /// Polls on: the lowest latency, at the price of the whole core.
    #[default]
    Busy,
    /// Blocks until a device has packets.
    Interrupt {
        /// How long it polls on before it does.
        spin: Duration,
    },
    /// Sleeps between polls, for a CPU time in proportion to the load; workers share lanes.
    Metronome(MetronomeSettings),
}

#[derive(Clone, Copy, Debug)]
enum PolicyName {
    Busy,
    Interrupt,
    Metronome,
}

/// The policies by their names.
const POLICIES: [(&str, PolicyName); 3] = [
    ("busy", PolicyName::Busy),
    ("interrupt", PolicyName::Interrupt),
    ("metronome", PolicyName::Metronome),
];

/// A few times what it takes to wake a worker.
const SPIN: Duration = Duration::from_micros(20);

impl fmt::Display for PollingConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PollingConfig::Busy => f.write_str("busy"),
            PollingConfig::Interrupt { spin } => write!(f, "interrupt after {}", Span(*spin)),
            PollingConfig::Metronome(settings) => metronome::describe(settings, f),
        }
    }
}

impl PollingConfig {
    /// The names of the policies.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        POLICIES.iter().map(|(name, _)| *name)
    }

    /// This policy with its default settings, if the present one is another.
    pub(crate) fn switch_to(&mut self, name: &str) -> bool {
        let Some((_, policy)) = POLICIES.iter().find(|(known, _)| *known == name) else {
            return false;
        };
        *self = match (*self, policy) {
            (same @ PollingConfig::Busy, PolicyName::Busy)
            | (same @ PollingConfig::Interrupt { .. }, PolicyName::Interrupt)
            | (same @ PollingConfig::Metronome(_), PolicyName::Metronome) => same,
            (_, PolicyName::Busy) => PollingConfig::Busy,
            (_, PolicyName::Interrupt) => PollingConfig::Interrupt { spin: SPIN },
            (_, PolicyName::Metronome) => PollingConfig::Metronome(MetronomeSettings::default()),
        };
        true
    }

    pub(crate) fn read(table: &mut Table<'_>, findings: &mut Findings) -> PollingConfig {
        let policy = table.read("policy", findings, choice(&POLICIES));
        let policy = policy.unwrap_or(PolicyName::Busy);
        if !matches!(policy, PolicyName::Interrupt) {
            table.refuse(&["spin"], "policy = \"interrupt\"", findings);
        }
        if !matches!(policy, PolicyName::Metronome) {
            table.refuse(&metronome::KEYS, "policy = \"metronome\"", findings);
        }
        match policy {
            PolicyName::Busy => PollingConfig::Busy,
            PolicyName::Interrupt => {
                let span = Duration::ZERO..=Duration::from_millis(100);
                let spin = table.read("spin", findings, duration(span));
                PollingConfig::Interrupt { spin: spin.unwrap_or(SPIN) }
            }
            PolicyName::Metronome => PollingConfig::Metronome(metronome::read(table, findings)),
        }
    }
}
