//! What latencies packets may have.

use std::time::Duration;

use super::Class;

/// What the objectives are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Latency {
    /// From a packet's arrival to the start of its processing.
    #[default]
    Waiting,
    /// To its end. The mean time for a packet is taken off the objective (footnote 5 of the thesis).
    Total,
}

impl Latency {
    /// The word for it in configurations and reports.
    pub fn name(self) -> &'static str {
        match self {
            Latency::Waiting => "waiting",
            Latency::Total => "total",
        }
    }
}

/// Latencies that packets of a class should not exceed, at one percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objectives {
    /// By class; `None` where nothing is asked for.
    pub limits: [Option<Duration>; Class::ALL.len()],
    /// The share of a class's packets that keep within its limit: above 0 and below 1.
    pub percentile: f64,
    /// What the limits are about.
    pub latency: Latency,
}

impl Objectives {
    /// The percentile used without another: the thesis shows the 99.5th.
    pub const PERCENTILE: f64 = 0.995;

    /// Nothing is asked for.
    pub const NONE: Objectives = Objectives {
        limits: [None; 2],
        percentile: Objectives::PERCENTILE,
        latency: Latency::Waiting,
    };

    /// Limits for priority and regular traffic at the usual percentile.
    pub fn waiting(priority: Duration, regular: Duration) -> Objectives {
        Objectives { limits: [Some(priority), Some(regular)], ..Objectives::NONE }
    }

    /// The limit of a class, if it has one.
    pub fn of(&self, class: Class) -> Option<Duration> {
        self.limits[class.index()]
    }

    /// Whether nothing is asked for.
    pub fn is_none(&self) -> bool {
        self.limits.iter().all(Option::is_none)
    }

    /// How long packets of a class may wait, where one takes `service` to process.
    pub(super) fn waiting_limit(&self, class: Class, service: Duration) -> Option<Duration> {
        self.of(class).map(|limit| match self.latency {
            Latency::Waiting => limit,
            Latency::Total => limit.saturating_sub(service),
        })
    }
}

impl Default for Objectives {
    fn default() -> Objectives {
        Objectives::NONE
    }
}
