//! Latencies of a simulation's packets by phase and class.

use rheostat_steer::policy::Class;

use crate::delays::{delays, quantile_us};
use hdrhistogram::Histogram;

/// Latencies from arrival to departure, by the phase in which packets arrive.
#[derive(Debug)]
pub(super) struct PhaseMeter {
    start: u64,
    length: u64,
    phases: Vec<[Histogram<u64>; Class::ALL.len()]>,
}

impl PhaseMeter {
    /// `count` phases of `length` nanoseconds each, from `start` on.
    pub(super) fn new(start: u64, length: u64, count: usize) -> PhaseMeter {
        let phases = (0..count).map(|_| [delays(), delays()]).collect();
        PhaseMeter { start, length: length.max(1), phases }
    }

    /// The phase of a moment.
    pub(super) fn phase_of(&self, at: u64) -> Option<usize> {
        let phase = (at.checked_sub(self.start)? / self.length) as usize;
        (phase < self.phases.len()).then_some(phase)
    }

    /// A packet that arrived at `at` left after so many nanoseconds.
    pub(super) fn note(&mut self, class: Class, at: u64, latency: u64) {
        if let Some(phase) = self.phase_of(at) {
            self.phases[phase][class.index()].saturating_record(latency);
        }
    }

    /// The latency in microseconds that this share of a phase's packets did not exceed; `None` without packets.
    pub(super) fn latency(&self, phase: usize, class: Class, share: f64) -> Option<f64> {
        quantile_us(&self.phases[phase][class.index()], share)
    }
}
