//! Conversions to numbers, and to quantities with a unit.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use rheostat_base::unit::{self, UnitError};
use toml::de::DeValue;

use super::text_like;
use crate::diagnostic::Finding;
use crate::findings::Findings;
use crate::quantity::Span;
use crate::reader::Value;

/// A whole number within `range`, written plainly.
pub fn integer(range: RangeInclusive<u64>) -> impl Fn(&Value<'_>, &mut Findings) -> Option<u64> {
    move |value, findings| match plain_integer(value) {
        Some(number) => within(value, number, &range, findings),
        None if value.is_integer() => {
            findings.push(out_of_range(value, "negative, or beyond 64 bits", &range));
            None
        }
        None => {
            findings.push(value.wrong_type("a whole number", &span_of_values(&range)));
            None
        }
    }
}

/// A count within `range`: a whole number, or text with `k`, `M` or `G`.
pub fn count(range: RangeInclusive<u64>) -> impl Fn(&Value<'_>, &mut Findings) -> Option<u64> {
    move |value, findings| {
        let number = match plain_integer(value) {
            Some(number) => number,
            None if value.is_integer() => {
                findings.push(out_of_range(value, "negative, or beyond 64 bits", &range));
                return None;
            }
            None => {
                let read =
                    text_like("a count", "a whole number, or text such as \"64k\" or \"1M\"");
                quantity(value, unit::parse_count(read(value, findings)?), findings)?
            }
        };
        within(value, number, &range, findings)
    }
}

/// A duration within `range`, with its unit.
pub fn duration(
    range: RangeInclusive<Duration>,
) -> impl Fn(&Value<'_>, &mut Findings) -> Option<Duration> {
    move |value, findings| {
        let read = text_like("a duration", "it as text with its unit, such as \"10s\" or \"5min\"");
        let duration = quantity(value, unit::parse_duration(read(value, findings)?), findings)?;
        if range.contains(&duration) {
            return Some(duration);
        }
        let message = format!("`{}` is out of range", value.name());
        let (least, most) = (Span(*range.start()), Span(*range.end()));
        let help = format!("write a duration between {least} and {most}");
        findings.push(value.mistake(message).help(help));
        None
    }
}

/// Packets per second within `range`, with their unit.
pub fn packet_rate(
    range: RangeInclusive<u64>,
) -> impl Fn(&Value<'_>, &mut Findings) -> Option<u64> {
    move |value, findings| {
        let read = text_like("a packet rate", "it as text with its unit, such as \"2.5Mpps\"");
        let rate = quantity(value, unit::parse_packet_rate(read(value, findings)?), findings)?;
        within(value, rate, &range, findings)
    }
}

/// Bytes within `range`, with their unit.
pub fn size(range: RangeInclusive<u64>) -> impl Fn(&Value<'_>, &mut Findings) -> Option<u64> {
    move |value, findings| {
        let read = text_like("a size", "it as text with its unit, such as \"64kB\"");
        let size = quantity(value, unit::parse_size(read(value, findings)?), findings)?;
        within(value, size, &range, findings)
    }
}

/// Bits per second within `range`, with their unit.
pub fn bit_rate(range: RangeInclusive<u64>) -> impl Fn(&Value<'_>, &mut Findings) -> Option<u64> {
    move |value, findings| {
        let read = text_like("a bit rate", "it as text with its unit, such as \"10Gbps\"");
        let rate = quantity(value, unit::parse_bit_rate(read(value, findings)?), findings)?;
        within(value, rate, &range, findings)
    }
}

/// A number within `range`, with a fraction or without.
pub fn number(range: RangeInclusive<f64>) -> impl Fn(&Value<'_>, &mut Findings) -> Option<f64> {
    move |value, findings| {
        let number = match value.node {
            DeValue::Float(float) => float.as_str().parse::<f64>().ok(),
            _ => plain_integer(value).map(|number| number as f64),
        };
        let Some(number) = number else {
            let example = format!("a number between {} and {}", range.start(), range.end());
            findings.push(value.wrong_type("a number", &example));
            return None;
        };
        within(value, number, &range, findings)
    }
}

/// Passes powers of two on.
pub fn power_of_two(value: &Value<'_>, number: u64, findings: &mut Findings) -> Option<u64> {
    if number.is_power_of_two() {
        return Some(number);
    }
    let (above, below) = (number.next_power_of_two(), number.next_power_of_two() / 2);
    let message = format!("`{}` must be a power of two", value.name());
    let label = format!("this is {number}");
    let finding = value.mistake_labelled(message, label);
    findings.push(finding.help(format!("write {below} or {above}")));
    None
}

/// An integer that fits; a negative one, or one with a fraction, does not.
fn plain_integer(value: &Value<'_>) -> Option<u64> {
    match value.node {
        DeValue::Integer(integer) => u64::from_str_radix(integer.as_str(), integer.radix()).ok(),
        _ => None,
    }
}

fn quantity<T>(
    value: &Value<'_>,
    parsed: Result<T, UnitError>,
    findings: &mut Findings,
) -> Option<T> {
    match parsed {
        Ok(quantity) => Some(quantity),
        Err(error) => {
            let (label, help) = match &error {
                UnitError::Unit { unit, expected } if unit.is_empty() => {
                    ("the unit is missing".to_owned(), format!("write one of {expected} behind it"))
                }
                UnitError::Unit { unit, expected } => {
                    (format!("`{unit}` is not a unit here"), format!("write one of {expected}"))
                }
                UnitError::NoNumber(_) => {
                    ("no number".to_owned(), "start with a number".to_owned())
                }
                UnitError::Range(_) => ("out of range".to_owned(), "write less".to_owned()),
            };
            let message = format!("the quantity of `{}` cannot be read", value.name());
            findings.push(value.mistake_labelled(message, label).help(help));
            None
        }
    }
}

fn within<T: PartialOrd + Display>(
    value: &Value<'_>,
    number: T,
    range: &RangeInclusive<T>,
    findings: &mut Findings,
) -> Option<T> {
    if range.contains(&number) {
        return Some(number);
    }
    findings.push(out_of_range(value, format!("this is {number}"), range));
    None
}

fn out_of_range<T: Display>(
    value: &Value<'_>,
    label: impl Into<String>,
    range: &RangeInclusive<T>,
) -> Finding {
    let message = format!("`{}` is out of range", value.name());
    value.mistake_labelled(message, label).help(format!("write {}", span_of_values(range)))
}

fn span_of_values<T: Display>(range: &RangeInclusive<T>) -> String {
    format!("a number between {} and {}", range.start(), range.end())
}
