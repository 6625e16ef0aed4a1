//! What the application does for requests.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand_distr::{Distribution, Exp1};
use rheostat_base::unit::parse_duration;
use thiserror::Error;

/// How service times vary around their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variability {
    /// All alike.
    Constant,
    /// 99.5 % short, 0.5 % a hundred times as long.
    Bimodal1,
    /// Half short, half a hundred times as long.
    Bimodal2,
    /// Exponential.
    Exponential,
}

impl Variability {
    /// The name in options and workloads.
    pub fn name(self) -> &'static str {
        match self {
            Variability::Constant => "constant",
            Variability::Bimodal1 => "bimodal-1",
            Variability::Bimodal2 => "bimodal-2",
            Variability::Exponential => "exponential",
        }
    }

    /// The share of long requests; `None` where there is one class.
    fn long_share(self) -> Option<f64> {
        match self {
            Variability::Bimodal1 => Some(0.005),
            Variability::Bimodal2 => Some(0.5),
            Variability::Constant | Variability::Exponential => None,
        }
    }
}

/// A long service time by a short one.
const LONG: f64 = 100.0;

/// A distribution of service times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    variability: Variability,
    /// Picoseconds: of short requests, or the mean where there is one class.
    short: f64,
    /// Long requests out of 2³².
    long_below: u32,
}

/// Why a text names no workload.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a workload: use constant-TIME (constant-1us, constant-350ns), exponential-TIME, bimodal-1 (99.5 % of 1 us, 0.5 % of \
     100 us) or bimodal-2 (half of either); times are between 10 ns and 10 ms"
)]
pub struct UnknownWorkload(String);

/// Service times that are simulated.
const TIMES: std::ops::RangeInclusive<f64> = 10.0..=1e7;

impl Workload {
    /// The workloads of the thesis, Table 4.2.
    pub fn thesis() -> [Workload; 5] {
        let constant = |ns| Workload::with_short(Variability::Constant, ns);
        let bimodal = |variability| Workload::with_short(variability, 1e3);
        [
            constant(1e3),
            constant(1e4),
            constant(1e5),
            bimodal(Variability::Bimodal1),
            bimodal(Variability::Bimodal2),
        ]
    }

    /// Constant service times in about the proportion to the network of a stack of 0.7 us that the thesis's 1, 10 and 100 us have to
    /// its 2 us: what a scheduler comes to depends on that proportion.
    pub fn proportional() -> [Workload; 3] {
        [350.0, 3_500.0, 35_000.0].map(|ns| Workload::with_short(Variability::Constant, ns))
    }

    /// Service times of this mean; `None` if it is below 10 ns or above 10 ms.
    pub fn with_mean(variability: Variability, mean: Duration) -> Option<Workload> {
        let ns = mean.as_secs_f64() * 1e9;
        let by = 1.0 + variability.long_share().unwrap_or(0.0) * (LONG - 1.0);
        TIMES.contains(&ns).then(|| Workload::with_short(variability, ns / by))
    }

    fn with_short(variability: Variability, ns: f64) -> Workload {
        let long_below = variability.long_share().unwrap_or(0.0) * f64::from(u32::MAX);
        Workload { variability, short: ns * 1e3, long_below: long_below as u32 }
    }

    /// The mean, in nanoseconds.
    pub fn mean_ns(self) -> f64 {
        let long = self.variability.long_share().unwrap_or(0.0);
        self.short / 1e3 * (1.0 + long * (LONG - 1.0))
    }

    /// E\[S²\], in square nanoseconds.
    #[cfg(test)]
    pub(super) fn second_moment(self) -> f64 {
        let long = self.variability.long_share().unwrap_or(0.0);
        let by = if self.variability == Variability::Exponential { 2.0 } else { 1.0 };
        by * (self.short / 1e3).powi(2) * (1.0 + long * (LONG * LONG - 1.0))
    }

    /// Whether requests are of two classes.
    pub fn has_classes(self) -> bool {
        self.long_below > 0
    }

    /// How service times vary.
    pub fn variability(self) -> Variability {
        self.variability
    }

    /// Whether this is `constant-1us`, for which the lock at which cFCFS stops winning is searched.
    pub fn is_shortest(self) -> bool {
        self.variability == Variability::Constant && self.short == 1e6
    }

    /// A service time in picoseconds, and whether it is of the long class, which `luck` decides.
    pub(super) fn draw(self, luck: u32, random: &mut SmallRng) -> (u64, bool) {
        let time = match self.variability {
            Variability::Exponential => {
                let time: f64 = Exp1.sample(random);
                time * self.short
            }
            _ if luck < self.long_below => return ((LONG * self.short) as u64, true),
            _ => self.short,
        };
        (time as u64, false)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.variability.name();
        let ns = self.short / 1e3;
        // A bimodal workload of the thesis has a short class of 1 us.
        if self.has_classes() && (ns - 1e3).abs() < 1e-6 {
            return f.pad(name);
        }
        let ns = self.mean_ns();
        let time =
            if ns < 1e3 { format!("{}ns", digits(ns)) } else { format!("{}us", digits(ns / 1e3)) };
        f.pad(&format!("{name}-{time}"))
    }
}

/// A number to three decimals, without zeros at the end.
fn digits(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl FromStr for Workload {
    type Err = UnknownWorkload;

    fn from_str(text: &str) -> Result<Workload, UnknownWorkload> {
        let unknown = || UnknownWorkload(text.to_owned());
        let with_mean = |variability, time: &str| {
            let mean = parse_duration(time).map_err(|_| unknown())?;
            Workload::with_mean(variability, mean).ok_or_else(unknown)
        };
        match text {
            "bimodal-1" => Ok(Workload::with_short(Variability::Bimodal1, 1e3)),
            "bimodal-2" => Ok(Workload::with_short(Variability::Bimodal2, 1e3)),
            _ => match text.split_once('-') {
                Some(("constant", time)) => with_mean(Variability::Constant, time),
                Some(("exponential", time)) => with_mean(Variability::Exponential, time),
                _ => Err(unknown()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn names_are_those_of_the_contract_and_parse_to_themselves() {
        let names = Workload::thesis().map(|workload| workload.to_string());
        assert_eq!(
            names,
            ["constant-1us", "constant-10us", "constant-100us", "bimodal-1", "bimodal-2"]
        );
        for workload in Workload::thesis().into_iter().chain(Workload::proportional()) {
            assert_eq!(workload.to_string().parse(), Ok(workload));
        }
        assert_eq!(Workload::proportional()[1].to_string(), "constant-3.5us");
        for name in ["constant-350ns", "constant-3.5us", "exponential-1us", "constant-1000us"] {
            assert_eq!(name.parse::<Workload>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn what_is_no_workload_is_refused_with_those_there_are() {
        for text in [
            "",
            "constant",
            "constant-",
            "constant-1",
            "constant-1s",
            "constant-1ns",
            "bimodal-3",
            "exponential--1us",
        ] {
            let error = text.parse::<Workload>().unwrap_err();
            assert!(error.to_string().contains("use constant-TIME"), "{error}");
        }
    }

    #[test]
    fn means_are_those_of_what_is_drawn() {
        let mut random = SmallRng::seed_from_u64(1);
        let hundred = Duration::from_micros(100);
        let with = |variability| Workload::with_mean(variability, hundred).unwrap();
        for variability in [
            Variability::Constant,
            Variability::Bimodal1,
            Variability::Bimodal2,
            Variability::Exponential,
        ] {
            let workload = with(variability);
            assert!((workload.mean_ns() - 1e5).abs() < 1e-6);
            let draws = 400_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..draws {
                let luck = random.random();
                let time = workload.draw(luck, &mut random).0 as f64 / 1e3;
                sum += time;
                squares += time * time;
            }
            let deviation = (workload.second_moment() - 1e10).max(0.0).sqrt();
            let margin = 4.0 * deviation / f64::from(draws).sqrt() + 1e-3;
            assert!((sum / f64::from(draws) - 1e5).abs() < margin, "{workload}");
            assert!(
                (squares / f64::from(draws) / workload.second_moment() - 1.0).abs() < 0.1,
                "{workload}"
            );
        }
        assert!(Workload::with_mean(Variability::Constant, Duration::from_secs(1)).is_none());
    }
}
