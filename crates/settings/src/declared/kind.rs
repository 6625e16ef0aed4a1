//! Kinds of settings: how a value is read, how it is shown, and its bounds in words.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::Form;
use crate::findings::Findings;
use crate::quantity::Span;
use crate::reader::Value;
use crate::reader::convert::{self, number};

/// A conversion from a value of a file.
pub type Read<T> = Box<dyn Fn(&Value<'_>, &mut Findings) -> Option<T>>;

/// A kind of setting of type `T`.
pub struct Kind<T> {
    pub(super) form: Form,
    pub(super) bounds: Option<String>,
    /// The value of a setting that is left out, where its type has one.
    pub(super) absent: Option<T>,
    pub(super) read: Read<T>,
    pub(super) write: Box<dyn Fn(&T) -> String>,
}

impl<T: 'static> Kind<T> {
    /// A kind that `read` converts from a value and `write` shows; an empty text shows nothing.
    pub fn new(
        form: Form,
        read: impl Fn(&Value<'_>, &mut Findings) -> Option<T> + 'static,
        write: impl Fn(&T) -> String + 'static,
    ) -> Kind<T> {
        Kind { form, bounds: None, absent: None, read: Box::new(read), write: Box::new(write) }
    }

    /// The same with its bounds in words.
    #[must_use]
    pub fn within(self, bounds: impl Into<String>) -> Kind<T> {
        Kind { bounds: Some(bounds.into()), ..self }
    }
}

/// A setting that may be left out.
pub fn optional<T: 'static>(kind: Kind<T>) -> Kind<Option<T>> {
    let Kind { form, bounds, read, write, .. } = kind;
    Kind {
        form,
        bounds,
        absent: Some(None),
        read: Box::new(move |value, findings| read(value, findings).map(Some)),
        write: Box::new(move |value| value.as_ref().map_or_else(String::new, &write)),
    }
}

/// `true` or `false`.
pub fn boolean() -> Kind<bool> {
    Kind::new(Form::Switch, convert::boolean, bool::to_string)
}

/// A whole number within `range`. `T` must hold all of it.
pub fn integer<T: TryFrom<u64> + Display + 'static>(range: RangeInclusive<u64>) -> Kind<T> {
    let bounds = format!("{} to {}", range.start(), range.end());
    Kind::new(Form::Number, fitting(number::integer(range)), T::to_string).within(bounds)
}

/// A count within `range`, also with `k`, `M` or `G`. `T` must hold all of it.
pub fn count<T: TryFrom<u64> + Display + 'static>(range: RangeInclusive<u64>) -> Kind<T> {
    Kind::new(Form::Number, fitting(number::count(range)), T::to_string)
}

/// Bytes within `range`, with their unit. `T` must hold all of it.
pub fn size<T: TryFrom<u64> + TryInto<u64> + Copy + 'static>(
    range: RangeInclusive<u64>,
) -> Kind<T> {
    let bounds = format!("{} to {}", written(*range.start()), written(*range.end()));
    let write = |bytes: &T| written((*bytes).try_into().unwrap_or(u64::MAX));
    Kind::new(Form::Text, fitting(number::size(range)), write).within(bounds)
}

/// A duration within `range`, with its unit.
pub fn duration(range: RangeInclusive<Duration>) -> Kind<Duration> {
    let bounds = format!("{} to {}", Span(*range.start()), Span(*range.end()));
    let write = |span: &Duration| Span(*span).to_string();
    Kind::new(Form::Text, number::duration(range), write).within(bounds)
}

/// One of a few words.
pub fn choice<T: Copy + PartialEq + 'static>(options: &'static [(&'static str, T)]) -> Kind<T> {
    let words: Vec<_> = options.iter().map(|(name, _)| *name).collect();
    let write = |value: &T| {
        let named = options.iter().find(|(_, option)| option == value);
        named.map_or_else(String::new, |(name, _)| (*name).to_owned())
    };
    Kind::new(Form::Text, convert::choice(options), write).within(words.join(", "))
}

/// Text that a type reads itself; `example` is what to write.
pub fn parsed<T>(example: &'static str) -> Kind<T>
where
    T: FromStr + Display + 'static,
    T::Err: Display,
{
    Kind::new(Form::Text, convert::parsed(example), T::to_string)
}

/// Text.
pub fn text() -> Kind<String> {
    let read = |value: &Value<'_>, findings: &mut Findings| {
        Some(convert::text(value, findings)?.to_owned())
    };
    Kind::new(Form::Text, read, String::clone)
}

/// The name of a file or a directory.
pub fn path() -> Kind<PathBuf> {
    Kind::new(Form::Text, convert::path, |path: &PathBuf| path.display().to_string())
}

/// Bytes as a file has them, in the largest unit that divides them.
fn written(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let divides = |(_, bits): &(&str, u32)| bytes != 0 && bytes.is_multiple_of(1 << bits);
    match units.into_iter().find(divides) {
        Some((unit, bits)) => format!("{}{unit}", bytes >> bits),
        None => format!("{bytes}B"),
    }
}

/// A conversion to a number of another type. A number that the type does not hold is a mistake, too.
fn fitting<T: TryFrom<u64>>(
    read: impl Fn(&Value<'_>, &mut Findings) -> Option<u64>,
) -> impl Fn(&Value<'_>, &mut Findings) -> Option<T> {
    move |value, findings| {
        let number = read(value, findings)?;
        let fitting = T::try_from(number).ok();
        if fitting.is_none() {
            let message = format!("`{}` is out of range", value.name());
            findings.push(value.mistake(message).help("write less"));
        }
        fitting
    }
}
