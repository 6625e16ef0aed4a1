//! Quantities as people write them in a configuration: `"10us"`, `"64KiB"`, `"2.5Mpps"`, `"10Gbps"`,
//! `"1M"`.

use std::time::Duration;

use thiserror::Error;

/// Why a quantity could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnitError {
    /// There is no number at the start.
    #[error("`{0}` does not start with a number")]
    NoNumber(String),
    /// The unit is not one of those expected here.
    #[error("`{unit}` is not a unit here; write one of {expected}")]
    Unit {
        /// What stands behind the number.
        unit: String,
        /// The units that fit.
        expected: &'static str,
    },
    /// Negative, not finite, or too large to hold.
    #[error("`{0}` is out of range")]
    Range(String),
}

const TIME_UNITS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3600e9),
    ("d", 86_400e9),
];
const SIZE_UNITS: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];
const COUNT_UNITS: &[(&str, f64)] = &[("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9)];
const PACKET_RATE_UNITS: &[(&str, f64)] =
    &[("pps", 1.0), ("kpps", 1e3), ("Mpps", 1e6), ("Gpps", 1e9)];
const BIT_RATE_UNITS: &[(&str, f64)] =
    &[("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9), ("Tbps", 1e12)];

/// Reads a duration, such as `"10us"`, `"1.5 s"` or `"2h 4min"`.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let mut total = 0.0;
    let mut rest = text.trim();
    loop {
        let (number, unit, behind) = first_quantity(rest)?;
        total += scale(text, number, unit, TIME_UNITS, "ns, us, ms, s, min, h, d")?;
        rest = behind.trim_start();
        if rest.is_empty() {
            return whole(text, total).map(Duration::from_nanos);
        }
    }
}

/// Reads a size in bytes, such as `"64KiB"`.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    parse_with(text, SIZE_UNITS, "B, kB, MB, GB, KiB, MiB, GiB")
}

/// Reads a count, such as `"65536"` or `"10M"`.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    parse_with(text, COUNT_UNITS, "k, M, G, or none")
}

/// Reads packets per second, such as `"2.5Mpps"`.
pub fn parse_packet_rate(text: &str) -> Result<u64, UnitError> {
    parse_with(text, PACKET_RATE_UNITS, "pps, kpps, Mpps, Gpps")
}

/// Reads bits per second, such as `"10Gbps"`.
pub fn parse_bit_rate(text: &str) -> Result<u64, UnitError> {
    parse_with(text, BIT_RATE_UNITS, "bps, kbps, Mbps, Gbps, Tbps")
}

fn parse_with(text: &str, units: &[(&str, f64)], expected: &'static str) -> Result<u64, UnitError> {
    let (number, unit, behind) = first_quantity(text.trim())?;
    if !behind.trim().is_empty() {
        return Err(UnitError::Unit { unit: format!("{unit}{behind}"), expected });
    }
    whole(text, scale(text, number, unit, units, expected)?)
}

/// Splits `"12.5ms rest"` into the number, the unit, and what follows.
fn first_quantity(text: &str) -> Result<(f64, &str, &str), UnitError> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'));
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    let number = digits.replace('_', "").parse::<f64>();
    let number = number.map_err(|_| UnitError::NoNumber(text.to_owned()))?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| c.is_whitespace() || c.is_ascii_digit());
    let (unit, behind) = rest.split_at(end.unwrap_or(rest.len()));
    Ok((number, unit, behind))
}

fn scale(
    text: &str,
    number: f64,
    unit: &str,
    units: &[(&str, f64)],
    expected: &'static str,
) -> Result<f64, UnitError> {
    let factor = units.iter().find(|(name, _)| *name == unit);
    let (_, factor) = factor.ok_or_else(|| UnitError::Unit { unit: unit.to_owned(), expected })?;
    let value = number * factor;
    if value.is_finite() { Ok(value) } else { Err(UnitError::Range(text.to_owned())) }
}

fn whole(text: &str, value: f64) -> Result<u64, UnitError> {
    let rounded = value.round();
    if (0.0..u64::MAX as f64).contains(&rounded) {
        Ok(rounded as u64)
    } else {
        Err(UnitError::Range(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!(parse_duration("10us"), Ok(Duration::from_micros(10)));
        assert_eq!(parse_duration("2h 4min"), Ok(Duration::from_secs(7440)));
        assert_eq!(parse_duration(" 1.5 s "), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_size("1GiB"), Ok(1 << 30));
        assert_eq!(parse_count("10M"), Ok(10_000_000));
        assert_eq!(parse_count("65_536"), Ok(65_536));
        assert_eq!(parse_packet_rate("2.5Mpps"), Ok(2_500_000));
        assert_eq!(parse_bit_rate("10Gbps"), Ok(10_000_000_000));
    }

    #[test]
    fn says_what_is_wrong() {
        assert_eq!(parse_size("ten"), Err(UnitError::NoNumber("ten".into())));
        let error = parse_duration("10 parsecs").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`parsecs` is not a unit here; write one of ns, us, ms, s, min, h, d"
        );
        assert!(matches!(parse_count("1e9"), Err(UnitError::Unit { .. })));
        assert!(matches!(parse_duration("99999999999999d"), Err(UnitError::Range(_))));
        assert!(matches!(parse_count(""), Err(UnitError::NoNumber(_))));
        assert!(matches!(parse_size("-1B"), Err(UnitError::NoNumber(_))));
    }
}
