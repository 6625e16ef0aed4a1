//! What serde expects, in the words of a configuration.

use std::fmt::Display;

/// A value that was expected: a noun with its article, and what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) noun: String,
    pub(super) example: String,
}

impl Expected {
    /// From the words of a visitor, such as `u32` or `a string`.
    pub(super) fn of(words: &dyn Display) -> Expected {
        let words = words.to_string();
        let new = |noun: &str, example: String| Expected { noun: noun.to_owned(), example };
        let whole = |least: i128, most: u128| {
            new("a whole number", format!("a number between {least} and {most}"))
        };
        match words.as_str() {
            "u8" => whole(0, u8::MAX.into()),
            "u16" => whole(0, u16::MAX.into()),
            "u32" => whole(0, u32::MAX.into()),
            "u64" => whole(0, u64::MAX.into()),
            "usize" => whole(0, usize::MAX as u128),
            "i8" => whole(i8::MIN.into(), i8::MAX as u128),
            "i16" => whole(i16::MIN.into(), i16::MAX as u128),
            "i32" => whole(i32::MIN.into(), i32::MAX as u128),
            "i64" | "isize" => whole(i64::MIN.into(), i64::MAX as u128),
            "f32" | "f64" => new("a number", "a number".to_owned()),
            "a boolean" => new("true or false", "`true` or `false`, without quotes".to_owned()),
            "a string" => new("text", "it between quotes".to_owned()),
            "a sequence" => new("a list", "it between brackets: [ … ]".to_owned()),
            "a map" => new("a table", "its keys below a header of its own".to_owned()),
            text if text.starts_with("struct ") => {
                new("a table", "its keys below a header of its own".to_owned())
            }
            text if text.contains("NonZero") || text.starts_with("a nonzero") => {
                new("a whole number above 0", "a number above 0".to_owned())
            }
            text => new(text, text.to_owned()),
        }
    }

    /// The value in one phrase: the range of a number, the noun of anything else.
    pub(super) fn phrase(&self) -> String {
        match self.example.strip_prefix("a number between") {
            Some(range) => format!("{} between{range}", self.noun),
            None => self.noun.clone(),
        }
    }
}
