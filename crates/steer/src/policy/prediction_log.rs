//! What a policy predicted, beside what came of it.

use std::collections::VecDeque;
use std::time::Duration;

use rheostat_base::{LaneId, Time};

use super::Class;

/// A wait that was predicted for a lane and a class, and the wait that was then measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// When it was measured.
    pub at: Time,
    /// Of which lane.
    pub lane: LaneId,
    /// Of which class.
    pub class: Class,
    /// The wait predicted by the plan before, at the percentile of the objectives.
    pub predicted: Duration,
    /// The wait measured since.
    pub measured: Duration,
    /// By how many packets.
    pub samples: u64,
}

/// The last predictions, oldest first, and the error of all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PredictionLog {
    rows: VecDeque<Prediction>,
    count: u64,
    /// Of |ln(measured ÷ predicted)|.
    sum: f64,
}

impl PredictionLog {
    /// How many predictions are kept.
    pub const KEPT: usize = 4_096;

    /// Adds a row; the oldest goes when there is no room.
    pub(super) fn add(&mut self, row: Prediction) {
        if self.rows.len() == PredictionLog::KEPT {
            self.rows.pop_front();
        }
        let nanos = |time: Duration| (time.as_nanos() as f64).max(1.0);
        self.sum += (nanos(row.measured) / nanos(row.predicted)).ln().abs();
        self.count += 1;
        self.rows.push_back(row);
    }

    /// The last predictions, oldest first.
    pub fn rows(&self) -> impl DoubleEndedIterator<Item = &Prediction> {
        self.rows.iter()
    }

    /// By which factor waits differed from predictions, up or down: the geometric mean over all rows so far, kept or not. 1 is
    /// exact; `None` before there are any.
    pub fn error(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.sum / self.count as f64).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_a_factor_up_or_down() {
        let mut log = PredictionLog::default();
        assert_eq!(log.error(), None);
        let micros = Duration::from_micros;
        let (at, lane, class) = (Time::ZERO, LaneId(0), Class::Regular);
        for (predicted, measured) in [(10, 40), (40, 10)] {
            let (predicted, measured) = (micros(predicted), micros(measured));
            log.add(Prediction { at, lane, class, predicted, measured, samples: 9 });
        }
        assert!((log.error().unwrap() - 4.0).abs() < 1e-9);
        let row = *log.rows().next().unwrap();
        (0..PredictionLog::KEPT).for_each(|_| log.add(row));
        assert_eq!(log.rows().count(), PredictionLog::KEPT);
        assert_eq!(log.count, 2 + PredictionLog::KEPT as u64, "rows that are gone count");
    }
}
