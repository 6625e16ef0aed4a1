//! Models of vacations and latencies, with the sleeps that a machine really makes.

use std::time::Duration;

use rheostat_run::poll::metronome::LaneService;

/// The distribution of V for equal timeouts (T_S = T_L), convolved with a measured distribution of sleeps.
///
/// With exact sleeps of T it is equation 4.2.5: P(V > x) = (1 − x/T)^(M−1) for x < T. With sleeps that take D, the worker
/// that left sleeps D, and each mate is at a uniform place of its own: P(V > x) = P(D > x)·(E\[(D − x)⁺\]/E\[D\])^(M−1).
/// Holds at any load, as long as busy periods are shorter than the timeouts or decorrelate the workers.
#[derive(Clone, Debug)]
pub struct EqualTimeouts {
    workers: usize,
    /// Equally likely durations of a sleep in seconds, ascending; not empty.
    sleeps: Vec<f64>,
    /// Sums of the durations from each position to the end.
    sums: Vec<f64>,
}

impl EqualTimeouts {
    /// The law of `workers` workers, at least one, whose sleeps take one of these durations, at least one, each equally
    /// likely.
    pub fn new(workers: usize, sleeps: &[Duration]) -> EqualTimeouts {
        assert!(workers > 0 && !sleeps.is_empty(), "workers sleep for some time");
        let mut sleeps: Vec<_> = sleeps.iter().map(Duration::as_secs_f64).collect();
        sleeps.sort_by(f64::total_cmp);
        let mut sums: Vec<_> = sleeps
            .iter()
            .rev()
            .scan(0.0, |sum, sleep| {
                *sum += sleep;
                Some(*sum)
            })
            .collect();
        sums.reverse();
        sums.push(0.0);
        EqualTimeouts { workers, sleeps, sums }
    }

    /// P(V > x), `x` in seconds.
    pub fn survival(&self, x: f64) -> f64 {
        let first = self.sleeps.partition_point(|sleep| *sleep <= x);
        let longer = (self.sleeps.len() - first) as f64;
        let all = self.sums[0];
        if longer == 0.0 || all == 0.0 {
            return 0.0;
        }
        let left = (self.sums[first] - longer * x) / all;
        longer / self.sleeps.len() as f64 * left.powi(self.workers as i32 - 1)
    }

    /// The probability that one of the mates ends a vacation, and not the worker that left: 1 − E\[(E\[(D' − D)⁺\]/E\[D\])^(M−1)\],
    /// with D' and D independent sleeps. One for exact sleeps, as the integral of equation 4.2.7 has it.
    pub fn won_by_other(&self) -> f64 {
        let mates = self.workers as i32 - 1;
        let all = self.sums[0];
        if mates == 0 || all == 0.0 {
            return 0.0;
        }
        let count = self.sleeps.len();
        let own = self.sleeps.iter().enumerate().map(|(first, sleep)| {
            ((self.sums[first] - (count - first) as f64 * sleep) / all).max(0.0).powi(mates)
        });
        1.0 - own.sum::<f64>() / count as f64
    }

    /// E\[V\] in seconds: the mean sleep divided by the number of workers, whatever the distribution.
    pub fn mean(&self) -> f64 {
        self.sums[0] / self.sleeps.len() as f64 / self.workers as f64
    }

    /// E\[V²\] in seconds², by Simpson's rule between the durations.
    pub fn mean_square(&self) -> f64 {
        let mut from = 0.0;
        let mut sum = 0.0;
        for to in &self.sleeps {
            // Between two durations the integrand is a polynomial; just above `from`, as the survival function jumps there.
            let (a, b) = (from + 1e-15, to - 1e-15);
            let pieces = 8;
            let step = (b - a) / f64::from(pieces);
            if step > 0.0 {
                let at = |x: f64| 2.0 * x * self.survival(x);
                sum += (0..pieces)
                    .map(|piece| a + f64::from(piece) * step)
                    .map(|x| step / 6.0 * (at(x) + 4.0 * at(x + step / 2.0) + at(x + step)))
                    .sum::<f64>();
            }
            from = *to;
        }
        sum
    }
}

/// The probability that one given backup of the M − 1 gets the lane before the primary comes back: the integral of
/// equation 4.2.7, (1 − (1 − T_S/T_L)^(M−1))/(M − 1). (Its closed form is printed without the "1 −".) Zero for one worker.
pub fn backup_wins(workers: usize, short: Duration, long: Duration) -> f64 {
    let mates = workers.saturating_sub(1) as i32;
    if mates == 0 {
        return 0.0;
    }
    let share = (short.as_secs_f64() / long.as_secs_f64().max(1e-12)).min(1.0);
    (1.0 - (1.0 - share).powi(mates)) / f64::from(mates)
}

/// E\[V\] at high load, equation 4.2.6: T_L/M · (1 − (1 − T_S/T_L)^M).
pub fn mean_at_high_load(workers: usize, short: Duration, long: Duration) -> Duration {
    let share = (short.as_secs_f64() / long.as_secs_f64().max(1e-12)).min(1.0);
    long.mul_f64((1.0 - (1.0 - share).powi(workers as i32)) / workers as f64)
}

/// The Kolmogorov-Smirnov distance: the largest difference between the share of `samples` (seconds, in any order) up to x
/// and 1 − `survival(x)`, over all x. 1 without samples.
///
/// The law may jump: both sides of each sample are looked at.
pub fn kolmogorov_smirnov(samples: &[f64], survival: impl Fn(f64) -> f64) -> f64 {
    let mut samples = samples.to_vec();
    samples.sort_by(f64::total_cmp);
    let count = samples.len() as f64;
    let mut most: f64 = if samples.is_empty() { 1.0 } else { 0.0 };
    let mut before = 0;
    // Samples of one value are one step.
    for equal in samples.chunk_by(|a, b| a == b) {
        let after = before + equal.len();
        let x = equal[0];
        let just_before = x - x.abs().max(1e-12) * 1e-9;
        most = most
            .max((1.0 - survival(just_before) - before as f64 / count).abs())
            .max((1.0 - survival(x) - after as f64 / count).abs());
        before = after;
    }
    most
}

/// The same of samples of which only bins are known: pairs of the largest value of a bin and how many it has, ascending.
/// Only the ends of bins are looked at.
pub fn kolmogorov_smirnov_of_bins(bins: &[(f64, u64)], survival: impl Fn(f64) -> f64) -> f64 {
    let count: u64 = bins.iter().map(|(_, count)| count).sum();
    let mut most: f64 = if count == 0 { 1.0 } else { 0.0 };
    let mut up_to = 0;
    for &(end, samples) in bins {
        up_to += samples;
        most = most.max((1.0 - survival(end) - up_to as f64 / count as f64).abs());
    }
    most
}

/// The mean latency in seconds where the packets of a burst leave together, as lanes send them, in the M/D/1 queue with
/// multiple vacations of these moments: S + (1/2 + ρ)/(1 + ρ) · (E\[V²\]/E\[V\] + ρS/(1 − ρ)).
///
/// A burst takes what arrived in the interval before it, of length L: a vacation, or the burst before. Its packets wait
/// L/2 on average and then for all of the burst, ρL; the interval after it is ρL long on average. Summing L² over
/// intervals gives the formula; with ρL/2 in place of ρL it is Pollaczek and Khinchine's with the vacation's residual.
/// Holds as long as bursts have room for all.
pub fn mean_latency_in_bursts(service: &LaneService, vacation: f64, vacation_square: f64) -> f64 {
    let rho = service.rho();
    let interval = if vacation > 0.0 { vacation_square / vacation } else { 0.0 };
    let work = if rho > 0.0 { rho * service.mean / (1.0 - rho) } else { 0.0 };
    service.mean + (0.5 + rho) / (1.0 + rho) * (interval + work)
}

/// The dissertation's mean latency (5.2.1), E\[V\]/(1−ρ), in seconds. It lets every packet wait for a whole vacation, and
/// divides by what the other packets already account for.
pub fn mean_latency_of_original(service: &LaneService, vacation: f64) -> f64 {
    vacation / (1.0 - service.rho())
}

#[cfg(test)]
mod tests {
    use rheostat_run::poll::metronome::VacationLaw;

    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;

    fn close(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() <= 1e-12 + 1e-6 * expected.abs(),
            "{found}, not {expected}"
        );
    }

    #[test]
    fn exact_sleeps_have_the_law_of_4_2_5() {
        for workers in [1, 2, 3, 5] {
            let law = EqualTimeouts::new(workers, &[US(50)]);
            let policy = VacationLaw::new(workers as f64, 1.0, US(50), US(50), &[]);
            for x in [0.0, 10e-6, 30e-6, 49e-6_f64] {
                close(law.survival(x), (1.0 - x / 50e-6).powi(workers as i32 - 1));
                close(law.survival(x), policy.survival(x));
            }
            close(law.mean(), 50e-6 / workers as f64);
            close(law.mean_square(), policy.mean_square());
            assert_eq!(law.survival(50e-6), 0.0);
        }
    }

    #[test]
    fn late_sleeps_lengthen_vacations_less_the_more_workers_there_are() {
        let sleeps = [US(54), US(54), US(54), US(154)];
        let tail = |workers| EqualTimeouts::new(workers, &sleeps).survival(60e-6);
        close(tail(1), 0.25);
        close(tail(2), 0.25 * 94.0 / 316.0);
        assert!(tail(5) < 0.01);
        let law = EqualTimeouts::new(2, &sleeps);
        let steps = (0..154_000).map(|n| (f64::from(n) + 0.5) * 1e-9);
        let (mean, square) = steps.fold((0.0, 0.0), |(mean, square), x| {
            let survival = law.survival(x) * 1e-9;
            (mean + survival, square + 2.0 * x * survival)
        });
        assert!((law.mean() / mean - 1.0).abs() < 1e-4, "{} {mean}", law.mean());
        assert!((law.mean_square() / square - 1.0).abs() < 1e-4, "{} {square}", law.mean_square());
    }

    #[test]
    fn backups_win_as_often_as_the_integral_says() {
        close(backup_wins(2, US(10), US(500)), 0.02);
        // Of equal timeouts some backup always ends before the primary.
        close(4.0 * backup_wins(5, US(50), US(50)), 1.0);
        assert_eq!(backup_wins(1, US(50), US(50)), 0.0);
        let step = 1e-3;
        let integral: f64 = (0..10_000)
            .map(|n| (f64::from(n) + 0.5) * step)
            .map(|x| (1.0 - x / 500.0).powi(3) / 500.0 * step)
            .sum();
        assert!((backup_wins(5, US(10), US(500)) - integral).abs() < 1e-9);
        let mean = mean_at_high_load(3, US(50), US(50));
        assert_eq!(mean, Duration::from_nanos(16_667), "a third");
    }

    #[test]
    fn the_worker_that_left_wins_where_sleeps_vary_and_is_always_overtaken_where_they_do_not() {
        close(EqualTimeouts::new(3, &[US(50)]).won_by_other(), 1.0);
        assert_eq!(EqualTimeouts::new(1, &[US(50)]).won_by_other(), 0.0);
        // Of sleeps of 0 and 100 us, a mate is at a uniform place of a long one: the short one wins, the long one never.
        close(EqualTimeouts::new(2, &[US(0), US(100)]).won_by_other(), 0.5);
    }

    #[test]
    fn bins_are_compared_at_their_ends() {
        let uniform = |x: f64| (1.0 - x).clamp(0.0, 1.0);
        assert!(kolmogorov_smirnov_of_bins(&[(0.25, 1), (1.0, 3)], uniform) < 1e-12);
        close(kolmogorov_smirnov_of_bins(&[(0.25, 3), (1.0, 1)], uniform), 0.5);
        assert_eq!(kolmogorov_smirnov_of_bins(&[], uniform), 1.0);
    }

    #[test]
    fn bursts_that_leave_together_take_longer_the_higher_the_load() {
        let at = |rho: f64| {
            let service = LaneService { rate: rho * 1e6, mean: 1e-6, mean_square: 1e-12 };
            let (mean, square) = (20e-6, 500e-12);
            (mean_latency_in_bursts(&service, mean, square), service.mean_latency(mean, square))
        };
        let (together, each) = at(0.0);
        close(together, each);
        let (together, each) = at(0.5);
        close((together - 1e-6) / (each - 1e-6), 2.0 / 1.5);
    }

    #[test]
    fn the_original_formula_is_the_longer_the_busier_the_lane() {
        let at = |rate| mean_latency_of_original(&LaneService::exponential(rate, 2e-6), 10e-6);
        assert!((at(450_000.0) - 100e-6).abs() < 1e-12, "{}", at(450_000.0));
        assert!((at(0.0) - 10e-6).abs() < 1e-12, "{}", at(0.0));
    }

    #[test]
    fn the_distance_is_the_largest_gap_between_two_steps() {
        let uniform = |x: f64| (1.0 - x).clamp(0.0, 1.0);
        let middles: Vec<_> = (0..10).map(|n| (f64::from(n) + 0.5) / 10.0).collect();
        assert!((kolmogorov_smirnov(&middles, uniform) - 0.05).abs() < 1e-6);
        assert!((kolmogorov_smirnov(&[0.9, 0.9], uniform) - 0.9).abs() < 1e-6);
        assert_eq!(kolmogorov_smirnov(&[], uniform), 1.0);
        // A law that is one jump, and samples at the jump.
        let jump = |x: f64| if x < 0.5 { 1.0 } else { 0.0 };
        assert_eq!(kolmogorov_smirnov(&[0.5; 4], jump), 0.0);
    }
}
