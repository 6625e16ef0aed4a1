//! Values that are read from the text by which options name them.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error};

/// A value that stands as text. An error keeps the place of the text.
struct Parsed<T>(T);

impl<'a, T> Deserialize<'a> for Parsed<T>
where
    T: FromStr,
    T::Err: Display,
{
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Parsed<T>, D::Error> {
        String::deserialize(from)?.parse().map(Parsed).map_err(D::Error::custom)
    }
}

/// `"exponential"`.
pub(super) fn one<'a, T, D>(from: D) -> Result<T, D::Error>
where
    T: FromStr,
    T::Err: Display,
    D: Deserializer<'a>,
{
    Parsed::deserialize(from).map(|Parsed(value)| value)
}

/// `["inline-dfcfs", "inline-cfcfs"]`.
pub(super) fn list<'a, T, D>(from: D) -> Result<Vec<T>, D::Error>
where
    T: FromStr,
    T::Err: Display,
    D: Deserializer<'a>,
{
    let list = Vec::<Parsed<T>>::deserialize(from)?;
    Ok(list.into_iter().map(|Parsed(value)| value).collect())
}
