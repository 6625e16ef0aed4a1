//! How busy a lane is: the share of the time in which it has packets.

use std::time::Duration;

/// The weight of a new observation (α of equation 4.4.1).
const WEIGHT: f64 = 0.25;

/// ρ of a lane: ρ ← (1 − α)·ρ + α·B/(V + B) with α = 0.25, after each busy period B that followed a vacation V
/// (equation 4.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Occupancy(f64);

impl Occupancy {
    /// The present estimate, between 0 and 1.
    pub(super) fn rho(self) -> f64 {
        self.0
    }

    /// A vacation was followed by a busy period. Both zero (the clock did not move) states nothing and changes nothing.
    pub(super) fn observe(&mut self, vacation: Duration, busy: Duration) {
        let cycle = vacation.as_secs_f64() + busy.as_secs_f64();
        if cycle > 0.0 {
            self.observe_share(busy.as_secs_f64() / cycle);
        }
    }

    /// The lane had more packets than the worker took: it is saturated, however short the visit.
    pub(super) fn observe_backlog(&mut self) {
        self.observe_share(1.0);
    }

    fn observe_share(&mut self, share: f64) {
        self.0 = (1.0 - WEIGHT) * self.0 + WEIGHT * share;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;

    #[test]
    fn the_estimate_moves_a_quarter_of_the_way() {
        let mut occupancy = Occupancy::default();
        occupancy.observe(US(10), US(10));
        assert_eq!(occupancy.rho(), 0.125);
        occupancy.observe(US(0), US(7));
        assert_eq!(occupancy.rho(), 0.75 * 0.125 + 0.25);
        occupancy.observe(US(7), US(0));
        assert!((occupancy.rho() - 0.75 * (0.75 * 0.125 + 0.25)).abs() < 1e-12);
    }

    #[test]
    fn no_time_at_all_changes_nothing() {
        let mut occupancy = Occupancy::default();
        occupancy.observe(US(1), US(1));
        let before = occupancy;
        occupancy.observe(US(0), US(0));
        assert_eq!(occupancy, before);
    }

    #[test]
    fn it_stays_between_0_and_1_and_reaches_what_it_observes() {
        let mut occupancy = Occupancy::default();
        for _ in 0..100 {
            occupancy.observe_backlog();
        }
        assert!(occupancy.rho() > 0.999_999 && occupancy.rho() <= 1.0);
        for _ in 0..100 {
            occupancy.observe(US(30), US(10));
        }
        assert!((occupancy.rho() - 0.25).abs() < 1e-9);
    }
}
