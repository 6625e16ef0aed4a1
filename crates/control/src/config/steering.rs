//! `[steering]`: how packets find their lane.

use std::fmt;

use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::choice;
use rheostat_settings::reader::convert::number::{integer, power_of_two};

/// How packets are hashed and placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteeringConfig {
    /// Entries of the indirection table: 128, 256 or 512.
    pub buckets: usize,
    /// The key of the Toeplitz hash.
    pub key: HashKeyChoice,
}

/// Which key the Toeplitz hash has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashKeyChoice {
    /// Drawn at start; one device swaps source and destination, so that both directions of a flow
    /// meet. An attacker cannot aim traffic at one lane.
    #[default]
    Random,
    /// A key under which swapped addresses and ports hash alike, as hardware that cannot swap needs
    /// it. With knowledge of the key, traffic can be aimed at one lane.
    Symmetric,
    /// The published key of the Microsoft RSS specification, with fields swapped on one device; for
    /// comparing with other implementations. Traffic can be aimed at one lane.
    Microsoft,
}

impl fmt::Display for HashKeyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HashKeyChoice::Random => "random",
            HashKeyChoice::Symmetric => "symmetric",
            HashKeyChoice::Microsoft => "microsoft",
        })
    }
}

impl Default for SteeringConfig {
    fn default() -> SteeringConfig {
        SteeringConfig { buckets: 128, key: HashKeyChoice::Random }
    }
}

impl SteeringConfig {
    pub(crate) fn read(table: &mut Table<'_>, findings: &mut Findings) -> SteeringConfig {
        let default = SteeringConfig::default();
        let buckets = table.read("buckets", findings, |value, findings| {
            let buckets = integer(128..=512)(value, findings)?;
            power_of_two(value, buckets, findings)
        });
        let keys = [
            ("random", HashKeyChoice::Random),
            ("symmetric", HashKeyChoice::Symmetric),
            ("microsoft", HashKeyChoice::Microsoft),
        ];
        SteeringConfig {
            buckets: buckets.map_or(default.buckets, |buckets| buckets as usize),
            key: table.read("key", findings, choice(&keys)).unwrap_or(default.key),
        }
    }
}
