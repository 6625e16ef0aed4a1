//! Bodies in chunks (RFC 9112, section 7.1).

use super::status::Status;

/// Bytes of extensions that one chunk may have. They are ignored.
const EXTENSION: u32 = 256;
/// Bytes of trailer fields at most. They are ignored.
const TRAILERS: u32 = 8 << 10;
/// Digits of a chunk's size, leading zeros included.
const DIGITS: u32 = 16;

/// How far a body in chunks has been read. Each byte is looked at once, and takes constant memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decoder(State);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The digits of a size: those read, and their value.
    Size {
        digits: u32,
        size: u64,
    },
    /// Behind a size: bytes of the extension.
    Extension {
        size: u64,
        len: u32,
    },
    /// A line feed ends the line with the size.
    SizeEnd {
        size: u64,
    },
    Data {
        left: u64,
    },
    /// CR behind data, then LF.
    DataEnd {
        has_cr: bool,
    },
    /// Trailer fields: bytes of all, bytes of the line at hand, and whether it ended with CR.
    Trailers {
        total: u32,
        line: u32,
        has_cr: bool,
    },
    Done,
}

impl Decoder {
    pub(super) fn new() -> Decoder {
        Decoder(State::Size { digits: 0, size: 0 })
    }

    /// Whether the last chunk and the trailer fields were read.
    pub(super) fn is_done(self) -> bool {
        self.0 == State::Done
    }

    /// Reads from `bytes` and shows up to `most` bytes of data; returns how many bytes it has read. Fails only if the first of them
    /// is wrong or its line beyond its bound: before a later one it stops. There may be `permitted` bytes of data, of which a chunk may announce no more.
    pub(super) fn decode(
        &mut self,
        bytes: &[u8],
        most: usize,
        permitted: u64,
        mut show: impl FnMut(&[u8]),
    ) -> Result<usize, Status> {
        let (mut at, mut shown) = (0, 0);
        while at < bytes.len() && self.0 != State::Done {
            if let State::Data { left } = self.0 {
                let len = usize::try_from(left).unwrap_or(usize::MAX);
                let len = len.min(bytes.len() - at).min(most - shown);
                if len == 0 {
                    break;
                }
                show(&bytes[at..at + len]);
                (at, shown) = (at + len, shown + len);
                self.0 = match left - len as u64 {
                    0 => State::DataEnd { has_cr: false },
                    left => State::Data { left },
                };
                continue;
            }
            let next = match (self.0, self.0.after(bytes[at])) {
                (State::SizeEnd { size }, Ok(_)) if size > permitted - shown as u64 => {
                    Err(Status::TOO_LONG)
                }
                (_, next) => next,
            };
            match next {
                Ok(state) => self.0 = state,
                Err(error) if at == 0 => return Err(error),
                Err(_) => break,
            }
            at += 1;
        }
        Ok(at)
    }
}

impl State {
    /// The state behind a byte that is no data.
    fn after(self, byte: u8) -> Result<State, Status> {
        Ok(match (self, byte) {
            (State::Size { digits: 1.., size }, b'\r') => State::SizeEnd { size },
            (State::Size { digits: 1.., size }, b';' | b' ' | b'\t') => {
                State::Extension { size, len: 1 }
            }
            (State::Size { digits, size }, byte) if digits < DIGITS => {
                let digit = char::from(byte).to_digit(16).ok_or(Status::BAD_REQUEST)?;
                State::Size { digits: digits + 1, size: size << 4 | u64::from(digit) }
            }
            (State::Extension { size, .. }, b'\r') => State::SizeEnd { size },
            (State::Extension { size, len }, byte)
                if len < EXTENSION && (byte == b'\t' || !byte.is_ascii_control()) =>
            {
                State::Extension { size, len: len + 1 }
            }
            // A bare line feed is no end of this line: proxies that take it for one read other chunks.
            (State::SizeEnd { size: 0 }, b'\n') => {
                State::Trailers { total: 0, line: 0, has_cr: false }
            }
            (State::SizeEnd { size }, b'\n') => State::Data { left: size },
            (State::DataEnd { has_cr: false }, b'\r') => State::DataEnd { has_cr: true },
            (State::DataEnd { has_cr: true }, b'\n') => State::Size { digits: 0, size: 0 },
            (State::Trailers { line: 0, has_cr: true, .. }, b'\n') => State::Done,
            (State::Trailers { total, has_cr: true, .. }, b'\n') => {
                State::Trailers { total: total + 1, line: 0, has_cr: false }
            }
            (State::Trailers { total, line, has_cr: false }, b'\r') => {
                State::Trailers { total: total + 1, line, has_cr: true }
            }
            (State::Trailers { total, line, has_cr: false }, byte)
                if total < TRAILERS && (byte == b'\t' || !byte.is_ascii_control()) =>
            {
                State::Trailers { total: total + 1, line: line + 1, has_cr: false }
            }
            _ => return Err(Status::BAD_REQUEST),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The data of a body that arrives in pieces of `len` bytes, and how many bytes it took; an error where it is wrong.
    fn decode(text: &[u8], len: usize) -> Result<(Vec<u8>, usize, bool), Status> {
        decode_within(u64::MAX, text, len)
    }

    fn decode_within(
        permitted: u64,
        text: &[u8],
        len: usize,
    ) -> Result<(Vec<u8>, usize, bool), Status> {
        let (mut decoder, mut data, mut at) = (Decoder::new(), Vec::new(), 0);
        while at < text.len() && !decoder.is_done() {
            let piece = &text[at..text.len().min(at + len)];
            let left = permitted - data.len() as u64;
            at += decoder.decode(piece, 7, left, |bytes| data.extend_from_slice(bytes))?;
        }
        Ok((data, at, decoder.is_done()))
    }

    /// RFC 9112, 7.1: chunks, extensions and trailer fields; the last two are ignored.
    #[test]
    fn chunks_are_their_data_however_they_are_cut() {
        let text = b"3\r\nabc\r\n00A ; x=\"y\"\r\n0123456789\r\n1;a\r\n\n\r\n0\r\nT: v\r\n\r\nGET";
        for len in 1..text.len() {
            let expected = (b"abc0123456789\n".to_vec(), text.len() - 3, true);
            assert_eq!(decode(text, len), Ok(expected), "by {len}");
        }
        assert_eq!(decode(b"5\r\nab", 9), Ok((b"ab".to_vec(), 5, false)));
    }

    #[test]
    fn a_wrong_byte_is_refused_however_the_body_is_cut() {
        let long = |fill: usize| format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(fill));
        let trailers = |fill: usize| format!("0\r\nX: {}\r\n\r\n", "x".repeat(fill));
        for text in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "+1\r\n",
            "0x1\r\n",
            " 1\r\n",
            "1\na",
            "1\r\nab\r\n",
            "1\r\na\n",
            "1\r\na\r\r\n",
            "1;\0\r\n",
            "1;x\n",
            "00000000000000001\r\n",
            "0\r\nX: y\n",
            "0\r\nX\0: y\r\n\r\n",
            "0\r\nX\r: y\r\n\r\n",
            &long(EXTENSION as usize),
            &trailers(TRAILERS as usize),
        ] {
            for len in 1..=text.len() {
                assert_eq!(
                    decode(text.as_bytes(), len),
                    Err(Status::BAD_REQUEST),
                    "{text:?} by {len}"
                );
            }
        }
        assert!(decode(long(200).as_bytes(), 9).is_ok_and(|(.., is_done)| is_done));
        assert!(decode(b"FFFFFFFFFFFFFFFF\r\nab", 9).is_ok_and(|(.., is_done)| !is_done));
    }

    #[test]
    fn a_chunk_is_refused_when_it_announces_too_much() {
        let text = b"3\r\nabc\r\n4\r\n";
        for len in 1..=text.len() {
            assert_eq!(decode_within(6, text, len), Err(Status::TOO_LONG), "by {len}");
            assert_eq!(decode_within(7, text, len), Ok((b"abc".to_vec(), text.len(), false)));
        }
        assert_eq!(decode_within(1 << 40, b"FFFFFFFFFFFFFFFF\r\n", 9), Err(Status::TOO_LONG));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_much_for_it(bytes in prop::collection::vec(prop_oneof![
            Just(b'0'), Just(b'\r'), Just(b'\n'), Just(b'3'), any::<u8>()], 0..200), len in 1..50_usize) {
            prop_assert_eq!(decode(&bytes, len).map(|(data, ..)| data), decode(&bytes, 200).map(|(data, ..)| data));
        }
    }
}
