//! How long requests take: distributions of service times, with classes.

use std::f64::consts::TAU;
use std::fmt;
use std::str::FromStr;

use rheostat_base::unit::{UnitError, parse_duration};
use thiserror::Error;

/// Classes at most.
pub const CLASSES: usize = 16;
/// The longest service time, in nanoseconds.
pub const LONGEST: u64 = 100_000_000;

/// A distribution of service times. A draw is a uniform number of 64 bits, so that the numbers determine the times.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceTimes {
    shape: Shape,
    /// As it was written.
    text: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    /// Shares, which add up to 1, of times; each is a class.
    List(Vec<(f64, u64)>),
    /// By its mean.
    Exponential(f64),
    /// By the mean, and the standard deviation of the logarithm.
    Lognormal(f64, f64),
}

/// Why service times could not be read.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ServiceTimesError {
    /// Not one of the forms there are.
    #[error(
        "`{0}` is no distribution of service times; write 10us, bimodal-1, bimodal-2, exponential:10us, lognormal:10us, \
         lognormal:10us:SIGMA or a list such as 0.9:1us,0.1:50us"
    )]
    Form(String),
    /// A time that cannot be read.
    #[error("{0}")]
    Time(#[from] UnitError),
    /// A time that no request may take.
    #[error("a service time is at most 100ms, and `{0}` is longer")]
    TooLong(String),
    /// A share that is none.
    #[error("`{0}` is no share: write a number above 0 and at most 1, or 99.5%")]
    Share(String),
    /// Shares that do not add up.
    #[error("the shares add up to {0}, not to 1")]
    Sum(f64),
    /// Too many classes.
    #[error("these are {0} classes, and there may be 16")]
    Classes(usize),
    /// A shape that is none.
    #[error("`{0}` is no standard deviation of a logarithm: write a number above 0 and at most 4")]
    Sigma(String),
}

impl ServiceTimes {
    /// Always so many nanoseconds.
    pub fn constant(nanos: u64) -> ServiceTimes {
        let nanos = nanos.min(LONGEST);
        ServiceTimes { shape: Shape::List(vec![(1.0, nanos)]), text: time(nanos) }
    }

    /// The class and the nanoseconds of a draw.
    pub fn draw(&self, draw: u64) -> (u8, u64) {
        // Uniform from 0 to below 1, exact.
        let uniform = (draw >> 11) as f64 / (1_u64 << 53) as f64;
        match &self.shape {
            Shape::List(list) => {
                let mut sum = 0.0;
                let class = list.iter().position(|(share, _)| {
                    sum += share;
                    uniform < sum
                });
                let class = class.unwrap_or(list.len() - 1);
                (class as u8, list[class].1)
            }
            Shape::Exponential(mean) => (0, bounded(-mean * (1.0 - uniform).ln())),
            Shape::Lognormal(mean, sigma) => {
                // Box and Muller's method, with the halves of the draw.
                let half = |bits: u64| (bits as f64 + 0.5) / (1_u64 << 32) as f64;
                let (radius, angle) = (half(draw >> 32), half(draw & u64::from(u32::MAX)));
                let normal = (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos();
                (0, bounded(mean * (sigma * normal - sigma * sigma / 2.0).exp()))
            }
        }
    }

    /// The mean, in nanoseconds.
    pub fn mean(&self) -> f64 {
        match &self.shape {
            Shape::List(list) => list.iter().map(|(share, time)| share * *time as f64).sum(),
            Shape::Exponential(mean) | Shape::Lognormal(mean, _) => *mean,
        }
    }

    /// Shares, which add up to 1, and nanoseconds of the classes; `None` where times are continuous.
    pub fn list(&self) -> Option<&[(f64, u64)]> {
        match &self.shape {
            Shape::List(list) => Some(list),
            Shape::Exponential(_) | Shape::Lognormal(..) => None,
        }
    }

    /// Whether times are from an exponential distribution.
    pub fn is_exponential(&self) -> bool {
        matches!(self.shape, Shape::Exponential(_))
    }

    /// The names of the classes, in order.
    pub fn classes(&self) -> Vec<String> {
        match &self.shape {
            Shape::List(list) => list.iter().map(|(_, nanos)| time(*nanos)).collect(),
            Shape::Exponential(_) => vec!["exponential".to_owned()],
            Shape::Lognormal(..) => vec!["lognormal".to_owned()],
        }
    }

    /// The times to calibrate, in nanoseconds: all there are, or a few between which others lie.
    pub fn targets(&self) -> Vec<u64> {
        let mut targets = match &self.shape {
            Shape::List(list) => list.iter().map(|(_, time)| *time).collect(),
            Shape::Exponential(mean) | Shape::Lognormal(mean, _) => {
                [0.1, 1.0, 10.0].map(|times| bounded(mean * times)).to_vec()
            }
        };
        targets.retain(|target| *target > 0);
        targets.sort_unstable();
        targets.dedup();
        targets
    }
}

fn bounded(nanos: f64) -> u64 {
    (nanos.round() as u64).min(LONGEST)
}

/// A time as it is written: `1us`, `1.5us`, `250ns`.
fn time(nanos: u64) -> String {
    let units = [(1_000_000, "ms"), (1_000, "us")];
    match units.into_iter().find(|(unit, _)| nanos >= *unit) {
        Some((unit, name)) => format!("{}{name}", nanos as f64 / unit as f64),
        None => format!("{nanos}ns"),
    }
}

fn parse_time(text: &str) -> Result<u64, ServiceTimesError> {
    let nanos = parse_duration(text)?.as_nanos();
    match u64::try_from(nanos) {
        Ok(nanos) if nanos <= LONGEST => Ok(nanos),
        _ => Err(ServiceTimesError::TooLong(text.to_owned())),
    }
}

fn parse_share(text: &str) -> Result<f64, ServiceTimesError> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    match number.trim().parse::<f64>() {
        Ok(share) if share > 0.0 && share <= scale => Ok(share / scale),
        _ => Err(ServiceTimesError::Share(text.to_owned())),
    }
}

fn parse_list(text: &str) -> Result<Shape, ServiceTimesError> {
    let item = |item: &str| {
        let form = || ServiceTimesError::Form(text.to_owned());
        let (share, time) = item.split_once(':').ok_or_else(form)?;
        Ok((parse_share(share.trim())?, parse_time(time)?))
    };
    let list = text.split(',').map(item).collect::<Result<Vec<_>, ServiceTimesError>>()?;
    if list.len() > CLASSES {
        return Err(ServiceTimesError::Classes(list.len()));
    }
    let sum: f64 = list.iter().map(|(share, _)| share).sum();
    match (sum - 1.0).abs() < 1e-6 {
        true => Ok(Shape::List(list)),
        false => Err(ServiceTimesError::Sum(sum)),
    }
}

fn parse_shape(text: &str) -> Result<Shape, ServiceTimesError> {
    if let Some(mean) = text.strip_prefix("exponential:") {
        return Ok(Shape::Exponential(parse_time(mean)? as f64));
    }
    if let Some(rest) = text.strip_prefix("lognormal:") {
        let (mean, sigma) = rest.split_once(':').unwrap_or((rest, "1"));
        let sigma = match sigma.parse::<f64>() {
            Ok(sigma) if sigma > 0.0 && sigma <= 4.0 => sigma,
            _ => return Err(ServiceTimesError::Sigma(sigma.to_owned())),
        };
        return Ok(Shape::Lognormal(parse_time(mean)? as f64, sigma));
    }
    match text {
        "bimodal-1" => Ok(Shape::List(vec![(0.995, 1_000), (0.005, 100_000)])),
        "bimodal-2" => Ok(Shape::List(vec![(0.5, 1_000), (0.5, 100_000)])),
        list if list.contains(':') => parse_list(list),
        constant if constant.starts_with(|first: char| first.is_ascii_digit()) => {
            Ok(Shape::List(vec![(1.0, parse_time(constant)?)]))
        }
        _ => Err(ServiceTimesError::Form(text.to_owned())),
    }
}

impl FromStr for ServiceTimes {
    type Err = ServiceTimesError;

    fn from_str(text: &str) -> Result<ServiceTimes, ServiceTimesError> {
        Ok(ServiceTimes { shape: parse_shape(text.trim())?, text: text.trim().to_owned() })
    }
}

impl fmt::Display for ServiceTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws that are spread evenly, in a scattered order.
    fn draws(count: u64) -> impl Iterator<Item = u64> {
        (1..=count).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn times(text: &str) -> ServiceTimes {
        text.parse().unwrap()
    }

    fn mean(times: &ServiceTimes, count: u64) -> f64 {
        draws(count).map(|draw| times.draw(draw).1 as f64).sum::<f64>() / count as f64
    }

    #[test]
    fn a_list_has_its_shares() {
        for (text, shares) in [
            ("bimodal-1", [(0.995, 1_000), (0.005, 100_000)]),
            ("bimodal-2", [(0.5, 1_000), (0.5, 100_000)]),
            ("90%:2us, 10%:1.5ms", [(0.9, 2_000), (0.1, 1_500_000)]),
        ] {
            let times = times(text);
            let mut counts = [0_u64; 2];
            for draw in draws(100_000) {
                let (class, time) = times.draw(draw);
                counts[usize::from(class)] += 1;
                assert_eq!(time, shares[usize::from(class)].1);
            }
            for (count, (share, _)) in counts.iter().zip(shares) {
                assert!((*count as f64 / 100_000.0 - share).abs() < 1e-3, "{text}: {counts:?}");
            }
            assert_eq!(times.targets(), shares.map(|(_, time)| time));
        }
        assert_eq!(times("bimodal-1").classes(), ["1us", "100us"]);
        assert_eq!(times("1.5us").classes(), ["1.5us"]);
        assert_eq!(times("0.9:2us,0.1:3us").list(), Some(&[(0.9, 2_000), (0.1, 3_000)][..]));
        assert_eq!(times("lognormal:10us").list(), None);
        assert!(times("exponential:10us").is_exponential() && !times("10us").is_exponential());
        assert_eq!(times("250ns").to_string(), "250ns");
        assert_eq!(ServiceTimes::constant(10_000), times("10us"));
    }

    #[test]
    fn continuous_times_have_their_means_and_shapes() {
        let exponential = times("exponential:10us");
        assert!((mean(&exponential, 200_000) / 10_000.0 - 1.0).abs() < 0.01);
        let above = draws(200_000).filter(|draw| exponential.draw(*draw).1 > 30_000).count();
        assert!((above as f64 / 200_000.0 - (-3.0_f64).exp()).abs() < 1e-3, "{above}");
        let lognormal = times("lognormal:10us:0.5");
        assert!((mean(&lognormal, 200_000) / 10_000.0 - 1.0).abs() < 0.02);
        let median = 10_000.0 * (-0.125_f64).exp();
        let below = draws(200_000).filter(|draw| (lognormal.draw(*draw).1 as f64) < median).count();
        assert!((below as f64 / 200_000.0 - 0.5).abs() < 0.01, "{below}");
        assert_eq!(exponential.targets(), [1_000, 10_000, 100_000]);
        assert_eq!((exponential.mean(), times("bimodal-2").mean()), (10_000.0, 50_500.0));
    }

    #[test]
    fn no_draw_takes_longer_than_the_longest() {
        for text in ["exponential:100ms", "lognormal:100ms:4", "100ms", "0s"] {
            let times = times(text);
            for draw in [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
                assert!(times.draw(draw).1 <= LONGEST, "{text}");
            }
        }
        assert!(times("0s").targets().is_empty());
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let wrong = |text: &str| text.parse::<ServiceTimes>().unwrap_err().to_string();
        assert!(wrong("bimodal-3").contains("bimodal-2"));
        assert!(wrong("").contains("bimodal-2"));
        assert!(wrong("1").contains("ns, us"));
        assert!(wrong("101ms").contains("100ms"));
        assert!(wrong("0.5:1us,0.4:2us").contains("0.9"));
        assert!(wrong("0:1us,1:2us").contains("`0`"));
        assert!(wrong("NaN:1us").contains("`NaN`"));
        assert!(wrong("0.5:1us,").contains("bimodal"));
        assert!(wrong("lognormal:1us:9").contains("`9`"));
        assert!(wrong(&["0.05:1us"; 20].join(",")).contains("20 classes"));
    }
}
