//! `[steering]`: how packets find their lane.

use std::fmt;

use rheostat_settings::declared::kind::{choice, power_of_two};

rheostat_settings::settings! {
    /// How packets are hashed and placed.
    #[derive(Eq)]
    pub struct SteeringConfig: Default {
        /// Entries of the indirection table: 128, 256 or 512.
        buckets: usize = power_of_two(128..=512), default(128);
        /// The key of the Toeplitz hash: random, symmetric (swapped addresses and ports hash alike) or microsoft (the published one).
        /// With the latter two, traffic can be aimed at one lane.
        key: HashKeyChoice = choice(HashKeyChoice::NAMES), default(HashKeyChoice::Random);
    }
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

impl HashKeyChoice {
    const NAMES: [(&str, HashKeyChoice); 3] = [
        ("random", HashKeyChoice::Random),
        ("symmetric", HashKeyChoice::Symmetric),
        ("microsoft", HashKeyChoice::Microsoft),
    ];
}

impl fmt::Display for HashKeyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _) = HashKeyChoice::NAMES[*self as usize];
        f.write_str(name)
    }
}
