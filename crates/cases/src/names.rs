//! Names in a case that stand for what a function chose: `$a` where a port or an identifier would be. The
//! first packet that is expected with a name gives it its number.

use std::collections::HashMap;

use crate::packet::{PacketSpec, tell_with};

/// What names stand for.
#[derive(Debug, Default)]
pub(crate) struct CaseNames(HashMap<String, u16>);

/// The words of a packet, in which names may stand for numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    words: Vec<String>,
    over_ipv6: bool,
}

/// Something that is to hold of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    name: String,
    what: String,
    other: Option<String>,
}

/// Stands for a name without a number while a packet is compared: a number that is in no case.
const UNKNOWN: u16 = 64_901;

impl Words {
    /// Words that make a packet, whatever their names stand for.
    pub(crate) fn new(words: &[&str]) -> Result<Words, String> {
        let words = words.iter().map(ToString::to_string).collect();
        let words = Words { words, over_ipv6: false };
        words.checked()
    }

    /// The same words, if they make a frame.
    fn checked(self) -> Result<Words, String> {
        self.with(|_| 1)?.build()?;
        Ok(self)
    }

    pub(crate) fn over_ipv6(&self) -> Result<Words, String> {
        Words { over_ipv6: true, ..self.clone() }.checked()
    }

    /// The packet, whose names must have their numbers.
    pub(crate) fn packet(&self, names: &CaseNames) -> Result<PacketSpec, String> {
        for name in self.names() {
            if !names.0.contains_key(name) {
                return Err(format!("`${name}` stands for nothing yet"));
            }
        }
        self.with(|name| names.0.get(name).copied().unwrap_or_default())
    }

    /// The packet in words, with unknown names as [`UNKNOWN`] and on.
    fn in_words(&self, names: &CaseNames) -> Result<(String, Vec<String>), String> {
        let mut unknown: Vec<String> =
            self.names().filter(|name| !names.0.contains_key(*name)).map(str::to_owned).collect();
        unknown.dedup();
        let number = |name: &str| {
            let place = unknown.iter().position(|other| other == name).unwrap_or(0) as u16;
            names.0.get(name).copied().unwrap_or(UNKNOWN + place)
        };
        let packet = self.with(number)?;
        Ok((tell_with(&packet.build()?, packet.details()), unknown))
    }

    /// Whether `frame` is this packet; its unknown names get their numbers then.
    pub(crate) fn matches(&self, frame: &[u8], names: &mut CaseNames) -> Result<bool, String> {
        let (expected, unknown) = self.in_words(names)?;
        let got = &tell_with(frame, self.with(|_| 1)?.details());
        let mut found: HashMap<String, u16> = HashMap::new();
        let (expected, got) = (pieces(&expected), pieces(got));
        if expected.len() != got.len() {
            return Ok(false);
        }
        for (expected, got) in expected.into_iter().zip(got) {
            let name = (UNKNOWN..).zip(&unknown).find(|(number, _)| number.to_string() == expected);
            match (name, got.parse::<u16>()) {
                (Some((_, name)), Ok(number)) => {
                    if *found.entry(name.clone()).or_insert(number) != number {
                        return Ok(false);
                    }
                }
                _ if expected == got => {}
                _ => return Ok(false),
            }
        }
        names.0.extend(found);
        Ok(true)
    }

    /// What is expected, in words.
    pub(crate) fn text(&self, names: &CaseNames) -> String {
        match self.in_words(names) {
            Ok((words, unknown)) => {
                (UNKNOWN..).zip(&unknown).fold(words, |words, (number, name)| {
                    words.replace(&number.to_string(), &format!("${name}"))
                })
            }
            Err(problem) => problem,
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.words.iter().filter_map(|word| name_in(word))
    }

    fn with(&self, number: impl Fn(&str) -> u16) -> Result<PacketSpec, String> {
        let words: Vec<String> = self
            .words
            .iter()
            .map(|word| match name_in(word) {
                Some(name) => word.replace(&format!("${name}"), &number(name).to_string()),
                None => word.clone(),
            })
            .collect();
        let packet = PacketSpec::parse(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
        if self.over_ipv6 { packet.over_ipv6() } else { Ok(packet) }
    }
}

fn name_in(word: &str) -> Option<&str> {
    word.split_once('$').map(|(_, name)| name)
}

/// Numbers and what lies between them.
fn pieces(words: &str) -> Vec<&str> {
    words
        .split_inclusive(|c: char| !c.is_ascii_alphanumeric())
        .flat_map(|piece| {
            let end = piece.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).len();
            [&piece[..end], &piece[end..]]
        })
        .filter(|piece| !piece.is_empty())
        .collect()
}

impl Check {
    /// Reads `$a even`, `$a odd`, `$a low`, `$a high`, `$a is $b`, `$a is not $b`, with numbers in place
    /// of `$b`, too.
    pub(crate) fn parse(words: &[&str]) -> Result<Check, String> {
        let (name, what, other) = match words {
            [name, what @ ("even" | "odd" | "low" | "high")] => (name, *what, None),
            [name, "is", "not", other] => (name, "is not", Some(other)),
            [name, "is", other] => (name, "is", Some(other)),
            _ => {
                return Err(
                    "a check is `$a even|odd|low|high`, `$a is $b` or `$a is not $b`".into()
                );
            }
        };
        let name = name.strip_prefix('$').ok_or("a check is about a name")?.to_owned();
        Ok(Check { name, what: what.to_owned(), other: other.map(ToString::to_string) })
    }

    /// Whether it holds.
    pub(crate) fn holds(&self, names: &CaseNames) -> Result<bool, String> {
        let known = |name: &str| {
            names.0.get(name).copied().ok_or_else(|| format!("`${name}` stands for nothing yet"))
        };
        let number = known(&self.name)?;
        let other = match self.other.as_deref().map(|other| (other, other.strip_prefix('$'))) {
            Some((_, Some(name))) => known(name)?,
            Some((digits, None)) => {
                digits.parse().map_err(|_| format!("`{digits}` is no number"))?
            }
            None => 0,
        };
        Ok(match self.what.as_str() {
            "even" => number % 2 == 0,
            "odd" => number % 2 == 1,
            "low" => number < 1_024,
            "high" => number >= 1_024,
            "is" => number == other,
            _ => number != other,
        })
    }

    /// The condition in words.
    pub(crate) fn text(&self) -> String {
        let other = self.other.as_deref().unwrap_or_default();
        format!("${} {} {other}", self.name, self.what).trim_end().to_owned()
    }

    /// The value of its name in words.
    pub(crate) fn value(&self, names: &CaseNames) -> String {
        match names.0.get(&self.name) {
            Some(number) => format!("${} = {number}", self.name),
            None => format!("no value of ${}", self.name),
        }
    }
}
