//! In which line of a file a key stands.

use toml::de::DeTable;

/// The line of `key`, such as `loads` or `service.connections`. Of a key that is not there, the line of the table it would be in.
pub(super) fn line_of(text: &str, key: &str) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let mut table = document.get_ref();
    let mut start = None;
    for name in key.split('.') {
        let Some((found, value)) = table.iter().find(|(key, _)| key.get_ref() == name) else {
            break;
        };
        start = Some(found.span().start);
        let Some(inner) = value.get_ref().as_table() else { break };
        table = inner;
    }
    let before = text.get(..start?)?;
    Some(before.matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use super::line_of;

    #[test]
    fn keys_have_the_lines_in_which_they_stand() {
        let text = "# loads = 1\na = \"\"\"\nloads = 2\n\"\"\"\nloads = [\n 3 ]\n[service]\nx = 1\n[[step]]\nat = 2\n";
        assert_eq!(line_of(text, "a"), Some(2));
        assert_eq!(line_of(text, "loads"), Some(5));
        assert_eq!(line_of(text, "service.x"), Some(8));
        assert_eq!(line_of(text, "service.y"), Some(7));
        assert_eq!(line_of(text, "step"), Some(9));
        assert_eq!(line_of(text, "rates"), None);
        assert_eq!(line_of("a = ", "a"), None);
    }
}
