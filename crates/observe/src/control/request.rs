//! What a client may ask for.

use std::fmt;

use rheostat_nf::function::lb::Health;
use serde::{Deserialize, Serialize};

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The summary so far.
    Status,
    /// Shows a device's indirection table, or rewrites it first; answered once no packet can be placed
    /// by the old entries any more.
    Table {
        /// The device's name.
        device: String,
        /// The new entries: for each bucket the number of its lane.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entries: Option<Vec<u16>>,
        /// New entries by chance.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shuffle: Option<Shuffle>,
    },
    /// Changes the health of a load balancer's backend.
    Backend {
        /// The service's name.
        service: String,
        /// The backend's address, with its port where several share the address.
        backend: String,
        /// What it is from now on.
        health: HealthWord,
    },
    /// Ends the run in good order.
    Stop,
}

/// New entries of a table by chance: the old ones in another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shuffle {
    /// What the order is drawn from.
    #[serde(default)]
    pub seed: u64,
    /// How many times in a row, each once the one before is in force.
    #[serde(default = "once")]
    pub times: u32,
    /// Milliseconds between two times.
    #[serde(default)]
    pub pause_ms: u64,
}

fn once() -> u32 {
    1
}

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
