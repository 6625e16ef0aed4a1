//! The distribution of a lane's vacations, as the model has it.

use std::time::Duration;

/// The distribution of V: the worker that left the lane sleeps a time D, and any of its mates may come before it.
///
/// Each mate is at an independent, uniform place of its own timeout (the decorrelation assumption of 4.2.2): of the
/// short one with probability p, of the long one otherwise (4.3). So
/// P(V > x) = P(D > x) · (p·(1 − x/T_S)⁺ + (1 − p)·(1 − x/T_L)⁺)^(m−1).
///
/// A try succeeds with probability 1 − ρ, so of a mate's *time* the share p = (1 − ρ)·T_S / ((1 − ρ)·T_S + ρ·T_L) is spent in
/// the short timeout. The original takes p = 1 − ρ, the share of its tries: with T_L = 50·T_S that is far too many mates
/// in the short one, and vacations at loads between the extremes are up to m times as long as its equation 4.3.1 has them.
/// At the extremes both agree: with ρ = 1 and D = T_S this is equation 4.2.5; with ρ = 0 all workers are alike, as in
/// 4.2.8, whose exponent has to be m − 1 for its own mean T_S/m to hold.
///
/// Bounds: each question costs two powers per duration that D may have.
#[derive(Clone, Debug)]
pub struct VacationLaw {
    /// m − 1: how many mates may come first; need not be whole.
    mates: f64,
    /// p: the share of a mate's time in the short timeout.
    primary: f64,
    /// T_S and T_L in seconds, 0 < T_S ≤ T_L.
    short: f64,
    long: f64,
    /// Equally likely values of D in seconds, ascending; not empty.
    sleeps: Vec<f64>,
}

impl VacationLaw {
    /// The law for `crew` workers per lane (at least 1), occupancy `rho`, the timeouts `short` ≤ `long`, and `sleeps`,
    /// the equally likely durations of a sleep for `short`. Without any, sleeps are exact.
    pub fn new(
        crew: f64,
        rho: f64,
        short: Duration,
        long: Duration,
        sleeps: &[Duration],
    ) -> VacationLaw {
        let mut sleeps: Vec<_> = sleeps.iter().map(Duration::as_secs_f64).collect();
        if sleeps.is_empty() {
            sleeps.push(short.as_secs_f64());
        }
        sleeps.sort_by(f64::total_cmp);
        // A timeout of zero is one of a nanosecond: nothing is divided by it then.
        let short = short.as_secs_f64().max(1e-9);
        let long = long.as_secs_f64().max(short);
        let rho = rho.clamp(0.0, 1.0);
        let primary = (1.0 - rho) * short / ((1.0 - rho) * short + rho * long);
        VacationLaw { mates: (crew - 1.0).max(0.0), primary, short, long, sleeps }
    }

    /// P(V > x), `x` in seconds.
    pub fn survival(&self, x: f64) -> f64 {
        let longer = self.sleeps.len() - self.sleeps.partition_point(|sleep| *sleep <= x);
        longer as f64 / self.sleeps.len() as f64 * self.no_mate(x)
    }

    /// E\[V\] in seconds.
    pub fn mean(&self) -> f64 {
        self.average(|sleep| self.area(sleep))
    }

    /// E\[V²\] in seconds².
    pub fn mean_square(&self) -> f64 {
        self.average(|sleep| 2.0 * self.moment(sleep))
    }

    /// The probability that more than `x` seconds are left of the vacation into which a moment falls: 1/E\[V\] times the
    /// integral of P(V > y) over y > x.
    pub fn residual_survival(&self, x: f64) -> f64 {
        let mean = self.mean();
        if mean <= 0.0 {
            return 0.0;
        }
        let before = self.area(x);
        self.average(|sleep| (self.area(sleep) - before).max(0.0)) / mean
    }

    fn average(&self, of: impl Fn(f64) -> f64) -> f64 {
        self.sleeps.iter().map(|sleep| of(*sleep)).sum::<f64>() / self.sleeps.len() as f64
    }

    /// The probability that no mate has come within `x`.
    fn no_mate(&self, x: f64) -> f64 {
        if self.mates == 0.0 {
            return 1.0;
        }
        let primary = (1.0 - x / self.short).max(0.0);
        let backup = (1.0 - x / self.long).max(0.0);
        (self.primary * primary + (1.0 - self.primary) * backup).powf(self.mates)
    }

    /// The parts within which that probability is the power of a line: start, end, value of the line at the start, and
    /// its slope downwards.
    fn parts(&self) -> [(f64, f64, f64, f64); 2] {
        let (primary, short, long) = (self.primary, self.short, self.long);
        let backup = 1.0 - primary;
        [
            (0.0, short, 1.0, primary / short + backup / long),
            (short, long, backup * (1.0 - short / long), backup / long),
        ]
    }

    /// The integral of [`VacationLaw::no_mate`] from 0 to `x`.
    fn area(&self, x: f64) -> f64 {
        if self.mates == 0.0 {
            return x;
        }
        let power = self.mates + 1.0;
        self.integral(x, |_, from, to, slope| (from.powf(power) - to.powf(power)) / (power * slope))
    }

    /// The integral of y times that from 0 to `x`.
    fn moment(&self, x: f64) -> f64 {
        if self.mates == 0.0 {
            return x * x / 2.0;
        }
        let power = self.mates + 1.0;
        self.integral(x, |start, from, to, slope| {
            // With u = the line's value, y = start + (from − u)/slope.
            let area = (from.powf(power) - to.powf(power)) / power;
            let next = (from.powf(power + 1.0) - to.powf(power + 1.0)) / (power + 1.0);
            (start * area + (from * area - next) / slope) / slope
        })
    }

    fn integral(&self, x: f64, part: impl Fn(f64, f64, f64, f64) -> f64) -> f64 {
        let reached = self.parts().into_iter().filter(|(start, ..)| x > *start);
        reached
            .filter(|(.., slope)| *slope > 0.0)
            .map(|(start, end, value, slope)| {
                let to = (value - slope * (x.min(end) - start)).max(0.0);
                part(start, value, to, slope)
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;

    fn close(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() <= 1e-9 + 1e-6 * expected.abs(),
            "{found}, not {expected}"
        );
    }

    /// The same by sums over small steps.
    fn by_steps(law: &VacationLaw, of: impl Fn(f64) -> f64) -> f64 {
        let step = 2e-9;
        (0..400_000)
            .map(|n| (f64::from(n) + 0.5) * step)
            .map(|x| of(x) * law.survival(x) * step)
            .sum()
    }

    #[test]
    fn high_load_has_the_mean_of_4_2_6() {
        for (workers, short, long) in [(2, 10.0, 500.0), (3, 50.0, 50.0), (5, 50.0, 500.0_f64)] {
            let law =
                VacationLaw::new(f64::from(workers), 1.0, US(short as u64), US(long as u64), &[]);
            let mean = long / f64::from(workers) * (1.0 - (1.0 - short / long).powi(workers));
            close(1e6 * law.mean(), mean);
            let x = 0.4 * short;
            close(law.survival(x / 1e6), (1.0 - x / long).powi(workers - 1));
        }
    }

    #[test]
    fn low_load_has_the_mean_of_one_timeout_divided_by_all_workers() {
        for workers in [1, 2, 3, 5] {
            let law = VacationLaw::new(f64::from(workers), 0.0, US(50), US(500), &[]);
            close(1e6 * law.mean(), 50.0 / f64::from(workers));
        }
    }

    #[test]
    fn closed_forms_are_the_integrals_of_the_survival_function() {
        let late = [US(18), US(21), US(30), US(90)];
        for (crew, rho) in [(1.0, 0.3), (1.5, 0.0), (2.0, 0.4), (2.5, 0.9), (4.0, 1.0)] {
            let law = VacationLaw::new(crew, rho, US(20), US(300), &late);
            let close = |found: f64, expected: f64| {
                assert!((found / expected - 1.0).abs() < 2e-4, "{crew} {rho}: {found} {expected}");
            };
            close(law.mean(), by_steps(&law, |_| 1.0));
            close(law.mean_square(), by_steps(&law, |x| 2.0 * x));
            for x in [5e-6, 19e-6, 25e-6, 60e-6] {
                let residual = by_steps(&law, |y| f64::from(u8::from(y > x))) / law.mean();
                let found = law.residual_survival(x);
                assert!((found - residual).abs() < 3e-4, "{crew} {rho} {x}: {found} {residual}");
            }
        }
    }

    #[test]
    fn a_single_worker_has_its_sleeps_for_vacations() {
        let law = VacationLaw::new(1.0, 0.5, US(10), US(500), &[US(10), US(30)]);
        close(law.mean(), 20e-6);
        close(law.mean_square(), 500e-12);
        assert_eq!(law.survival(20e-6), 0.5);
        // Of all moments three quarters fall into the longer one, of those a third into its last 10 us.
        close(law.residual_survival(20e-6), 0.25);
        assert_eq!(law.residual_survival(30e-6), 0.0);
    }

    #[test]
    fn degenerate_timeouts_give_numbers() {
        for crew in [1.0, 3.0] {
            let law = VacationLaw::new(crew, 0.0, Duration::ZERO, Duration::ZERO, &[]);
            let found =
                [law.mean(), law.mean_square(), law.residual_survival(1e-6), law.survival(0.0)];
            assert_eq!(found, [0.0; 4], "{crew}");
        }
    }
}
