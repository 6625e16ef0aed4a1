//! What a policy may do with single flows in a scenario, and what for.

use std::time::Duration;

use rheostat_steer::policy::{Class, Objectives};
use rheostat_steer::{ClassRule, ClassRules};
use rheostat_traffic::ExchangesConfig;
use serde::Deserialize;

use super::quantity;

/// Which lanes may take flows of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offloading {
    /// So many of the lanes at a time, at most.
    pub most: u16,
    /// An offloading lane serves so many working lanes at least.
    pub min_working: u16,
}

/// Latencies that packets should not exceed, from arrival to the start of their processing.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyGoals {
    /// Of signalling.
    #[serde(default, with = "quantity::optional_duration")]
    pub priority: Option<Duration>,
    /// Of all other packets.
    #[serde(default, with = "quantity::optional_duration")]
    pub regular: Option<Duration>,
}

impl LatencyGoals {
    /// The objectives that policies plan for, at the usual percentile.
    pub fn objectives(self) -> Objectives {
        Objectives { limits: [self.priority, self.regular], ..Objectives::NONE }
    }

    /// The rules by which lanes know signalling: it is of the priority class.
    pub fn rules() -> ClassRules {
        let port = ExchangesConfig::SIGNALLING_PORT;
        let ports = vec![port..=port];
        ClassRules::new(vec![ClassRule { ports, ..ClassRule::any("signalling", Class::Priority) }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_those_of_their_class() {
        let priority = Some(Duration::from_micros(50));
        let objectives = LatencyGoals { priority, regular: None }.objectives();
        assert_eq!(objectives.of(Class::Priority), priority);
        assert_eq!(objectives.of(Class::Regular), None);
        assert!(LatencyGoals::rules().has_priority());
    }
}
