//! A trial in slices, of which those count that the machine left alone.
//!
//! Where a hypervisor takes the processor for milliseconds, every policy loses packets and is late, and a trial without
//! such moments says more than one with. Whether a slice counts is told by what the kernel counts of steal and of waiting
//! for a core, and never by the figures of the slice.

use std::time::Duration;

use rheostat_run::poll::metronome::Mode;

use super::competitor::CompetitorProgress;
use super::stopwatch::{StopwatchLatencies, latencies};
use crate::delays::quantile_us;
use crate::disturbance::Disturbance;

/// The part of a slice that threads may wait for a core. A thread that wakes up a hundred thousand times in a second waits
/// a little each time, about a hundredth in all; that is what its policy costs.
const WAITING: f64 = 0.04;
/// Below this share of slices that count, all do: the trial says so.
pub(super) const LEAST: f64 = 0.2;

/// What was seen in a slice, or in several.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slice {
    pub(super) seconds: f64,
    /// Processor seconds of all workers.
    pub(super) cpu: f64,
    pub(super) arrived: u64,
    pub(super) lost: u64,
    pub(super) delivered: u64,
    /// Seconds in which lanes worked on packets, all lanes together.
    pub(super) busy: f64,
    /// Polls that found nothing.
    pub(super) idle_polls: u64,
    pub(super) vacations: u64,
    pub(super) vacation_ns: u64,
    /// Seconds of lanes in each mode.
    pub(super) spent: [f64; Mode::ALL.len()],
    pub(super) tries: u64,
    pub(super) lost_tries: u64,
    pub(super) wake_ups: u64,
    /// What another program on the same cores did meanwhile.
    pub(super) beside: Option<CompetitorProgress>,
    pub(super) disturbance: Disturbance,
}

/// What was seen in a trial.
#[derive(Clone, Debug)]
pub(super) struct SliceObservation {
    /// All slices that count.
    pub(super) sum: Slice,
    /// Of packets that left in them.
    pub(super) latencies: StopwatchLatencies,
    /// The share of slices that the machine left alone. Where it is below [`LEAST`], all count.
    pub(super) quiet: f64,
}

impl SliceObservation {
    /// The latency within which this share of the packets left, in microseconds; none where no packet left.
    pub(super) fn latency_us(&self, share: f64) -> Option<f64> {
        quantile_us(&self.latencies, share)
    }

    /// The mean vacation in microseconds.
    pub(super) fn vacation_us(&self) -> Option<f64> {
        let Slice { vacations, vacation_ns, .. } = self.sum;
        (vacations > 0).then(|| vacation_ns as f64 / vacations as f64 / 1e3)
    }

    /// The mode that lanes were in for most of the time.
    pub(super) fn mode(&self) -> Mode {
        let spent = |mode: Mode| self.sum.spent[mode as usize];
        let by_time = |a: &Mode, b: &Mode| spent(*a).total_cmp(&spent(*b));
        Mode::ALL.into_iter().max_by(by_time).unwrap_or(Mode::Busy)
    }
}

/// Slices of a trial as they come.
#[derive(Debug)]
pub(super) struct Slices {
    slices: Vec<(Slice, StopwatchLatencies)>,
    /// Threads wait for cores because another program computes there.
    is_shared: bool,
}

impl Slices {
    pub(super) fn new(is_shared: bool) -> Slices {
        Slices { slices: Vec::new(), is_shared }
    }

    pub(super) fn add(&mut self, slice: Slice, latencies: StopwatchLatencies) {
        self.slices.push((slice, latencies));
    }

    fn is_disturbed(&self, slice: &Slice) -> bool {
        let Disturbance { steal, run_delay } = slice.disturbance;
        let waited = run_delay.as_secs_f64() > WAITING * slice.seconds;
        steal > Duration::ZERO || waited && !self.is_shared
    }

    pub(super) fn finish(self) -> SliceObservation {
        let disturbed: Vec<_> =
            self.slices.iter().map(|(slice, _)| self.is_disturbed(slice)).collect();
        // What was delayed in one slice may leave in the next.
        let is_quiet = |at: usize| !disturbed[at] && (at == 0 || !disturbed[at - 1]);
        let quiet = (0..disturbed.len()).filter(|at| is_quiet(*at)).count();
        let share = quiet as f64 / disturbed.len().max(1) as f64;
        let (mut sum, mut all) = (Slice::default(), latencies());
        for (at, (slice, latencies)) in self.slices.iter().enumerate() {
            if share < LEAST || is_quiet(at) {
                sum = sum.with(slice);
                all.add(latencies).expect("histograms of one shape");
            }
        }
        SliceObservation { sum, latencies: all, quiet: share }
    }
}

impl Slice {
    /// Both together.
    fn with(self, other: &Slice) -> Slice {
        let beside = match (self.beside, other.beside) {
            (Some(one), Some(other)) => Some(one.with(other)),
            (one, other) => one.or(other),
        };
        Slice {
            seconds: self.seconds + other.seconds,
            cpu: self.cpu + other.cpu,
            arrived: self.arrived + other.arrived,
            lost: self.lost + other.lost,
            delivered: self.delivered + other.delivered,
            busy: self.busy + other.busy,
            idle_polls: self.idle_polls + other.idle_polls,
            vacations: self.vacations + other.vacations,
            vacation_ns: self.vacation_ns + other.vacation_ns,
            spent: std::array::from_fn(|mode| self.spent[mode] + other.spent[mode]),
            tries: self.tries + other.tries,
            lost_tries: self.lost_tries + other.lost_tries,
            wake_ups: self.wake_ups + other.wake_ups,
            beside,
            disturbance: Disturbance {
                run_delay: self.disturbance.run_delay + other.disturbance.run_delay,
                steal: self.disturbance.steal + other.disturbance.steal,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(slices: &[(u64, u64, u64)], is_shared: bool) -> SliceObservation {
        let mut all = Slices::new(is_shared);
        for &(steal_ms, delay_ms, lost) in slices {
            let disturbance = Disturbance {
                steal: Duration::from_millis(steal_ms),
                run_delay: Duration::from_millis(delay_ms),
            };
            let slice = Slice { seconds: 0.1, lost, disturbance, ..Slice::default() };
            let mut latencies = latencies();
            latencies.record(1_000 * (lost + 1)).unwrap();
            all.add(slice, latencies);
        }
        all.finish()
    }

    #[test]
    fn a_slice_counts_if_the_machine_left_it_and_the_one_before_alone() {
        let slices = [(0, 1, 1), (10, 0, 20), (0, 0, 300), (0, 5, 4_000), (0, 0, 0), (0, 3, 5)];
        let seen = seen(&slices, false);
        assert_eq!((seen.sum.lost, seen.quiet), (6, 2.0 / 6.0));
        assert_eq!(seen.latencies.len(), 2);
        assert!((seen.sum.seconds - 0.2).abs() < 1e-9);
    }

    #[test]
    fn beside_a_program_waiting_for_a_core_is_what_is_measured() {
        assert_eq!(seen(&[(0, 50, 1), (0, 50, 2)], true).sum.lost, 3);
    }

    #[test]
    fn where_hardly_any_slice_is_quiet_all_count() {
        let seen = seen(&[(10, 0, 1), (10, 0, 2), (10, 0, 4)], false);
        assert_eq!((seen.sum.lost, seen.quiet), (7, 0.0));
        assert_eq!(seen.latency_us(1.0).map(f64::round), Some(5.0));
    }
}
