//! The case studies.

use std::fmt;
use std::time::Duration;

use crate::contention::{AntiDdos, Bridge, Nat, Pattern};

/// A case study of the paper: a function, and a setting that its profiler advises to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Counters of flows that are read at each new one: may what is read be old?
    AntiDdos,
    /// External endpoints that just suffice: are there more?
    Nat,
    /// Entries of stations that live from their last frame: or from one not long before?
    Bridge,
}

impl Case {
    /// All of them.
    pub const ALL: [Case; 3] = [Case::AntiDdos, Case::Nat, Case::Bridge];

    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            Case::AntiDdos => "antiddos",
            Case::Nat => "nat",
            Case::Bridge => "bridge",
        }
    }

    /// The setting with its value.
    pub fn setting(self, advised: bool) -> &'static str {
        match (self, advised) {
            (Case::AntiDdos, false) => "staleness 0",
            (Case::AntiDdos, true) => "staleness 0.1 ms",
            (Case::Nat, false) => "53 addresses",
            (Case::Nat, true) => "55 addresses",
            (Case::Bridge, false) => "refresh interval 0",
            (Case::Bridge, true) => "refresh interval 1 s",
        }
    }

    /// What the paper gained at 23 cores by the same change.
    pub fn gain_in_paper(self) -> f64 {
        match self {
            Case::AntiDdos => 18.0,
            Case::Nat => 2.0,
            Case::Bridge => 91.0,
        }
    }

    /// The function's pattern, with the setting as the recipe has it or not.
    pub fn pattern(self, lanes: usize, advised: bool) -> Box<dyn Pattern> {
        match (self, advised) {
            (Case::AntiDdos, false) => Box::new(AntiDdos::new(lanes, Duration::ZERO)),
            (Case::AntiDdos, true) => Box::new(AntiDdos::new(lanes, Duration::from_micros(100))),
            (Case::Nat, false) => Box::new(Nat::new(lanes, 53)),
            (Case::Nat, true) => Box::new(Nat::new(lanes, 55)),
            (Case::Bridge, false) => Box::new(Bridge::new(lanes, Duration::ZERO)),
            (Case::Bridge, true) => Box::new(Bridge::new(lanes, Duration::from_secs(1))),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
