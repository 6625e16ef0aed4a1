//! The baseline: plain receive side scaling.

use std::time::Duration;

use rheostat_base::Time;

use super::{LoadSnapshot, Plan, Policy, PolicyFacts, PolicyRegistration, Reason};

pub(super) const REGISTRATION: PolicyRegistration = PolicyRegistration {
    name: "rss",
    summary: "not at all",
    facts: PolicyFacts { moves: false, ..PolicyFacts::MOVES_SHARDS },
    make: &|_| Box::new(Rss),
};

/// The indirection table stays as it is (RSS++ 2). Flows keep their lanes, the load falls where the
/// hash puts it, and lanes are neither added nor parked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rss;

impl Policy for Rss {
    fn name(&self) -> &'static str {
        "rss"
    }

    fn plan(&mut self, _now: Time, _load: &LoadSnapshot) -> Plan {
        Plan { why: vec![Reason::Static], ..Plan::default() }
    }

    fn period(&self) -> Duration {
        Duration::from_secs(1)
    }
}
