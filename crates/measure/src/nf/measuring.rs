//! What lanes measure of classes of traffic while a row runs, as in a run with latency objectives.

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::ClockSource;
use rheostat_run::Classes;
use rheostat_steer::policy::{Class, Objectives};
use rheostat_steer::{ClassRule, ClassRules};

/// What lanes measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measuring {
    /// Nothing, as without objectives.
    Nothing,
    /// Waits, rates and times of all packets together: an `[slo]` without classes.
    Objectives,
    /// The same of two classes: of about one flow in a thousand, which has priority, and of all else.
    Classes,
    /// As [`Measuring::Objectives`], and the heaviest flows: those of policies that have flows leave.
    HeavyFlows,
}

impl Measuring {
    /// All of them, from the least to the most.
    pub const ALL: [Measuring; 4] =
        [Measuring::Nothing, Measuring::Objectives, Measuring::Classes, Measuring::HeavyFlows];

    /// The name in rows and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Measuring::Nothing => "nothing",
            Measuring::Objectives => "objectives",
            Measuring::Classes => "classes",
            Measuring::HeavyFlows => "heavy-flows",
        }
    }

    /// What the lanes of a run are told to measure.
    pub(super) fn classes(self, clock: Arc<dyn ClockSource>) -> Option<Arc<Classes>> {
        let rules = match self {
            Measuring::Nothing => return None,
            Measuring::Objectives | Measuring::HeavyFlows => ClassRules::default(),
            Measuring::Classes => ClassRules::new(rules()),
        };
        let limits = [Some(Duration::from_micros(50)), Some(Duration::from_micros(500))];
        let objectives = Objectives { limits, ..Objectives::NONE };
        Some(Arc::new(Classes { rules, objectives, clock }))
    }

    /// Whether lanes look for the heaviest flows.
    pub(super) fn finds_heavy_flows(self) -> bool {
        self == Measuring::HeavyFlows
    }
}

/// Clients are all over 10.0.0.0/8, and servers listen on port 443.
fn rules() -> Vec<ClassRule> {
    let few = "10.0.0.0/18".parse().expect("a prefix");
    let prefixes = [few].into_iter().collect();
    vec![
        ClassRule { prefixes, ..ClassRule::any("few", Class::Priority) },
        ClassRule {
            protocols: vec![6],
            ports: vec![80..=80, 443..=443],
            ..ClassRule::any("web", Class::Regular)
        },
    ]
}
