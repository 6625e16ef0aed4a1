//! The case studies.

use std::fmt;
use std::time::Duration;

use crate::contention::{AntiDdos, Bridge, Nat, Pattern};

/// A case study of the paper: a function, and a setting that its profiler advises to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdviceCase {
    /// Counters of flows that are read at each new one: may what is read be old?
    AntiDdos,
    /// External endpoints that just suffice: are there more?
    Nat,
    /// Entries of stations that live from their last frame: or from one not long before?
    Bridge,
}

impl AdviceCase {
    /// All of them.
    pub const ALL: [AdviceCase; 3] = [AdviceCase::AntiDdos, AdviceCase::Nat, AdviceCase::Bridge];

    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            AdviceCase::AntiDdos => "antiddos",
            AdviceCase::Nat => "nat",
            AdviceCase::Bridge => "bridge",
        }
    }

    /// The setting with its value.
    pub fn setting(self, advised: bool) -> &'static str {
        match (self, advised) {
            (AdviceCase::AntiDdos, false) => "staleness 0",
            (AdviceCase::AntiDdos, true) => "staleness 0.1 ms",
            (AdviceCase::Nat, false) => "53 addresses",
            (AdviceCase::Nat, true) => "55 addresses",
            (AdviceCase::Bridge, false) => "refresh interval 0",
            (AdviceCase::Bridge, true) => "refresh interval 1 s",
        }
    }

    /// What the paper gained at 23 cores by the same change.
    pub fn gain_in_paper(self) -> f64 {
        match self {
            AdviceCase::AntiDdos => 18.0,
            AdviceCase::Nat => 2.0,
            AdviceCase::Bridge => 91.0,
        }
    }

    /// The function's pattern, with the setting as the recipe has it or not.
    pub fn pattern(self, lanes: usize, advised: bool) -> Box<dyn Pattern> {
        match (self, advised) {
            (AdviceCase::AntiDdos, false) => Box::new(AntiDdos::new(lanes, Duration::ZERO)),
            (AdviceCase::AntiDdos, true) => {
                Box::new(AntiDdos::new(lanes, Duration::from_micros(100)))
            }
            (AdviceCase::Nat, false) => Box::new(Nat::new(lanes, 53)),
            (AdviceCase::Nat, true) => Box::new(Nat::new(lanes, 55)),
            (AdviceCase::Bridge, false) => Box::new(Bridge::new(lanes, Duration::ZERO)),
            (AdviceCase::Bridge, true) => Box::new(Bridge::new(lanes, Duration::from_secs(1))),
        }
    }
}

impl fmt::Display for AdviceCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
