//! Text from outside on its way to a terminal: names of interfaces and files, values of configurations, messages of peers.
//!
//! Control characters are what a terminal acts on: C0 with ESC, DEL, and C1 (ECMA-48). Each becomes the escape that it has in
//! JSON, such as `\u001b`, so that a line of JSON keeps its meaning, too.

use std::borrow::Cow;

/// `text` without control characters, on one line.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, char::is_control)
}

/// `text` without control characters but those that part lines and columns: `\n` and `\t`.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c.is_control() && !matches!(c, '\n' | '\t'))
}

/// `text` with another character in place of each control character, at the same bytes, so that offsets into it hold.
pub fn masked(text: &str) -> String {
    let mask = |c: char| match c {
        '\n' | '\t' => c,
        _ if !c.is_control() => c,
        _ if c.len_utf8() == 1 => '?',
        _ => '¿',
    };
    text.chars().map(mask).collect()
}

fn escaped(text: &str, acts: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match acts(c) {
            // All of them are below U+00A0.
            true => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_escapes_and_all_else_stays() {
        assert_eq!(printable("é \u{202f}x"), "é \u{202f}x");
        let hostile = "a\u{1b}[31m\u{7f}\u{9b}2J\r\n\tz";
        assert_eq!(printable(hostile), r"a\u001b[31m\u007f\u009b2J\u000d\u000a\u0009z");
        assert_eq!(printable_lines(hostile), "a\\u001b[31m\\u007f\\u009b2J\\u000d\n\tz");
        for code in (0..0x20).chain(0x7f..0xa0) {
            let c = char::from_u32(code).unwrap();
            assert_eq!(printable(&c.to_string()), format!("\\u{code:04x}"));
        }
    }

    #[test]
    fn masked_text_has_its_bytes_where_they_were() {
        let hostile = "a\u{1b}é\u{9b}\n\r|";
        let masked = masked(hostile);
        assert_eq!(masked, "a?é¿\n?|");
        assert_eq!(masked.find('|'), hostile.find('|'));
    }
}
