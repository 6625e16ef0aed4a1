//! What is measured of a simulation beside its lanes: latencies, CPU time, the course.

use rheostat_base::Histogram;

use super::result::{Interval, LaneResult, SimulationResult};
use super::{Departure, Simulation};

/// Measures what comes after the warm-up, and the course from the start. Times are in nanoseconds.
pub(super) struct VacationMeter {
    warm_up: u64,
    end: u64,
    departure: Departure,
    latencies: Histogram,
    latency_sum: f64,
    cpu: u64,
    sleeps: u64,
    interval: Option<u64>,
    course: Vec<Interval>,
}

impl VacationMeter {
    /// Nothing yet.
    pub(super) fn new(setup: &Simulation) -> VacationMeter {
        let end = setup.length.as_nanos() as u64;
        let interval = setup.interval.map(|interval| (interval.as_nanos() as u64).max(1));
        let intervals = interval.map_or(0, |interval| end.div_ceil(interval));
        VacationMeter {
            warm_up: setup.warm_up.as_nanos() as u64,
            end,
            departure: setup.departure,
            latencies: Histogram::new(),
            latency_sum: 0.0,
            cpu: 0,
            sleeps: 0,
            interval,
            course: vec![Interval::default(); intervals as usize],
        }
    }

    /// Whether what happens now is measured.
    pub(super) fn counts(&self, now: u64) -> bool {
        now >= self.warm_up
    }

    /// Whether the simulation is over.
    pub(super) fn is_over(&self, now: u64) -> bool {
        now >= self.end
    }

    fn interval(&mut self, now: u64) -> Option<&mut Interval> {
        let interval = self.interval?;
        self.course.get_mut((now / interval) as usize)
    }

    /// A worker works from `now` on for so long. Of its core's time only that counts which it has itself.
    pub(super) fn spend(&mut self, now: u64, work: u64) {
        let to = (now + work).min(self.end);
        self.cpu += to.saturating_sub(now.max(self.warm_up));
        if let Some(interval) = self.interval(now) {
            interval.cpu += work as f64 / 1e9;
        }
    }

    /// A worker begins to sleep.
    pub(super) fn note_sleep(&mut self, now: u64) {
        self.sleeps += u64::from(self.counts(now));
    }

    /// A vacation of a lane ends at `now`, with so many packets in its queue.
    pub(super) fn note_vacation(
        &mut self,
        now: u64,
        vacation: u64,
        lane: &mut LaneResult,
        (found, is_other): (usize, bool),
    ) {
        let seconds = vacation as f64 / 1e9;
        if let Some(interval) = self.interval(now) {
            interval.vacations += 1;
            interval.vacation_sum += seconds;
        }
        if self.counts(now) {
            lane.note_vacation(seconds, found as u64, is_other);
        }
    }

    /// A busy period ends that began at `start`.
    pub(super) fn note_busy(&mut self, start: u64, end: u64, lane: &mut LaneResult) {
        let seconds = (end - start) as f64 / 1e9;
        if let Some(interval) = self.interval(start) {
            interval.busy_sum += seconds;
        }
        if self.counts(start) {
            lane.busy_sum += seconds;
        }
    }

    /// A burst was processed: pairs of when a packet arrived and when its own processing ended.
    pub(super) fn note_burst(&mut self, burst: &[(u64, u64)], lane: &mut LaneResult) {
        let Some(&(_, last)) = burst.last() else { return };
        if let Some(interval) = self.interval(last) {
            interval.packets += burst.len() as u64;
        }
        for &(arrived, done) in burst {
            if arrived < self.warm_up {
                continue;
            }
            let left = if self.departure == Departure::Burst { last } else { done };
            self.latencies.record(left - arrived);
            self.latency_sum += (left - arrived) as f64;
            lane.packets += 1;
        }
    }

    /// What it came to.
    pub(super) fn finish(self, lanes: Vec<LaneResult>) -> SimulationResult {
        let packets: u64 = lanes.iter().map(|lane| lane.packets).sum();
        let elapsed = self.end.saturating_sub(self.warm_up).max(1) as f64 * lanes.len() as f64;
        SimulationResult {
            latency_mean: self.latency_sum / packets.max(1) as f64 / 1e9,
            lanes,
            latencies: self.latencies,
            cpu_share: self.cpu as f64 / elapsed,
            sleeps: self.sleeps,
            course: self.course,
        }
    }
}
