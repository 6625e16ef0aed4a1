//! Kinds of settings: how a value is read, how it is shown, and its bounds in words.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use rheostat_base::DeviceId;
use rheostat_steer::{Prefix, Side};

use super::Form;
use crate::device::{self, Named};
use crate::ethertype;
use crate::findings::Findings;
use crate::lifetime::{self, Least};
use crate::quantity::{Count, Span, YEAR};
use crate::reader::Value;
use crate::reader::convert::{self, number};

/// A conversion from a value of a file.
pub type Read<T> = Box<dyn Fn(&Value<'_>, &mut Findings) -> Option<T>>;

/// The units of durations.
const TIMES: &str = "ns, us, ms, s, min, h, d";

/// A kind of setting of type `T`.
pub struct Kind<T> {
    pub(super) form: Form,
    pub(super) noun: &'static str,
    pub(super) units: &'static str,
    pub(super) bounds: Option<String>,
    /// The whole numbers it takes, where it is one.
    pub(super) range: Option<RangeInclusive<u64>>,
    /// A value as a file has it.
    pub(super) example: Option<String>,
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
        let noun = match form {
            Form::Switch => "true or false",
            Form::Number => "number",
            Form::Text => "text",
            Form::Numbers | Form::List => "value or list",
            Form::Table => "table",
            Form::Tables => "list of tables",
            Form::Name => "name",
        };
        let (read, write) = (Box::new(read), Box::new(write));
        Kind {
            form,
            noun,
            units: "",
            bounds: None,
            range: None,
            example: None,
            absent: None,
            read,
            write,
        }
    }

    /// A kind of which `read` converts from a value, and whose values are not shown.
    pub fn unshown(
        form: Form,
        read: impl Fn(&Value<'_>, &mut Findings) -> Option<T> + 'static,
    ) -> Kind<T> {
        Kind::new(form, read, |_| String::new())
    }

    /// The same with its bounds in words.
    #[must_use]
    pub fn within(self, bounds: impl Into<String>) -> Kind<T> {
        Kind { bounds: Some(bounds.into()), ..self }
    }

    /// The same with its type in words.
    #[must_use]
    pub fn noun(self, noun: &'static str) -> Kind<T> {
        Kind { noun, ..self }
    }

    /// The same with a value as a file has it, such as `"10s"` in quotes.
    #[must_use]
    pub fn such_as(self, example: impl Into<String>) -> Kind<T> {
        Kind { example: Some(example.into()), ..self }
    }

    /// The same in words, read as another type by `read`; `from` is its inverse.
    #[must_use]
    pub fn reading<U: 'static>(
        self,
        read: impl Fn(&Value<'_>, &mut Findings) -> Option<U> + 'static,
        from: impl Fn(&U) -> T + 'static,
    ) -> Kind<U> {
        Kind { read: Box::new(read), ..self.map(|_| None, from) }
    }

    /// The same, of which `to` makes another type; `from` is its inverse. `None` is a value that was refused.
    pub fn map<U: 'static>(
        self,
        to: impl Fn(T) -> Option<U> + 'static,
        from: impl Fn(&U) -> T + 'static,
    ) -> Kind<U> {
        let Kind { form, noun, units, bounds, range, example, read, write, .. } = self;
        Kind {
            form,
            noun,
            units,
            bounds,
            range,
            example,
            absent: None,
            read: Box::new(move |value, findings| to(read(value, findings)?)),
            write: Box::new(move |value| write(&from(value))),
        }
    }
}

/// A setting that may be left out.
pub fn optional<T: 'static>(kind: Kind<T>) -> Kind<Option<T>> {
    let Kind { form, noun, units, bounds, range, example, read, write, .. } = kind;
    Kind {
        form,
        noun,
        units,
        bounds,
        range,
        example,
        absent: Some(None),
        read: Box::new(move |value, findings| read(value, findings).map(Some)),
        write: Box::new(move |value| value.as_ref().map_or_else(String::new, &write)),
    }
}

/// One value, or a list of them.
pub fn list<T: 'static>(kind: Kind<T>) -> Kind<Vec<T>> {
    listed(kind, |read, value, findings| convert::list(read)(value, findings))
}

/// One value, or a list of at least one.
pub fn filled<T: 'static>(kind: Kind<T>) -> Kind<Vec<T>> {
    listed(kind, |read, value, findings| convert::filled(read)(value, findings))
}

/// Reads the items of a list by a conversion of one.
type ReadItems<T> = fn(&Read<T>, &Value<'_>, &mut Findings) -> Option<Vec<T>>;

fn listed<T: 'static>(kind: Kind<T>, items: ReadItems<T>) -> Kind<Vec<T>> {
    let Kind { noun, units, bounds, example, read, write, .. } = kind;
    Kind {
        form: Form::List,
        noun,
        units,
        bounds,
        range: None,
        example: example.map(|one| format!("[{one}]")),
        absent: None,
        read: Box::new(move |value, findings| items(&read, value, findings)),
        write: Box::new(move |values| values.iter().map(&write).collect::<Vec<_>>().join(", ")),
    }
}

/// `true` or `false`.
pub fn boolean() -> Kind<bool> {
    Kind::new(Form::Switch, convert::boolean, bool::to_string).such_as("true")
}

/// A whole number within `range`. `T` must hold all of it.
pub fn integer<T: TryFrom<u64> + Display + 'static>(range: RangeInclusive<u64>) -> Kind<T> {
    let (bounds, example) = (words(&range), range.start().to_string());
    let kind = Kind::new(Form::Number, fitting(number::integer(range.clone())), T::to_string);
    Kind { range: Some(range), ..kind }.within(bounds).noun("whole number").such_as(example)
}

/// A power of two within `range`. `T` must hold all of it.
pub fn power_of_two<T: TryFrom<u64> + Display + 'static>(range: RangeInclusive<u64>) -> Kind<T> {
    let bounds = format!("{}, a power of two", words(&range));
    let read = move |value: &Value<'_>, findings: &mut Findings| {
        let number = number::integer(range.clone())(value, findings)?;
        number::power_of_two(value, number, findings)
    };
    Kind::new(Form::Number, fitting(read), T::to_string).within(bounds).noun("whole number")
}

/// A count within `range`, also with `k`, `M` or `G`. `T` must hold all of it.
pub fn count<T: TryFrom<u64> + Display + 'static>(range: RangeInclusive<u64>) -> Kind<T> {
    let (bounds, example) = (counts(&range), range.start().to_string());
    let write = |count: &T| count.to_string();
    Kind { units: "k, M, G", ..Kind::new(Form::Number, fitting(number::count(range)), write) }
        .within(bounds)
        .noun("count")
        .such_as(example)
}

/// A number within `range`, with a fraction or without.
pub fn decimal(range: RangeInclusive<f64>) -> Kind<f64> {
    let (bounds, example) =
        (format!("{} to {}", range.start(), range.end()), range.end().to_string());
    Kind::new(Form::Number, number::number(range), f64::to_string).within(bounds).such_as(example)
}

/// Bytes within `range`, with their unit. `T` must hold all of it.
pub fn size<T: TryFrom<u64> + TryInto<u64> + Copy + 'static>(
    range: RangeInclusive<u64>,
) -> Kind<T> {
    let bounds = format!("{} to {}", written(*range.start()), written(*range.end()));
    let write = |bytes: &T| written((*bytes).try_into().unwrap_or(u64::MAX));
    Kind {
        units: "B, kB, MB, GB, KiB, MiB, GiB",
        ..Kind::new(Form::Text, fitting(number::size(range)), write)
    }
    .within(bounds)
    .noun("size")
    .such_as("\"64kB\"")
}

/// Packets per second within `range`, with their unit. `T` must hold all of it.
pub fn packet_rate<T: TryFrom<u64> + TryInto<u64> + Copy + 'static>(
    range: RangeInclusive<u64>,
) -> Kind<T> {
    let bounds = format!("{}pps to {}pps", Count(*range.start()), Count(*range.end()));
    let write = |rate: &T| format!("{}pps", Count((*rate).try_into().unwrap_or(u64::MAX)));
    Kind {
        units: "pps, kpps, Mpps, Gpps",
        ..Kind::new(Form::Text, fitting(number::packet_rate(range)), write)
    }
    .within(bounds)
    .noun("packet rate")
    .such_as("\"1kpps\"")
}

/// Bits per second within `range`, with their unit.
pub fn bit_rate(range: RangeInclusive<u64>) -> Kind<u64> {
    let bounds = format!("{}bps to {}bps", Count(*range.start()), Count(*range.end()));
    let write = |rate: &u64| format!("{}bps", Count(*rate));
    Kind { units: "bps, kbps, Mbps, Gbps", ..Kind::new(Form::Text, number::bit_rate(range), write) }
        .within(bounds)
        .noun("bit rate")
        .such_as("\"10Mbps\"")
}

/// A duration within `range`, with its unit.
pub fn duration(range: RangeInclusive<Duration>) -> Kind<Duration> {
    let bounds = format!("{} to {}", Span(*range.start()), Span(*range.end()));
    let example = format!("\"{}\"", Span(*range.start()));
    let write = |span: &Duration| Span(*span).to_string();
    Kind { units: TIMES, ..Kind::new(Form::Text, number::duration(range), write) }
        .within(bounds)
        .noun("duration")
        .such_as(example)
}

/// How long flows live without a packet. A shorter time than `least` is taken, with a warning.
pub fn lifetime(least: Least) -> Kind<Duration> {
    let read = move |value: &Value<'_>, findings: &mut Findings| {
        lifetime::lifetime(value, least, findings)
    };
    Kind { read: Box::new(read), ..duration(Duration::from_secs(1)..=YEAR) }
}

/// One of a few words.
pub fn choice<T: Copy + PartialEq + 'static>(
    options: impl Into<Vec<(&'static str, T)>>,
) -> Kind<T> {
    let options: Vec<(&'static str, T)> = options.into();
    let words: Vec<_> = options.iter().map(|(name, _)| *name).collect();
    let (bounds, first) = (words.join(", "), words.first().copied().unwrap_or_default());
    let named = options.clone();
    let write = move |value: &T| {
        let named = named.iter().find(|(_, option)| option == value);
        named.map_or_else(String::new, |(name, _)| (*name).to_owned())
    };
    let read = move |value: &Value<'_>, findings: &mut Findings| {
        convert::choice(&options)(value, findings)
    };
    Kind::new(Form::Text, read, write).within(bounds).noun("word").such_as(format!("\"{first}\""))
}

/// Text that a type reads itself; `example` is what to write.
pub fn parsed<T>(example: &'static str) -> Kind<T>
where
    T: FromStr + Display + 'static,
    T::Err: Display,
{
    written_as(example, convert::parsed(example), T::to_string)
}

/// Text that `read` converts; `example` is what to write, with a value between quotes.
pub fn written_as<T: 'static>(
    example: &'static str,
    read: impl Fn(&Value<'_>, &mut Findings) -> Option<T> + 'static,
    write: impl Fn(&T) -> String + 'static,
) -> Kind<T> {
    let quoted = example.split('"').nth(1);
    let kind = Kind::new(Form::Text, read, write);
    match quoted {
        Some(quoted) => kind.such_as(format!("\"{quoted}\"")),
        None => kind,
    }
}

/// Text.
pub fn text() -> Kind<String> {
    let read = |value: &Value<'_>, findings: &mut Findings| {
        Some(convert::text(value, findings)?.to_owned())
    };
    Kind::new(Form::Text, read, String::clone).such_as("\"text\"")
}

/// A word without spaces.
pub fn name() -> Kind<String> {
    Kind::new(Form::Text, convert::name, String::clone).noun("name").such_as("\"name\"")
}

/// The name of a file or a directory.
pub fn path() -> Kind<PathBuf> {
    Kind::new(Form::Text, convert::path, |path: &PathBuf| path.display().to_string())
        .noun("file name")
        .such_as("\"file\"")
}

/// An address prefix.
pub fn prefix() -> Kind<Prefix> {
    Kind::new(Form::Text, convert::prefix, Prefix::to_string)
        .noun("address prefix")
        .such_as("\"10.0.0.0/8\"")
}

/// An Ethernet type, by name or number.
pub fn ethertype() -> Kind<u16> {
    Kind::new(Form::Number, ethertype::ethertype, |number: &u16| ethertype::name(*number))
        .noun("Ethernet type, by name or number")
        .such_as("\"lldp\"")
}

/// A side of the network.
pub fn side() -> Kind<Side> {
    choice(device::SIDES)
}

/// One of `devices` by its name.
pub fn device<D: Named>(devices: &[D]) -> Kind<DeviceId> {
    let names: Vec<String> = devices.iter().map(|device| device.name().to_owned()).collect();
    let read =
        move |value: &Value<'_>, findings: &mut Findings| device::named(&names)(value, findings);
    Kind::unshown(Form::Text, read).noun("name of a device").such_as("\"lan\"")
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

fn words(range: &RangeInclusive<u64>) -> String {
    format!("{} to {}", range.start(), range.end())
}

fn counts(range: &RangeInclusive<u64>) -> String {
    format!("{} to {}", Count(*range.start()), Count(*range.end()))
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
