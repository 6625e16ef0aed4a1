//! What a simulated sleep takes and costs.

use std::time::Duration;

use rand::Rng;
use rheostat_kernel::sleep::SleepProfile;

/// One sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SimulatedSleep {
    /// From its start to its end.
    pub(super) taken: Duration,
    /// CPU time, at most that: its two ends are work.
    pub(super) cpu: Duration,
}

impl SimulatedSleep {
    /// A sleep of `ask`: one of those that were measured for the nearest duration, longer or shorter by the difference.
    pub(super) fn draw(
        profile: &SleepProfile,
        ask: Duration,
        random: &mut impl Rng,
    ) -> SimulatedSleep {
        let points = profile.points();
        let Some(point) = points.iter().min_by_key(|point| point.asked().abs_diff(ask)) else {
            return SimulatedSleep { taken: ask, cpu: Duration::ZERO };
        };
        let sample = point.taken()[random.random_range(0..point.taken().len())];
        let taken = (ask + sample).saturating_sub(point.asked()).max(point.cpu());
        SimulatedSleep { taken, cpu: point.cpu() }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use rheostat_kernel::sleep::SleepPoint;

    use super::*;

    #[test]
    fn a_sleep_is_a_measured_one_of_the_nearest_duration() {
        const US: fn(u64) -> Duration = Duration::from_micros;
        let mut random = StdRng::seed_from_u64(1);
        let exact = SimulatedSleep::draw(&SleepProfile::exact(), US(7), &mut random);
        assert_eq!(exact, SimulatedSleep { taken: US(7), cpu: Duration::ZERO });
        let point = |asked, taken| SleepPoint::new(US(asked), vec![US(taken)], US(4)).unwrap();
        let profile = SleepProfile::new(vec![point(10, 13), point(50, 70)]);
        let mut taken = |ask| SimulatedSleep::draw(&profile, US(ask), &mut random).taken;
        assert_eq!([taken(10), taken(12), taken(45), taken(500)], [13, 15, 65, 520].map(US));
        assert_eq!(taken(0), US(4), "not shorter than its CPU time");
    }
}
