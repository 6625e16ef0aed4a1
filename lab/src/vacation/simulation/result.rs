//! What a simulation came to.

use rheostat_base::Histogram;

/// Vacations that are kept of a lane.
pub const MOST_SAMPLES: usize = 100_000;

/// What one lane saw after the warm-up.
#[derive(Clone, Debug, Default)]
pub struct LaneResult {
    /// Vacations in seconds, up to [`MOST_SAMPLES`].
    pub vacations: Vec<f64>,
    /// The number of all vacations.
    pub vacation_count: u64,
    /// Their sum in seconds.
    pub vacation_sum: f64,
    /// The sum of their squares in seconds².
    pub vacation_squares: f64,
    /// Busy periods, in seconds.
    pub busy_sum: f64,
    /// Packets found at the end of vacations (N_V).
    pub found: u64,
    /// Packets processed.
    pub packets: u64,
    /// Packets lost at the full queue.
    pub lost: u64,
    /// Vacations that another worker ended than the one that had left.
    pub won_by_other: u64,
    /// Tries of the lock.
    pub tries: u64,
    /// Tries that found it taken.
    pub lost_tries: u64,
}

impl LaneResult {
    /// The mean vacation in seconds; zero without any.
    pub fn vacation_mean(&self) -> f64 {
        self.vacation_sum / self.vacation_count.max(1) as f64
    }

    /// A vacation ended after so many seconds.
    pub(super) fn note_vacation(&mut self, seconds: f64, found: u64, is_other: bool) {
        self.vacation_count += 1;
        self.vacation_sum += seconds;
        self.vacation_squares += seconds * seconds;
        self.found += found;
        self.won_by_other += u64::from(is_other);
        if self.vacations.len() < MOST_SAMPLES {
            self.vacations.push(seconds);
        }
    }

    /// E\[V²\] in seconds².
    pub fn vacation_mean_square(&self) -> f64 {
        self.vacation_squares / self.vacation_count.max(1) as f64
    }
}

/// A part of a simulation, with all lanes together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Packets that left.
    pub packets: u64,
    /// Seconds of CPU time of all workers.
    pub cpu: f64,
    /// Vacations that ended.
    pub vacations: u64,
    /// Their sum in seconds.
    pub vacation_sum: f64,
    /// Busy periods, in seconds.
    pub busy_sum: f64,
}

/// What a simulation came to.
#[derive(Debug)]
pub struct SimulationResult {
    /// Per lane.
    pub lanes: Vec<LaneResult>,
    /// Packets' latencies in nanoseconds.
    pub latencies: Histogram,
    /// Their mean in seconds.
    pub latency_mean: f64,
    /// CPU time of all workers ÷ (time × lanes).
    pub cpu_share: f64,
    /// Sleeps of all workers.
    pub sleeps: u64,
    /// The course from the start, warm-up included, if it was to be noted.
    pub course: Vec<Interval>,
}

impl SimulationResult {
    /// Lost tries ÷ tries.
    pub fn lost_tries(&self) -> f64 {
        self.sum(|lane| lane.lost_tries) / self.sum(|lane| lane.tries).max(1.0)
    }

    /// Packets lost ÷ packets that arrived.
    pub fn loss(&self) -> f64 {
        let lost = self.sum(|lane| lane.lost);
        lost / (lost + self.sum(|lane| lane.packets)).max(1.0)
    }

    fn sum(&self, of: fn(&LaneResult) -> u64) -> f64 {
        self.lanes.iter().map(of).sum::<u64>() as f64
    }
}
