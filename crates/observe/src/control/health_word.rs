//! The health of a backend in words.

use std::fmt;

use rheostat_functions::lb::Health;
use serde::{Deserialize, Serialize};

/// The health of a backend, as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthWord {
    /// It takes flows.
    Up,
    /// It keeps its flows and gets no new ones.
    Draining,
    /// It gets nothing.
    Down,
}

impl From<HealthWord> for Health {
    fn from(word: HealthWord) -> Health {
        match word {
            HealthWord::Up => Health::Up,
            HealthWord::Draining => Health::Drain,
            HealthWord::Down => Health::Down,
        }
    }
}

impl From<Health> for HealthWord {
    fn from(health: Health) -> HealthWord {
        match health {
            Health::Up => HealthWord::Up,
            Health::Drain => HealthWord::Draining,
            Health::Down => HealthWord::Down,
        }
    }
}

impl fmt::Display for HealthWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HealthWord::Up => "up",
            HealthWord::Draining => "draining",
            HealthWord::Down => "down",
        })
    }
}
