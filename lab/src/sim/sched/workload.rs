//! What the application does for requests.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand_distr::{Distribution, Exp1};
use rheostat_base::unit::parse_duration;
use rheostat_serve::work::ServiceTimes;
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
    /// Two times, each with a share.
    Classes,
}

impl Variability {
    /// The name in options and workloads.
    pub fn name(self) -> &'static str {
        match self {
            Variability::Constant => "constant",
            Variability::Bimodal1 => "bimodal-1",
            Variability::Bimodal2 => "bimodal-2",
            Variability::Exponential => "exponential",
            Variability::Classes => "classes",
        }
    }

    /// The share of long requests of a bimodal distribution.
    fn long_share(self) -> Option<f64> {
        match self {
            Variability::Bimodal1 => Some(0.005),
            Variability::Bimodal2 => Some(0.5),
            Variability::Constant | Variability::Exponential | Variability::Classes => None,
        }
    }
}

/// A long service time by a short one where the distribution is bimodal.
const LONG: f64 = 100.0;

/// A distribution of service times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    variability: Variability,
    /// Picoseconds: of requests of the first class, or the mean where there is one class.
    short: f64,
    /// Picoseconds of requests of the second class.
    long: f64,
    /// The share of the second class.
    long_share: f64,
    /// The same out of 2³².
    long_below: u32,
}

/// Why a text names no workload.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a workload: use constant-TIME (constant-1us, constant-350ns), exponential-TIME, bimodal-1 (99.5 % of 1 us, 0.5 % of \
     100 us), bimodal-2 (half of either) or two classes such as 0.9:1us,0.1:20us; times are between 10 ns and 10 ms"
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

    /// Service times of this mean; `None` if it is below 10 ns or above 10 ms, and of classes, which a mean does not determine.
    pub fn with_mean(variability: Variability, mean: Duration) -> Option<Workload> {
        if variability == Variability::Classes {
            return None;
        }
        let ns = mean.as_secs_f64() * 1e9;
        let by = 1.0 + variability.long_share().unwrap_or(0.0) * (LONG - 1.0);
        TIMES.contains(&ns).then(|| Workload::with_short(variability, ns / by))
    }

    fn with_short(variability: Variability, ns: f64) -> Workload {
        let long_share = variability.long_share().unwrap_or(0.0);
        Workload::with_classes(variability, [ns, LONG * ns], long_share)
    }

    /// Two service times in nanoseconds, and the share of the second; `None` if one is below 10 ns or above 10 ms.
    fn of_classes(ns: [f64; 2], second: f64) -> Option<Workload> {
        let is_possible = ns.iter().all(|ns| TIMES.contains(ns));
        is_possible.then(|| Workload::with_classes(Variability::Classes, ns, second))
    }

    fn with_classes(variability: Variability, [short, long]: [f64; 2], share: f64) -> Workload {
        let long_below = (share * f64::from(u32::MAX)) as u32;
        Workload {
            variability,
            short: short * 1e3,
            long: long * 1e3,
            long_share: share,
            long_below,
        }
    }

    /// The same with times so many times as long.
    #[must_use]
    pub(crate) fn scaled(self, factor: f64) -> Workload {
        Workload { short: self.short * factor, long: self.long * factor, ..self }
    }

    /// The mean, in nanoseconds.
    pub fn mean_ns(self) -> f64 {
        (self.short + self.long_share * (self.long - self.short)) / 1e3
    }

    /// The service times of both classes in nanoseconds, and the share of the second; `None` where there is one class.
    pub(crate) fn classes(self) -> Option<([f64; 2], f64)> {
        self.has_classes().then_some(([self.short / 1e3, self.long / 1e3], self.long_share))
    }

    /// E\[S²\], in square nanoseconds.
    #[cfg(test)]
    pub(super) fn second_moment(self) -> f64 {
        let by = if self.variability == Variability::Exponential { 2.0 } else { 1.0 };
        let [short, long] = [self.short, self.long].map(|time| (time / 1e3).powi(2));
        by * (short + self.long_share * (long - short))
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
            _ if luck < self.long_below => return (self.long as u64, true),
            _ => self.short,
        };
        (time as u64, false)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.variability.name();
        if self.variability == Variability::Classes {
            let share = |share: f64| (share * 1e6).round() / 1e6;
            let (short, long) = (time(self.short / 1e3), time(self.long / 1e3));
            let shares = (share(1.0 - self.long_share), share(self.long_share));
            return f.pad(&format!("{}:{short},{}:{long}", shares.0, shares.1));
        }
        // A bimodal workload of the thesis has a short class of 1 us.
        if self.has_classes() && (self.short / 1e3 - 1e3).abs() < 1e-6 {
            return f.pad(name);
        }
        f.pad(&format!("{name}-{}", time(self.mean_ns())))
    }
}

/// A time as it is written: `350ns`, `3.5us`.
fn time(ns: f64) -> String {
    if ns < 1e3 { format!("{}ns", digits(ns)) } else { format!("{}us", digits(ns / 1e3)) }
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
            _ if text.contains(':') => {
                let times: ServiceTimes = text.parse().map_err(|_| unknown())?;
                Workload::try_from(&times).map_err(|_| unknown())
            }
            _ => match text.split_once('-') {
                Some(("constant", time)) => with_mean(Variability::Constant, time),
                Some(("exponential", time)) => with_mean(Variability::Exponential, time),
                _ => Err(unknown()),
            },
        }
    }
}

/// Constant times, an exponential distribution, and two classes are simulated.
impl TryFrom<&ServiceTimes> for Workload {
    type Error = UnknownWorkload;

    fn try_from(times: &ServiceTimes) -> Result<Workload, UnknownWorkload> {
        let unknown = || UnknownWorkload(times.to_string());
        let nanos = |mean: f64| Duration::from_nanos(mean.round() as u64);
        let workload = match times.list() {
            Some([(_, only)]) => {
                Workload::with_mean(Variability::Constant, Duration::from_nanos(*only))
            }
            Some([(_, first), (share, second)]) => {
                Workload::of_classes([*first as f64, *second as f64], *share)
            }
            Some(_) => None,
            None if times.is_exponential() => {
                Workload::with_mean(Variability::Exponential, nanos(times.mean()))
            }
            None => None,
        };
        workload.ok_or_else(unknown)
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
        for name in [
            "constant-350ns",
            "constant-3.5us",
            "exponential-1us",
            "constant-1000us",
            "0.9:1us,0.1:20us",
            "0.5:350ns,0.5:10000us",
        ] {
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
            "0.9:1us,0.1:1ns",
            "0.5:1us,0.4:2us",
            "0.5:1us,0.3:2us,0.2:3us",
            "lognormal:1us",
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
        for workload in [
            with(Variability::Constant),
            with(Variability::Bimodal1),
            with(Variability::Bimodal2),
            with(Variability::Exponential),
            "0.8:50us,0.2:300us".parse().unwrap(),
        ] {
            assert!((workload.mean_ns() - 1e5).abs() < 1e-6);
            assert!((workload.scaled(0.7).mean_ns() - 7e4).abs() < 1e-6);
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
