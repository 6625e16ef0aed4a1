//! When requests are due: moments with independent gaps from a distribution.

use std::fmt;
use std::str::FromStr;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution as _, Exp1, StandardNormal};
use thiserror::Error;

/// The distribution of the gaps between requests. All have the same mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArrivalProcess {
    /// Exponential: a Poisson process.
    Exponential,
    /// Uniform, from nothing to twice the mean.
    Uniform,
    /// Lognormal, by the standard deviation of the logarithm.
    Lognormal(f64),
    /// Pareto, by its shape, above 1: the smaller, the heavier the tail.
    Pareto(f64),
}

/// Why arrivals could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no arrival process: write exponential, uniform, lognormal, lognormal:SIGMA (above 0, at most 4), pareto or \
     pareto:SHAPE (above 1, at most 100)"
)]
pub struct ArrivalError(String);

impl FromStr for ArrivalProcess {
    type Err = ArrivalError;

    fn from_str(text: &str) -> Result<ArrivalProcess, ArrivalError> {
        let wrong = || ArrivalError(text.to_owned());
        let (name, parameter) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number.parse::<f64>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        match (name, parameter) {
            ("exponential", None) => Ok(ArrivalProcess::Exponential),
            ("uniform", None) => Ok(ArrivalProcess::Uniform),
            ("lognormal", None) => Ok(ArrivalProcess::Lognormal(1.0)),
            ("lognormal", Some(sigma)) if sigma > 0.0 && sigma <= 4.0 => {
                Ok(ArrivalProcess::Lognormal(sigma))
            }
            ("pareto", None) => Ok(ArrivalProcess::Pareto(2.5)),
            ("pareto", Some(shape)) if shape > 1.0 && shape <= 100.0 => {
                Ok(ArrivalProcess::Pareto(shape))
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for ArrivalProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArrivalProcess::Exponential => f.write_str("exponential"),
            ArrivalProcess::Uniform => f.write_str("uniform"),
            ArrivalProcess::Lognormal(sigma) => write!(f, "lognormal:{sigma}"),
            ArrivalProcess::Pareto(shape) => write!(f, "pareto:{shape}"),
        }
    }
}

/// The moments, in nanoseconds, ascending, without an end.
#[derive(Clone, Debug)]
pub struct Arrivals {
    process: ArrivalProcess,
    mean_gap: f64,
    random: SmallRng,
    /// Exact for the first three months.
    time: f64,
}

impl Arrivals {
    /// So many a second, from `start` on. The same seed has the same moments.
    pub fn new(process: ArrivalProcess, per_second: f64, start: u64, seed: u64) -> Arrivals {
        let random = SmallRng::seed_from_u64(seed);
        Arrivals { process, mean_gap: 1e9 / per_second, random, time: start as f64 }
    }

    /// A gap whose mean is 1.
    fn gap(&mut self) -> f64 {
        match self.process {
            ArrivalProcess::Exponential => Exp1.sample(&mut self.random),
            ArrivalProcess::Uniform => 2.0 * self.random.random::<f64>(),
            ArrivalProcess::Lognormal(sigma) => {
                let normal: f64 = StandardNormal.sample(&mut self.random);
                (sigma * normal - sigma * sigma / 2.0).exp()
            }
            ArrivalProcess::Pareto(shape) => {
                let uniform = 1.0 - self.random.random::<f64>();
                (shape - 1.0) / shape * uniform.powf(-1.0 / shape)
            }
        }
    }
}

impl Iterator for Arrivals {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.time += self.gap() * self.mean_gap;
        Some(self.time as u64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROCESSES: [ArrivalProcess; 4] = [
        ArrivalProcess::Exponential,
        ArrivalProcess::Uniform,
        ArrivalProcess::Lognormal(1.0),
        ArrivalProcess::Pareto(2.5),
    ];

    #[test]
    fn every_process_has_the_rate_that_was_asked_for() {
        for process in PROCESSES {
            let last = Arrivals::new(process, 1e5, 0, 3).nth(499_999).unwrap();
            let rate = 500_000.0 / (last as f64 / 1e9);
            assert!((rate / 1e5 - 1.0).abs() < 0.02, "{process}: {rate}");
        }
    }

    #[test]
    fn gaps_have_the_distribution_of_their_process() {
        // Shares of gaps above twice the mean, by the distribution functions.
        for (process, share) in [
            (ArrivalProcess::Exponential, (-2.0_f64).exp()),
            (ArrivalProcess::Uniform, 0.0),
            // The normal distribution above ln 2 + 1/2.
            (ArrivalProcess::Lognormal(1.0), 0.116_4),
            (ArrivalProcess::Pareto(2.5), (0.6_f64 / 2.0).powf(2.5)),
        ] {
            let mut arrivals = Arrivals::new(process, 1.0, 0, 9);
            let above = (0..200_000).filter(|_| arrivals.gap() > 2.0).count() as f64 / 200_000.0;
            assert!((above - share).abs() < 0.003, "{process}: {above}, not {share}");
        }
    }

    proptest! {
        #[test]
        fn moments_never_go_back_and_repeat_with_their_seed(
            process in 0..4_usize, rate in 1.0..1e7_f64, start: u32, seed: u64
        ) {
            let of = || Arrivals::new(PROCESSES[process], rate, start.into(), seed);
            let moments: Vec<u64> = of().take(200).collect();
            prop_assert!(moments.is_sorted());
            prop_assert!(moments[0] >= u64::from(start));
            prop_assert_eq!(moments, of().take(200).collect::<Vec<_>>());
        }

        #[test]
        fn processes_are_read_as_they_are_written(process in 0..4_usize) {
            let process = PROCESSES[process];
            prop_assert_eq!(process.to_string().parse(), Ok(process));
        }
    }

    #[test]
    fn what_is_no_process_is_answered_with_those_there_are() {
        for wrong in
            ["", "poisson", "pareto:1", "pareto:x", "lognormal:0", "uniform:1", "exponential:2"]
        {
            let error = wrong.parse::<ArrivalProcess>().unwrap_err().to_string();
            assert!(error.contains("pareto:SHAPE"), "{error}");
        }
    }
}
