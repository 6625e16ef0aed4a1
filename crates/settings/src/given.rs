//! The values that a file gives, as text by their keys, so that two files can be compared without their types.

use std::collections::BTreeMap;
use std::fmt;

use toml::de::{DeArray, DeTable, DeValue};

/// A value as a file gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenValue {
    /// A number, a word, text, or `true` and `false`. Text has no quotes.
    Plain(String),
    /// A list of values, or of tables.
    List(Vec<GivenValue>),
    /// A table: its values by their keys.
    Table(BTreeMap<String, GivenValue>),
}

impl GivenValue {
    /// The values of a document, or of a table in it.
    pub fn of_table(table: &DeTable<'_>) -> GivenValue {
        let entries = table.iter();
        let entries = entries.map(|(key, value)| {
            (key.get_ref().as_ref().to_owned(), GivenValue::of(value.get_ref()))
        });
        GivenValue::Table(entries.collect())
    }

    fn of(value: &DeValue<'_>) -> GivenValue {
        match value {
            DeValue::Table(table) => GivenValue::of_table(table),
            DeValue::Array(items) => GivenValue::of_items(items),
            DeValue::String(text) => GivenValue::Plain(text.as_ref().to_owned()),
            // Equal numbers are equal text, however they are written.
            DeValue::Integer(number) => {
                let value = i64::from_str_radix(number.as_str(), number.radix());
                GivenValue::Plain(
                    value.map_or_else(|_| number.as_str().to_owned(), |value| value.to_string()),
                )
            }
            DeValue::Float(number) => {
                let value: Result<f64, _> = number.as_str().parse();
                GivenValue::Plain(
                    value.map_or_else(|_| number.as_str().to_owned(), |value| value.to_string()),
                )
            }
            DeValue::Boolean(value) => GivenValue::Plain(value.to_string()),
            DeValue::Datetime(value) => GivenValue::Plain(value.to_string()),
        }
    }

    fn of_items(items: &DeArray<'_>) -> GivenValue {
        GivenValue::List(items.iter().map(|item| GivenValue::of(item.get_ref())).collect())
    }

    /// A value of the table that this is.
    pub fn get(&self, key: &str) -> Option<&GivenValue> {
        match self {
            GivenValue::Table(entries) => entries.get(key),
            _ => None,
        }
    }
}

impl Default for GivenValue {
    /// A table without keys.
    fn default() -> GivenValue {
        GivenValue::Table(BTreeMap::new())
    }
}

impl fmt::Display for GivenValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GivenValue::Plain(text) => f.write_str(text),
            GivenValue::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            GivenValue::Table(entries) => {
                f.write_str("{")?;
                for (index, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{key} = {value}", if index > 0 { ", " } else { " " })?;
                }
                f.write_str(" }")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;

    fn given(text: &str) -> GivenValue {
        GivenValue::of_table(&document::parse(text).unwrap())
    }

    #[test]
    fn values_are_shown_without_quotes_and_in_the_order_of_their_keys() {
        let text = given("b = \"30s\"\na = [1, 2]\n[t]\nx = true\n").to_string();
        assert_eq!(text, "{ a = [1, 2], b = 30s, t = { x = true } }");
    }

    #[test]
    fn equal_numbers_are_equal_however_they_are_written() {
        assert_eq!(given("a = 1_000"), given("a = 0x3e8"));
        assert_eq!(given("a = 1.50"), given("a = 1.5"));
        assert_ne!(given("a = 1"), given("a = 2"));
    }
}
