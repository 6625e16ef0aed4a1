//! How many operations take a time, on one worker.
//!
//! The count starts at 1 and is doubled until the time is reached, then halved steps lead back until it is near. What is near is
//! measured over [`REPETITIONS`], each the median of many runs, so that pauses of the machine do not count; while their median is
//! off, the count is corrected in proportion.

use rheostat_base::Clock;

use super::computation::Computation;

/// Measurements of the count that was found.
pub const REPETITIONS: usize = 20;
/// How far the median of the repetitions may be from the time, as a share of it.
pub const TOLERANCE: f64 = 0.02;
/// How far a count may be that was found earlier.
const TOLERANCE_KEPT: f64 = 0.05;
/// Corrections at most.
const CORRECTIONS: usize = 8;
/// Operations at most.
const MOST: u64 = 1 << 40;
/// How long one repetition takes, about, in nanoseconds.
const SPAN: u64 = 2_000_000;
/// How long operations run before any is counted, in nanoseconds: what was just written of a buffer is in caches that do not hold
/// it later.
const SETTLE: u64 = 500_000_000;
/// The same before a count is measured again.
const SETTLE_AGAIN: u64 = 100_000_000;

/// A count of operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// What they should take, in nanoseconds.
    pub target_ns: u64,
    /// The count.
    pub operations: u64,
    /// What they take: the median of the repetitions.
    pub measured_ns: f64,
    /// The largest distance of a repetition from it, as a share of it.
    pub spread: f64,
}

impl Calibration {
    /// Whether the count takes its time, whenever it is measured.
    pub fn holds(&self) -> bool {
        let distance = (self.measured_ns / self.target_ns as f64 - 1.0).abs();
        distance <= TOLERANCE && self.spread <= TOLERANCE
    }

    /// Whether a count that was found earlier still takes its time, within 5 %: processors change their speed.
    pub fn still_holds(&self) -> bool {
        (self.measured_ns / self.target_ns as f64 - 1.0).abs() <= TOLERANCE_KEPT
    }
}

/// Finds how many operations of `computation` take `target` nanoseconds, with the two readings of the clock around them.
pub fn calibrate(computation: &mut Computation, clock: &Clock, target: u64) -> Calibration {
    warm_up(computation, clock, SETTLE);
    search(target, measuring(computation, clock, target))
}

/// What a count that was found earlier takes now.
pub fn measure_again(
    computation: &mut Computation,
    clock: &Clock,
    found: &Calibration,
) -> Calibration {
    warm_up(computation, clock, SETTLE_AGAIN);
    let target = found.target_ns;
    repeat(target, found.operations, &mut measuring(computation, clock, target))
}

fn warm_up(computation: &mut Computation, clock: &Clock, nanos: u64) {
    let begin = clock.cycles();
    while clock.nanos_between(begin, clock.cycles()) < nanos {
        computation.run(1_000);
    }
}

/// What so many operations take, of which about `target` nanoseconds are expected: the median of many runs.
fn measuring(computation: &mut Computation, clock: &Clock, target: u64) -> impl FnMut(u64) -> f64 {
    let runs = (SPAN / target.max(1)).clamp(5, 201) as usize;
    let mut times = Vec::with_capacity(runs);
    move |operations| {
        times.clear();
        for _ in 0..runs {
            let start = clock.cycles();
            computation.run(operations);
            times.push(clock.nanos_between(start, clock.cycles()) as f64);
        }
        median(&mut times)
    }
}

/// The same over any measurement.
fn search(target: u64, mut measure: impl FnMut(u64) -> f64) -> Calibration {
    let wanted = target as f64;
    let mut high = 1;
    while high < MOST && measure(high) < wanted {
        high *= 2;
    }
    let mut low = high / 2;
    while high - low > (low / 512).max(1) {
        let middle = low + (high - low) / 2;
        match measure(middle) < wanted {
            true => low = middle,
            false => high = middle,
        }
    }
    let mut best = repeat(target, high, &mut measure);
    for _ in 0..CORRECTIONS {
        let distance = |found: &Calibration| (found.measured_ns / wanted - 1.0).abs();
        let corrected =
            (best.operations as f64 * wanted / best.measured_ns.max(1.0)).round() as u64;
        let corrected = corrected.clamp(1, MOST);
        if best.holds() || (corrected == best.operations && best.spread <= TOLERANCE) {
            break;
        }
        let next = repeat(target, corrected, &mut measure);
        if next.holds() || distance(&next).max(next.spread) < distance(&best).max(best.spread) {
            best = next;
        }
    }
    best
}

fn repeat(target: u64, operations: u64, measure: &mut impl FnMut(u64) -> f64) -> Calibration {
    let mut times: Vec<f64> = (0..REPETITIONS).map(|_| measure(operations)).collect();
    let middle = median(&mut times);
    let farthest = times.iter().map(|time| (time - middle).abs()).fold(0.0, f64::max);
    let spread = if middle > 0.0 { farthest / middle } else { 0.0 };
    Calibration { target_ns: target, operations, measured_ns: middle, spread }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    let middle = times.len() / 2;
    (times[(times.len() - 1) / 2] + times[middle]) / 2.0
}

#[cfg(test)]
mod tests {
    //! Timed: clock.

    use super::*;

    #[test]
    fn the_count_takes_the_time_where_operations_cost_alike() {
        for cost in [0.3, 1.0, 4.03, 77.0] {
            for target in [1_000, 10_000, 100_000] {
                let found = search(target, |operations| 12.0 + operations as f64 * cost);
                let exact = (target as f64 - 12.0) / cost;
                let distance = (found.operations as f64 - exact).abs();
                assert!(distance <= (exact / 256.0).max(1.0), "{cost}, {target}: {found:?}");
                assert_eq!(found.spread, 0.0);
            }
        }
    }

    #[test]
    fn a_machine_that_changes_its_speed_is_followed() {
        // Twice as slow after the search has found a count at the first speed.
        let mut measurements = 0;
        let found = search(10_000, |operations| {
            measurements += 1;
            operations as f64 * if measurements < 30 { 2.0 } else { 4.0 }
        });
        assert!(found.holds(), "{found:?}");
        assert!((2_450..=2_550).contains(&found.operations), "{found:?}");
    }

    #[test]
    fn a_kept_count_holds_until_the_machine_has_another_speed() {
        let at = |speed: f64| repeat(1_000, 250, &mut |operations| operations as f64 * speed);
        assert!(at(4.0).still_holds() && at(4.15).still_holds() && at(3.85).still_holds());
        assert!(!at(2.6).still_holds() && !at(4.3).still_holds());
        let clock = Clock::new();
        let mut computation = Computation::new(crate::work::WorkKind::Roots, 0, 1);
        let long = Calibration { target_ns: 1_000, operations: 1 << 14, ..at(4.0) };
        let again = measure_again(&mut computation, &clock, &long);
        assert_eq!((again.target_ns, again.operations), (1_000, 1 << 14));
        assert!(!again.still_holds(), "16,384 roots take longer than a microsecond");
    }

    #[test]
    fn noise_is_shown_as_spread_and_ends() {
        let mut number = 0_u64;
        let found = search(1_000, |operations| {
            number += 1;
            operations as f64 * if number.is_multiple_of(7) { 1.3 } else { 1.0 }
        });
        assert!((0.25..0.35).contains(&found.spread), "{found:?}");
        assert!(!found.holds());
    }

    #[test]
    fn one_operation_that_takes_longer_is_the_least_and_free_ones_end() {
        assert_eq!(search(10, |operations| operations as f64 * 50.0).operations, 1);
        assert_eq!(search(1_000, |_| 0.0).operations, MOST);
    }
}
