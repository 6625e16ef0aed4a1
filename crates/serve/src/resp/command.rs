//! Commands on the wire: arrays of strings, or a line of words.

use std::sync::Arc;

use super::clients::{Client, Protocol};

/// Words of a command at most.
const WORDS: usize = 4_096;
/// Bytes of a command beside its longest value.
pub(super) const BESIDE: usize = 1 << 20;
/// The longest line.
const LINE: usize = 4 << 10;

/// A command: its name and its arguments.
#[derive(Debug)]
pub struct Command {
    words: Vec<Vec<u8>>,
    /// How the reply is written.
    pub(super) protocol: Protocol,
    /// The client, if the command is about it.
    pub(super) client: Option<Arc<Client>>,
}

/// Why there is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParseError {
    /// It takes at least so many bytes; 0 where that is not known.
    Partial(usize),
    Wrong(&'static str),
}

/// How far a command that comes in pieces has been looked at: its next bytes are looked at from there, not from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Words that are there, once the number of words is.
    words: Option<(usize, usize)>,
    /// Where the next line begins.
    at: usize,
    /// Bytes of that line in which there is no end of it.
    searched: usize,
}

impl Command {
    /// A command that `client` sent.
    pub(super) fn new(words: Vec<Vec<u8>>, protocol: Protocol, client: &Arc<Client>) -> Command {
        let is = |name: &&[u8]| words.first().is_some_and(|word| word.eq_ignore_ascii_case(name));
        let is_about_it = [&b"HELLO"[..], b"CLIENT", b"RESET"].iter().any(is);
        Command { client: is_about_it.then(|| client.clone()), words, protocol }
    }

    /// Whether this is its name, which is given in capitals.
    pub(super) fn is(&self, name: &[u8]) -> bool {
        self.words.first().is_some_and(|first| first.eq_ignore_ascii_case(name))
    }

    /// Its name in capitals, and its arguments; none for an empty line.
    pub(super) fn split(self) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
        let mut arguments = self.words;
        if arguments.is_empty() {
            return None;
        }
        let mut name = arguments.remove(0);
        name.make_ascii_uppercase();
        Some((name, arguments))
    }
}

/// Reads the words of a command, of up to `longest` bytes each, and returns how many bytes it takes. `progress` is that of an earlier
/// call with fewer bytes of the same command, or none. Each word is copied once, when all of it is there.
pub(super) fn parse(
    bytes: &[u8],
    progress: &mut Progress,
    longest: usize,
) -> Result<(Vec<Vec<u8>>, usize), ParseError> {
    let mut words = Vec::new();
    let is_fresh = *progress == Progress::default();
    let note = |word: &[u8]| {
        if is_fresh {
            words.push(word.to_vec())
        }
    };
    let end = match progress.go_on(bytes, longest, note) {
        Err(ParseError::Partial(needed)) if needed.max(bytes.len() + 1) > longest + BESIDE => {
            return Err(ParseError::Wrong("too long command"));
        }
        end => end?,
    };
    *progress = Progress::default();
    if !is_fresh {
        // Once more, now that it is whole.
        let end = Progress::default().go_on(bytes, longest, |word| words.push(word.to_vec()));
        debug_assert!(end.is_ok(), "{end:?}");
    }
    Ok((words, end))
}

impl Progress {
    /// Looks at a command up to its end, which is returned, and shows the words that were not looked at before.
    fn go_on(
        &mut self,
        bytes: &[u8],
        longest: usize,
        mut note: impl FnMut(&[u8]),
    ) -> Result<usize, ParseError> {
        if bytes.first() != Some(&b'*') {
            let line = self.line(bytes)?;
            let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            words.for_each(note);
            return Ok(self.at);
        }
        let (count, mut found) = match self.words {
            Some(words) => words,
            None => {
                let count = self.number(bytes)?.clamp(0, WORDS as i64 + 1) as usize;
                if count > WORDS {
                    return Err(ParseError::Wrong("invalid multibulk length"));
                }
                (count, 0)
            }
        };
        while found < count {
            self.words = Some((count, found));
            let start = self.at;
            match bytes.get(start) {
                None => return Err(ParseError::Partial(0)),
                Some(b'$') => {}
                Some(_) => return Err(ParseError::Wrong("expected '$'")),
            }
            let len = usize::try_from(self.number(bytes)?).ok().filter(|len| *len <= longest);
            let len = len.ok_or(ParseError::Wrong("invalid bulk length"))?;
            let end = self.at + len + 2;
            let Some(word) = bytes.get(self.at..end) else {
                self.at = start;
                return Err(ParseError::Partial(end));
            };
            let Some(word) = word.strip_suffix(b"\r\n") else {
                return Err(ParseError::Wrong("a string is longer than it says"));
            };
            note(word);
            (self.at, found) = (end, found + 1);
        }
        Ok(self.at)
    }

    /// The line that begins here; then goes to the next one.
    fn line<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], ParseError> {
        let rest = &bytes[self.at..];
        let new = rest.iter().take(LINE).skip(self.searched);
        match new.enumerate().find(|(_, byte)| **byte == b'\n') {
            Some((place, _)) => {
                let end = self.searched + place;
                (self.at, self.searched) = (self.at + end + 1, 0);
                let line = &rest[..end];
                Ok(line.strip_suffix(b"\r").unwrap_or(line))
            }
            None if rest.len() >= LINE => Err(ParseError::Wrong("too big inline request")),
            None => {
                self.searched = rest.len();
                Err(ParseError::Partial(0))
            }
        }
    }

    /// The number behind the sign with which a line begins; then goes to the next line.
    fn number(&mut self, bytes: &[u8]) -> Result<i64, ParseError> {
        let line = self.line(bytes)?;
        let text = line.get(1..).and_then(|digits| std::str::from_utf8(digits).ok());
        text.and_then(|text| text.parse().ok()).ok_or(ParseError::Wrong("invalid length"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: usize = 512 << 10;

    fn parse(bytes: &[u8]) -> Result<(Vec<Vec<u8>>, usize), ParseError> {
        super::parse(bytes, &mut Progress::default(), LONGEST)
    }

    #[test]
    fn commands_are_read_in_both_forms() {
        let command =
            |words: &[&str]| words.iter().map(|w| w.as_bytes().to_vec()).collect::<Vec<_>>();
        let text = b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n*1";
        assert_eq!(parse(text), Ok((command(&["GET", "a\r\nb"]), 23)));
        assert_eq!(parse(b"get  a\r\nx"), Ok((command(&["get", "a"]), 8)));
        assert_eq!(parse(b"*0\r\n"), Ok((command(&[]), 4)));
    }

    #[test]
    fn every_part_of_a_command_asks_for_more() {
        let text = b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n";
        for len in 1..text.len() {
            match parse(&text[..len]) {
                Err(ParseError::Partial(needed)) => assert!(needed <= text.len(), "{len}"),
                other => panic!("{len}: {other:?}"),
            }
        }
        assert_eq!(parse(&text[..15]), Err(ParseError::Partial(0)));
        assert_eq!(parse(&text[..18]), Err(ParseError::Partial(23)));
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
            assert!(matches!(parse(text), Err(ParseError::Wrong(_))), "{text:?}");
        }
    }

    #[test]
    fn what_was_looked_at_is_not_looked_at_again() {
        let text = format!("*1000\r\n{}", "$3\r\nabc\r\n".repeat(1_000)).into_bytes();
        let (mut progress, mut shown) = (Progress::default(), 0);
        for len in 1..text.len() {
            let before = progress.at + progress.searched;
            let outcome = progress.go_on(&text[..len], LONGEST, |_| shown += 1);
            assert!(matches!(outcome, Err(ParseError::Partial(_))), "{len}: {outcome:?}");
            let after = progress.at + progress.searched;
            // A word is looked at once its length is there, from the line with the length on.
            assert!(after >= before.min(progress.at) && len - after <= 9, "{len}: {progress:?}");
        }
        assert_eq!(shown, 999, "each word once");
        let mut progress = Progress::default();
        for len in (1..text.len()).step_by(7) {
            assert!(super::parse(&text[..len], &mut progress, LONGEST).is_err());
        }
        assert_eq!(super::parse(&text, &mut progress, LONGEST), parse(&text));
        assert_eq!(progress, Progress::default(), "for the next command");
    }
}
