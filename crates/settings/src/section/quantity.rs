//! Quantities with units in types that serde reads: `#[serde(deserialize_with = "…")]`.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use rheostat_base::unit::{self, UnitError};
use serde::de::{Deserializer, Error, Visitor};

/// A duration with its unit, such as `"10s"`.
///
/// # Errors
/// Those of the format, for anything else.
pub fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    read(deserializer, "a duration with its unit, such as \"10s\"", unit::parse_duration, None)
}

/// A count: a whole number, or text with `k`, `M` or `G`, such as `"64k"`.
///
/// # Errors
/// Those of the format, for anything else.
pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let whole: fn(u64) -> u64 = |number| number;
    read(deserializer, "a count, such as 500 or \"64k\"", unit::parse_count, Some(whole))
}

/// Bytes with their unit, such as `"64kB"` or `"1MiB"`.
///
/// # Errors
/// Those of the format, for anything else.
pub fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    read(deserializer, "a size with its unit, such as \"64kB\"", unit::parse_size, None)
}

/// Bits per second with their unit, such as `"10Gbps"`.
///
/// # Errors
/// Those of the format, for anything else.
pub fn bit_rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    read(deserializer, "a bit rate with its unit, such as \"10Gbps\"", unit::parse_bit_rate, None)
}

/// Packets per second with their unit, such as `"2.5Mpps"`.
///
/// # Errors
/// Those of the format, for anything else.
pub fn packet_rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let expected = "a packet rate with its unit, such as \"2.5Mpps\"";
    read(deserializer, expected, unit::parse_packet_rate, None)
}

fn read<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &'static str,
    parse: fn(&str) -> Result<T, UnitError>,
    whole: Option<fn(u64) -> T>,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(Quantity { expected, parse, whole, value: PhantomData })
}

struct Quantity<T> {
    expected: &'static str,
    parse: fn(&str) -> Result<T, UnitError>,
    /// From a number without a unit, where that has a meaning.
    whole: Option<fn(u64) -> T>,
    value: PhantomData<T>,
}

impl<T> Visitor<'_> for Quantity<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(|error| match error {
            UnitError::Unit { unit, expected } if unit.is_empty() => E::custom(format_args!(
                "the unit is missing; write one of {expected} behind the number"
            )),
            error => E::custom(error),
        })
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        match self.whole {
            Some(whole) => Ok(whole(number)),
            None => Err(E::invalid_type(serde::de::Unexpected::Unsigned(number), &self)),
        }
    }
}
