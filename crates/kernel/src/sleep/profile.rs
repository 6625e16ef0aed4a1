//! How long sleeps take on a machine, by what was requested.

use std::time::Duration;

/// Sleeps of one asked duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SleepPoint {
    /// What was requested.
    asked: Duration,
    /// What each sleep took, ascending; never empty.
    taken: Box<[Duration]>,
    /// CPU time of the sleeping thread per sleep.
    cpu: Duration,
}

impl SleepPoint {
    /// Sleeps of `asked` that took `taken`, and `cpu` of the thread's time each; `None` without sleeps.
    pub fn new(asked: Duration, mut taken: Vec<Duration>, cpu: Duration) -> Option<SleepPoint> {
        taken.sort_unstable();
        (!taken.is_empty()).then(|| SleepPoint { asked, taken: taken.into(), cpu })
    }

    /// What was requested.
    pub fn asked(&self) -> Duration {
        self.asked
    }

    /// What each sleep took, ascending.
    pub fn taken(&self) -> &[Duration] {
        &self.taken
    }

    /// CPU time of the thread per sleep, with the two readings of the clock around it.
    pub fn cpu(&self) -> Duration {
        self.cpu
    }

    /// What a share `q` of the sleeps did not exceed, `q` between 0 and 1.
    pub fn quantile(&self, q: f64) -> Duration {
        let rank = (q * self.taken.len() as f64).ceil() as usize;
        self.taken[rank.clamp(1, self.taken.len()) - 1]
    }

    /// The median minus what was asked; zero where sleeps end early.
    fn overshoot(&self) -> Duration {
        self.quantile(0.5).saturating_sub(self.asked)
    }
}

/// How long sleeps take on this machine, measured at start (`calibrate`). Policies subtract the
/// median overshoot from what they ask for, and spin below the shortest sleep.
///
/// Bounds: lookups are linear in the number of points, a handful.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SleepProfile {
    /// By ascending `asked`; empty for a machine that sleeps exactly.
    points: Box<[SleepPoint]>,
}

impl SleepProfile {
    /// The profile of these points, in any order.
    pub fn new(mut points: Vec<SleepPoint>) -> SleepProfile {
        points.sort_by_key(SleepPoint::asked);
        SleepProfile { points: points.into() }
    }

    /// A machine whose sleeps take what was asked and no CPU: for virtual time.
    pub fn exact() -> SleepProfile {
        SleepProfile { points: Box::default() }
    }

    /// The points, by ascending asked duration.
    pub fn points(&self) -> &[SleepPoint] {
        &self.points
    }

    /// The shortest time worth sleeping: the median of the shortest sleep, or the CPU time that a sleep takes, whichever
    /// is longer. A sleep for less comes back late, or saves nothing.
    pub fn shortest(&self) -> Duration {
        let first = self.points.first();
        first.map_or(Duration::ZERO, |point| point.quantile(0.5).max(point.cpu))
    }

    /// What to ask for so that the median sleep takes `wanted`: the overshoot is interpolated between the
    /// points around it. `None` if `wanted` is below [`SleepProfile::shortest`]: spin.
    pub fn ask_for(&self, wanted: Duration) -> Option<Duration> {
        if wanted < self.shortest() {
            return None;
        }
        let overshoot = self.interpolate(wanted, |point| point.quantile(0.5), |p| p.overshoot());
        // At least a nanosecond: zero would return at once.
        Some(wanted.saturating_sub(overshoot).max(Duration::from_nanos(1)))
    }

    /// CPU time of the thread for one sleep of about `wanted`.
    pub fn cpu_of(&self, wanted: Duration) -> Duration {
        self.interpolate(wanted, |point| point.quantile(0.5), SleepPoint::cpu)
    }

    /// What sleeps take for which the median is to be `wanted`, at `shares` equidistant quantiles (each the middle of
    /// its share): the measured distribution around the median of the nearest point.
    pub fn durations(&self, wanted: Duration, shares: usize) -> Vec<Duration> {
        let nearest = self.points.iter().min_by_key(|point| point.quantile(0.5).abs_diff(wanted));
        let Some(point) = nearest else { return vec![wanted; shares] };
        let median = point.quantile(0.5);
        let quantile = |share| point.quantile((share as f64 + 0.5) / shares as f64);
        (0..shares).map(|share| (wanted + quantile(share)).saturating_sub(median)).collect()
    }

    /// A property of points at `wanted`, which is compared with `place` of each; linear between two, that of the end
    /// beyond both ends, zero without points.
    fn interpolate(
        &self,
        wanted: Duration,
        place: impl Fn(&SleepPoint) -> Duration,
        property: impl Fn(&SleepPoint) -> Duration,
    ) -> Duration {
        let above = self.points.iter().position(|point| place(point) > wanted);
        let (low, high) = match above {
            Some(0) => (&self.points[0], &self.points[0]),
            Some(index) => (&self.points[index - 1], &self.points[index]),
            None => match self.points.last() {
                Some(last) => (last, last),
                None => return Duration::ZERO,
            },
        };
        let span = place(high).saturating_sub(place(low));
        if span.is_zero() {
            return property(low);
        }
        let share = wanted.saturating_sub(place(low)).as_secs_f64() / span.as_secs_f64();
        property(low).mul_f64(1.0 - share) + property(high).mul_f64(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;

    /// Sleeps of this many microseconds asked, taken, and CPU.
    fn profile() -> SleepProfile {
        let point = |asked, taken: &[u64], cpu| {
            SleepPoint::new(US(asked), taken.iter().copied().map(US).collect(), US(cpu)).unwrap()
        };
        SleepProfile::new(vec![
            point(50, &[54, 54, 70], 5),
            point(1, &[3, 4, 9], 4),
            point(10, &[13, 14, 40], 4),
        ])
    }

    #[test]
    fn the_median_overshoot_is_subtracted() {
        let profile = profile();
        assert_eq!(profile.ask_for(US(14)), Some(US(10)));
        assert_eq!(profile.ask_for(US(54)), Some(US(50)));
        assert_eq!(profile.ask_for(US(4)), Some(US(1)));
        assert_eq!(profile.ask_for(US(1_000)), Some(US(996)), "as the longest beyond it");
        // Halfway between overshoots of 3 and 4.
        assert_eq!(profile.ask_for(US(9)), Some(Duration::from_nanos(5_500)));
    }

    #[test]
    fn below_the_shortest_sleep_or_its_cost_nothing_is_asked() {
        assert_eq!(profile().ask_for(Duration::from_nanos(3_999)), None);
        let dear = SleepPoint::new(US(1), vec![US(3)], US(7)).unwrap();
        assert_eq!(SleepProfile::new(vec![dear]).shortest(), US(7));
        assert_eq!(SleepProfile::exact().ask_for(US(1)), Some(US(1)));
    }

    #[test]
    fn durations_are_the_measured_ones_around_the_median_wanted() {
        let profile = profile();
        assert_eq!(profile.durations(US(20), 3), [US(19), US(20), US(46)]);
        assert_eq!(SleepProfile::exact().durations(US(20), 2), [US(20), US(20)]);
        assert_eq!(profile.cpu_of(US(500)), US(5));
    }

    #[test]
    fn quantiles_are_ranks() {
        let point = SleepPoint::new(US(1), (1..=100).rev().map(US).collect(), US(1)).unwrap();
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|q| point.quantile(q)), [1, 50, 99, 100].map(US));
        assert!(SleepPoint::new(US(1), Vec::new(), US(1)).is_none());
    }
}
