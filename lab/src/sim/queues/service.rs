//! How long packets take.

use std::fmt;

use super::super::work::{Overhead, SimWork};

/// The mean service time in nanoseconds of virtual time: large, so that whole nanoseconds are fine enough.
pub(crate) const MEAN_NS: f64 = 1e6;

/// A distribution of service times, whose mean is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Exponential (Figure 6.1).
    Markov,
    /// All alike (Figure 6.2).
    Deterministic,
    /// Nine in ten take 0.5, the others 5.5.
    Bimodal,
}

impl Service {
    /// All of them.
    pub const ALL: [Service; 3] = [Service::Markov, Service::Deterministic, Service::Bimodal];

    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            Service::Markov => "markov",
            Service::Deterministic => "deterministic",
            Service::Bimodal => "bimodal",
        }
    }

    /// The letter in Kendall's notation: M/`G`/k.
    pub fn letter(self) -> char {
        match self {
            Service::Markov => 'M',
            Service::Deterministic => 'D',
            Service::Bimodal => 'G',
        }
    }

    /// E\[S²\] ÷ E\[S\]².
    pub fn second_moment(self) -> f64 {
        match self {
            Service::Markov => 2.0,
            Service::Deterministic => 1.0,
            Service::Bimodal => 0.9 * 0.25 + 0.1 * 5.5 * 5.5,
        }
    }

    /// The service time that a share `rank` of the packets does not exceed.
    fn quantile(self, rank: f64) -> f64 {
        match self {
            Service::Markov => -(1.0 - rank).ln(),
            Service::Deterministic => 1.0,
            Service::Bimodal if rank < 0.9 => 0.5,
            Service::Bimodal => 5.5,
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl SimWork for Service {
    fn packet(&self, luck: u32, _: usize) -> u64 {
        let rank = (f64::from(luck) + 0.5) / 2_f64.powi(32);
        (self.quantile(rank) * MEAN_NS) as u64
    }

    fn working_set(&self, _: f64) -> usize {
        0
    }

    fn overhead(&self) -> Overhead {
        Overhead::default()
    }
}
