//! From text to a TOML document: all errors of syntax, with their places.

use toml::de::{DeTable, Error};

use crate::diagnostic::Finding;

/// Parses `text`. When it is not TOML, all that the parser complains about, one finding per line: what
/// follows on the same line is mostly the same mistake again.
pub fn parse(text: &str) -> Result<DeTable<'_>, Vec<Finding>> {
    let (document, mut errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(document.into_inner());
    }
    errors.sort_by_key(start);
    errors.dedup_by(|later, earlier| on_one_line(text, start(earlier), start(later)));
    Err(errors.iter().map(|error| finding(text, error)).collect())
}

fn finding(text: &str, error: &Error) -> Finding {
    let message = error.message();
    let (what, expected) = match message.split_once(", expected ") {
        Some((what, expected)) => (what, Some(expected)),
        None => (message, None),
    };
    let help = match (what, expected) {
        ("string values must be quoted", _) => {
            "put text between quotes, quantities with a unit too: \"10s\"".to_owned()
        }
        ("duplicate key", _) => "a key may stand once in a table; remove one of them".to_owned(),
        (_, Some(expected)) => format!("expected {expected}"),
        (_, None) => "see https://toml.io for the syntax".to_owned(),
    };
    let label = if what == message { String::new() } else { "here".to_owned() };
    let place = error.span().map(|span| widen(text, span));
    Finding::mistake("", format!("not TOML: {what}")).at(place, label).help(help)
}

/// An empty place is widened to the rest of its word, so that there is something to underline.
fn widen(text: &str, span: std::ops::Range<usize>) -> std::ops::Range<usize> {
    let rest = text.get(span.start..).unwrap_or_default();
    let word = rest.find(|c: char| c.is_whitespace() || c == '#' || c == ',' || c == ']');
    span.start..span.end.max(span.start + word.unwrap_or(rest.len()))
}

fn start(error: &Error) -> usize {
    error.span().map_or(0, |span| span.start)
}

fn on_one_line(text: &str, start: usize, end: usize) -> bool {
    !text.as_bytes().get(start..end).is_some_and(|between| between.contains(&b'\n'))
}
