//! What a value can be read as: text, words and lists here, numbers and quantities in [`number`]. Each
//! function is a conversion to be given to `Table::read`, or returns one; it notes what is wrong and
//! yields `None` then.

pub mod number;

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use rheostat_steer::{Prefix, PrefixError};
use toml::de::DeValue;

use super::Value;
use crate::findings::Findings;
use crate::suggestion::{enumerate, nearest, one_of};

/// Text as it stands.
pub fn text<'d>(value: &Value<'d>, findings: &mut Findings) -> Option<&'d str> {
    text_like("text", "it between quotes")(value, findings)
}

/// Text that may not be empty.
pub fn name(value: &Value<'_>, findings: &mut Findings) -> Option<String> {
    let name = text(value, findings)?;
    if name.is_empty() || name.contains(char::is_whitespace) {
        let message = format!("`{}` must be a word without spaces", value.name());
        findings.push(value.mistake(message).help("write letters, digits, `-` and `_`"));
        return None;
    }
    Some(name.to_owned())
}

/// The name of a file.
pub fn path(value: &Value<'_>, findings: &mut Findings) -> Option<PathBuf> {
    let path = text_like("a file name", "it as text, such as \"in.pcap\"")(value, findings)?;
    if path.is_empty() {
        let finding = value.mistake(format!("`{}` names no file", value.name()));
        findings.push(finding.help("write a file name, or leave the key out"));
        return None;
    }
    Some(PathBuf::from(path))
}

/// `true` or `false`.
pub fn boolean(value: &Value<'_>, findings: &mut Findings) -> Option<bool> {
    match value.node {
        DeValue::Boolean(boolean) => Some(*boolean),
        _ => {
            findings.push(value.wrong_type("true or false", "`true` or `false`, without quotes"));
            None
        }
    }
}

/// One of a few words.
pub fn choice<T: Copy>(
    options: &[(&'static str, T)],
) -> impl Fn(&Value<'_>, &mut Findings) -> Option<T> {
    move |value, findings| {
        let names = || options.iter().map(|(name, _)| *name);
        let one_of = one_of(names());
        let word = text_like("text", &one_of)(value, findings)?;
        if let Some((_, option)) = options.iter().find(|(name, _)| *name == word) {
            return Some(*option);
        }
        let label = nearest(word, names())
            .map_or_else(String::new, |known| format!("did you mean `{known}`?"));
        let message = format!("`{word}` is not a value of `{}`", value.name());
        findings.push(value.mistake_labelled(message, label).help(format!("write {one_of}")));
        None
    }
}

/// One of a few words, of which `planned` are known but not there yet.
pub fn kind<T: Copy>(
    available: &[(&'static str, T)],
    planned: &[&str],
) -> impl Fn(&Value<'_>, &mut Findings) -> Option<T> {
    move |value, findings| {
        if let DeValue::String(word) = value.node
            && planned.contains(&word.as_ref())
        {
            let message = format!("{} `{word}` is not available in this build yet", value.name());
            let names = enumerate(available.iter().map(|(name, _)| *name));
            findings.push(value.mistake(message).help(format!("available: {names}")));
            return None;
        }
        choice(available)(value, findings)
    }
}

/// Text that a type reads itself; `example` is what to write.
pub fn parsed<T>(example: &str) -> impl Fn(&Value<'_>, &mut Findings) -> Option<T>
where
    T: FromStr,
    T::Err: Display,
{
    move |value, findings| {
        let text = text_like("text", example)(value, findings)?;
        match text.parse() {
            Ok(parsed) => Some(parsed),
            Err(error) => {
                let message = format!("`{}`: {error}", value.name());
                findings.push(value.mistake(message).help(format!("write {example}")));
                None
            }
        }
    }
}

/// An address prefix.
pub fn prefix(value: &Value<'_>, findings: &mut Findings) -> Option<Prefix> {
    let example = "it as text, such as \"10.0.0.0/8\" or \"fd00::/8\"";
    let text = text_like("an address prefix", example)(value, findings)?;
    let error = match text.parse::<Prefix>() {
        Ok(prefix) => return Some(prefix),
        Err(error) => error,
    };
    let (message, help) = match &error {
        PrefixError::HostBits { written, prefix } => {
            (format!("`{written}` has host bits set"), format!("write \"{prefix}\""))
        }
        _ => (error.to_string(), format!("write {example}")),
    };
    findings.push(value.mistake(message).help(help));
    None
}

/// A list of what `convert` reads, or one such value without the brackets. `None` if any was wrong;
/// all of them are looked at.
pub fn list<'d, T>(
    convert: impl Fn(&Value<'d>, &mut Findings) -> Option<T>,
) -> impl Fn(&Value<'d>, &mut Findings) -> Option<Vec<T>> {
    move |value, findings| {
        let DeValue::Array(nodes) = value.node else {
            return convert(value, findings).map(|single| vec![single]);
        };
        let mut items = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let key = format!("{}[{index}]", value.name());
            findings.set_place(&key, node.span());
            let item = Value { key, place: node.span(), node: node.get_ref() };
            items.push(convert(&item, findings));
        }
        items.into_iter().collect()
    }
}

/// A list that is not empty. Without the key everything matches, so an empty list is never needed, and a reader could take it to
/// match nothing.
pub fn filled<'d, T>(
    convert: impl Fn(&Value<'d>, &mut Findings) -> Option<T>,
) -> impl FnOnce(&Value<'d>, &mut Findings) -> Option<Vec<T>> {
    move |value, findings| {
        let items = list(convert)(value, findings)?;
        if items.is_empty() {
            let message = format!("`{}` is an empty list", value.name());
            let help = "without the key everything matches; a list has to say what does";
            findings.push(value.mistake(message).help(help));
            return None;
        }
        Some(items)
    }
}

/// The text of a value that must be text; `expected` is a noun with its article, `example` follows
/// "write".
fn text_like<'d>(
    expected: &str,
    example: &str,
) -> impl Fn(&Value<'d>, &mut Findings) -> Option<&'d str> {
    move |value, findings| match value.node {
        // Values come back in messages, and in names that other programs show.
        DeValue::String(text) if text.contains(char::is_control) => {
            let message = format!("`{}` has a control character", value.name());
            findings.push(value.mistake(message).help(format!("write {example}")));
            None
        }
        DeValue::String(text) => Some(text.as_ref()),
        _ => {
            findings.push(value.wrong_type(expected, example));
            None
        }
    }
}
