//! What serde finds wrong, with the place where it does.

use std::fmt::{self, Display};
use std::ops::Range;

use serde::de::{self, Unexpected};

use super::expected::Expected;
use crate::diagnostic::Finding;
use crate::reader::{Value, title};
use crate::suggestion::{nearest, one_of};

/// The first mistake of a reading.
#[derive(Debug)]
pub(super) struct Mistake {
    wrong: Wrong,
    /// The key of the value or table that has it, and its bytes in the file; unknown while serde has not returned to the
    /// one that it was reading.
    place: Option<Box<MistakePlace>>,
}

#[derive(Clone, Debug, Default)]
struct MistakePlace {
    key: String,
    bytes: Option<Range<usize>>,
    is_table: bool,
}

#[derive(Debug)]
enum Wrong {
    /// A value of another type.
    Type { found: &'static str, expected: Expected },
    /// A value that its type does not take.
    Range { found: String, expected: Expected },
    /// A word that is not one of those.
    Word { found: String, known: &'static [&'static str] },
    /// No value for this key.
    Missing(&'static str),
    /// Anything else, in the words of the type.
    Other(String),
}

impl Mistake {
    /// The same, at this value unless it is known to be further inside.
    pub(super) fn at(mut self, key: &str, bytes: Range<usize>) -> Mistake {
        let place =
            || Box::new(MistakePlace { key: key.to_owned(), bytes: Some(bytes), is_table: false });
        self.place.get_or_insert_with(place);
        self
    }

    /// The same, at this table unless it is known to be further inside.
    pub(super) fn at_table(mut self, key: &str, bytes: Range<usize>) -> Mistake {
        // A table that the file does not have is nowhere.
        let bytes = Some(bytes).filter(|bytes| !bytes.is_empty());
        self.place.get_or_insert_with(|| {
            Box::new(MistakePlace { key: key.to_owned(), bytes, is_table: true })
        });
        self
    }

    /// The key that is missing, with its tables.
    pub(super) fn missing(&self) -> Option<String> {
        match (&self.wrong, &self.place) {
            (Wrong::Missing(key), Some(table)) => Some(format!("{}.{key}", table.key)),
            _ => None,
        }
    }

    /// What a missing key's value would have been, from the mistake of giving it none.
    pub(super) fn probed(self) -> Option<String> {
        match self.wrong {
            Wrong::Type { expected, .. } => Some(expected.phrase()),
            _ => None,
        }
    }

    /// The key directly inside `table` that has the mistake, unless the table itself has it.
    pub(super) fn key_below(&self, table: &str) -> Option<String> {
        let below = self.place.as_ref()?.key.strip_prefix(table)?.strip_prefix('.')?;
        let end = below.find(['.', '[']).unwrap_or(below.len());
        Some(format!("{table}.{}", &below[..end]))
    }

    /// The mistake for people; `missing` is the value that a missing key has.
    pub(super) fn finding(&self, missing: Option<&str>) -> Finding {
        let MistakePlace { key, bytes: place, is_table } =
            self.place.as_deref().cloned().unwrap_or_default();
        let name = Value::name_of(&key).to_owned();
        let finding = |message: String| Finding::mistake(&key, message);
        match &self.wrong {
            Wrong::Type { found, expected } => {
                finding(format!("`{name}` must be {}", expected.noun))
                    .at(place, *found)
                    .help(format!("write {}", expected.example))
            }
            Wrong::Range { found, expected } => finding(format!("`{name}` is out of range"))
                .at(place, format!("this is {found}"))
                .help(format!("write {}", expected.example)),
            Wrong::Word { found, known } => {
                let label = nearest(found, known.iter().copied())
                    .map_or_else(String::new, |known| format!("did you mean `{known}`?"));
                finding(format!("`{found}` is not a value of `{name}`"))
                    .at(place, label)
                    .help(format!("write {}", one_of(known.iter().copied())))
            }
            Wrong::Missing(missed) => {
                let value = missing.map_or_else(String::new, |value| format!(", {value}"));
                finding(format!("{} has no `{missed}`", title(&key)))
                    .at(place, "in this table")
                    .help(format!("add `{missed} = …`{value}"))
            }
            Wrong::Other(message) if is_table => {
                finding(message.clone()).at(place, "in this table")
            }
            Wrong::Other(message) => finding(format!("`{name}`: {message}")).at(place, ""),
        }
    }

    fn new(wrong: Wrong) -> Mistake {
        Mistake { wrong, place: None }
    }
}

impl Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.finding(None))
    }
}

impl std::error::Error for Mistake {}

impl de::Error for Mistake {
    fn custom<T: Display>(message: T) -> Mistake {
        Mistake::new(Wrong::Other(message.to_string()))
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn de::Expected) -> Mistake {
        let found = match unexpected {
            Unexpected::Str(_) | Unexpected::Char(_) => "this is text",
            Unexpected::Unsigned(_) | Unexpected::Signed(_) => "this is an integer",
            Unexpected::Float(_) => "this is a number with a fraction",
            Unexpected::Bool(_) => "this is true or false",
            Unexpected::Seq => "this is a list",
            Unexpected::Map => "this is a table",
            _ => "this is something else",
        };
        Mistake::new(Wrong::Type { found, expected: Expected::of(&expected) })
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn de::Expected) -> Mistake {
        let found = match unexpected {
            Unexpected::Str(text) => format!("\"{text}\""),
            Unexpected::Unsigned(number) => number.to_string(),
            Unexpected::Signed(number) => number.to_string(),
            Unexpected::Float(number) => number.to_string(),
            other => other.to_string(),
        };
        Mistake::new(Wrong::Range { found, expected: Expected::of(&expected) })
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Mistake {
        Mistake::new(Wrong::Word { found: variant.to_owned(), known })
    }

    fn missing_field(field: &'static str) -> Mistake {
        Mistake::new(Wrong::Missing(field))
    }
}
