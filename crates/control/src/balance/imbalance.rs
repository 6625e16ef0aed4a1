//! How unevenly lanes worked over a whole run.

use rheostat_steer::policy::LaneState;

/// Adds up, interval by interval, what the busiest lane did and what a fair share would have been. So a run
/// in which now one lane does all the work and then another is as uneven as one in which it is always the
/// same.
#[derive(Debug)]
pub(super) struct ImbalanceMeter {
    /// Busy nanoseconds of each lane when it was last looked at.
    last: Vec<u64>,
    /// The busiest lane's time times the number of lanes, of all intervals.
    busiest: u128,
    /// The time of all lanes, of all intervals.
    all: u128,
}

impl ImbalanceMeter {
    pub(super) fn new(lanes: usize) -> ImbalanceMeter {
        ImbalanceMeter { last: vec![0; lanes], busiest: 0, all: 0 }
    }

    /// Notes busy nanoseconds since the start of the run, of each lane in its present state. A parked lane
    /// counts only if it has worked.
    pub(super) fn note(&mut self, lanes: impl Iterator<Item = (u64, LaneState)>) {
        let (mut busiest, mut all, mut count) = (0, 0, 0_u128);
        for ((busy, state), last) in lanes.zip(&mut self.last) {
            let worked = u128::from(busy.saturating_sub(*last));
            *last = busy;
            busiest = worked.max(busiest);
            all += worked;
            count += u128::from(worked > 0 || state == LaneState::Active);
        }
        self.busiest += busiest * count;
        self.all += all;
    }

    /// The busiest lanes' work ÷ a fair share, over all intervals.
    pub(super) fn of_all(&self) -> Option<f64> {
        (self.all > 0).then(|| self.busiest as f64 / self.all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LaneState::{Active, Parked};

    fn meter(notes: &[[(u64, LaneState); 3]]) -> Option<f64> {
        let mut meter = ImbalanceMeter::new(3);
        notes.iter().for_each(|lanes| meter.note(lanes.iter().copied()));
        meter.of_all()
    }

    #[test]
    fn lanes_that_take_turns_are_as_uneven_as_one_alone() {
        assert_eq!(meter(&[[(0, Active); 3]]), None);
        assert_eq!(meter(&[[(5, Active); 3], [(9, Active); 3]]), Some(1.0));
        assert_eq!(meter(&[[(6, Active), (0, Active), (0, Active)]]), Some(3.0));
        let turns = [
            [(6, Active), (0, Active), (0, Active)],
            [(6, Active), (6, Active), (0, Active)],
            [(6, Active), (6, Active), (6, Active)],
        ];
        assert_eq!(meter(&turns), Some(3.0));
    }

    #[test]
    fn a_lane_that_sleeps_is_not_missed() {
        assert_eq!(meter(&[[(4, Active), (4, Active), (0, Parked)]]), Some(1.0));
        // It was parked at the end of the interval only.
        assert_eq!(meter(&[[(4, Active), (4, Active), (1, Parked)]]), Some(12.0 / 9.0));
    }
}
