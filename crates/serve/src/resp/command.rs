//! Commands on the wire: arrays of strings, or a line of words.

/// Words of a command at most.
const WORDS: usize = 4_096;
/// The longest word.
const LONGEST: usize = 512 << 10;
/// The longest line.
const LINE: usize = 4 << 10;

/// A command: its name and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command(Vec<Vec<u8>>);

/// Why there is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParseError {
    /// It takes at least so many bytes; 0 where that is not known.
    Partial(usize),
    Wrong(&'static str),
}

impl Command {
    /// Reads a command, and returns how many bytes it takes.
    pub(super) fn parse(bytes: &[u8]) -> Result<(Command, usize), ParseError> {
        if bytes.first() != Some(&b'*') {
            let (line, end) = line(bytes, 0)?;
            let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            return Ok((Command(words.map(<[u8]>::to_vec).collect()), end));
        }
        let (count, mut at) = number(bytes, 0)?;
        let count = count.min(WORDS as i64 + 1).max(0) as usize;
        if count > WORDS {
            return Err(ParseError::Wrong("invalid multibulk length"));
        }
        let mut words = Vec::with_capacity(count);
        for _ in 0..count {
            match bytes.get(at) {
                None => return Err(ParseError::Partial(0)),
                Some(b'$') => {}
                Some(_) => return Err(ParseError::Wrong("expected '$'")),
            }
            let (len, start) = number(bytes, at)?;
            let len = usize::try_from(len).ok().filter(|len| *len <= LONGEST);
            let len = len.ok_or(ParseError::Wrong("invalid bulk length"))?;
            let Some(word) = bytes.get(start..start + len + 2) else {
                return Err(ParseError::Partial(start + len + 2));
            };
            let Some(word) = word.strip_suffix(b"\r\n") else {
                return Err(ParseError::Wrong("a string is longer than it says"));
            };
            words.push(word.to_vec());
            at = start + len + 2;
        }
        Ok((Command(words), at))
    }

    /// Whether this is its name, which is given in capitals.
    pub(super) fn is(&self, name: &[u8]) -> bool {
        self.0.first().is_some_and(|first| first.eq_ignore_ascii_case(name))
    }

    /// Its name in capitals, and its arguments; none for an empty line.
    pub(super) fn split(&self) -> Option<(Vec<u8>, &[Vec<u8>])> {
        let (name, arguments) = self.0.split_first()?;
        Some((name.to_ascii_uppercase(), arguments))
    }
}

/// The line that starts at `at`, and where the next one does.
fn line(bytes: &[u8], at: usize) -> Result<(&[u8], usize), ParseError> {
    let rest = &bytes[at..];
    match rest.iter().take(LINE).position(|byte| *byte == b'\n') {
        Some(end) => {
            let line = &rest[..end];
            Ok((line.strip_suffix(b"\r").unwrap_or(line), at + end + 1))
        }
        None if rest.len() >= LINE => Err(ParseError::Wrong("too big inline request")),
        None => Err(ParseError::Partial(0)),
    }
}

/// The number behind the sign at `at`, and where its line ends.
fn number(bytes: &[u8], at: usize) -> Result<(i64, usize), ParseError> {
    let (line, end) = line(bytes, at)?;
    let text = line.get(1..).and_then(|digits| std::str::from_utf8(digits).ok());
    let number = text.and_then(|text| text.parse().ok());
    Ok((number.ok_or(ParseError::Wrong("invalid length"))?, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_in_both_forms() {
        let command =
            |words: &[&str]| Command(words.iter().map(|w| w.as_bytes().to_vec()).collect());
        let text = b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n*1";
        assert_eq!(Command::parse(text), Ok((command(&["GET", "a\r\nb"]), 23)));
        assert_eq!(Command::parse(b"get  a\r\nx"), Ok((command(&["get", "a"]), 8)));
        assert_eq!(Command::parse(b"*0\r\n"), Ok((command(&[]), 4)));
    }

    #[test]
    fn every_part_of_a_command_asks_for_more() {
        let text = b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n";
        for len in 1..text.len() {
            match Command::parse(&text[..len]) {
                Err(ParseError::Partial(needed)) => assert!(needed <= text.len(), "{len}"),
                other => panic!("{len}: {other:?}"),
            }
        }
        assert_eq!(Command::parse(&text[..15]), Err(ParseError::Partial(0)));
        assert_eq!(Command::parse(&text[..18]), Err(ParseError::Partial(23)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in [
            &b"*x\r\n"[..],
            b"*1\r\nGET\r\n",
            b"*1\r\n$-1\r\n",
            b"*1\r\n$9999999999\r\n",
            b"*99999\r\n",
            b"*1\r\n$1\r\nabc\r\n",
            &[b'x'; LINE],
        ] {
            assert!(matches!(Command::parse(text), Err(ParseError::Wrong(_))), "{text:?}");
        }
    }
}
