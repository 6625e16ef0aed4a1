//! A body in chunks (RFC 9112, section 7.1), read as it comes.

use httparse::Status;

use crate::protocol::{Progress, Reply};

/// Bytes of the line of a chunk or of a trailer at most.
const LONGEST_LINE: usize = 16 << 10;

/// How far a reply in chunks has been read. What precedes the next line is not looked at again, so that reading takes time in
/// proportion to the lines, in however many pieces the reply comes.
#[derive(Clone, Debug)]
pub(super) struct ChunkedBody {
    /// What the head stated.
    reply: Reply,
    /// Where the next line begins.
    at: usize,
    /// No end of that line is before here.
    searched: usize,
    /// Whether the last chunk has been read.
    in_trailers: bool,
    /// Bytes in which ends of lines were searched.
    #[cfg(test)]
    looked_at: usize,
}

impl ChunkedBody {
    /// The body of a reply whose head, with interim replies before it, has `head` bytes.
    pub(super) fn behind(head: usize, reply: Reply) -> ChunkedBody {
        ChunkedBody {
            reply,
            at: head,
            searched: head,
            in_trailers: false,
            #[cfg(test)]
            looked_at: 0,
        }
    }

    /// Goes on in `bytes`, which begin with the reply.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Progress {
        loop {
            let line = match self.line(bytes) {
                Ok(line) => line,
                Err(progress) => return progress,
            };
            let behind = self.at + line.len();
            if self.in_trailers {
                self.go_to(behind);
                if line == b"\r\n" {
                    return Progress::Whole(behind, self.reply);
                }
                continue;
            }
            match httparse::parse_chunk_size(line) {
                Ok(Status::Complete((_, 0))) => {
                    self.in_trailers = true;
                    self.go_to(behind);
                }
                Ok(Status::Complete((_, size))) => {
                    let size = usize::try_from(size).unwrap_or(usize::MAX);
                    let end = behind.saturating_add(size).saturating_add(2);
                    match bytes.get(end - 2..end) {
                        // The line is read once more: it is short.
                        None => return Progress::Need(end),
                        Some(b"\r\n") => self.go_to(end),
                        Some(_) => return NO_LENGTH,
                    }
                }
                Ok(Status::Partial) | Err(_) => return NO_LENGTH,
            }
        }
    }

    /// The next line, with its end.
    fn line<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Progress> {
        let rest = bytes.get(self.searched..).unwrap_or_default();
        let found = rest.windows(2).position(|pair| pair == b"\r\n");
        #[cfg(test)]
        {
            self.looked_at += found.map_or(rest.len(), |at| at + 2);
        }
        // Without an end, the last byte may be the first of one.
        self.searched = match found {
            Some(found) => self.searched + found,
            None => self.searched.max(bytes.len().saturating_sub(1)),
        };
        if self.searched - self.at > LONGEST_LINE {
            return Err(Progress::Garbage("the line of a chunk is too long"));
        }
        match found {
            Some(_) => Ok(&bytes[self.at..self.searched + 2]),
            None => Err(Progress::Need(bytes.len().max(self.at) + 1)),
        }
    }

    fn go_to(&mut self, place: usize) {
        (self.at, self.searched) = (place, place);
    }
}

const NO_LENGTH: Progress = Progress::Garbage("a chunk has no length");

#[cfg(test)]
mod tests {
    use super::*;

    /// The reply in pieces of `piece` bytes, each given when as many bytes are there as were needed. Returns how many were looked at.
    fn read(bytes: &[u8], piece: usize) -> usize {
        let mut body = ChunkedBody::behind(0, Reply::default());
        let (mut have, mut needed) = (0, 0);
        loop {
            have = (have + piece).min(bytes.len());
            if have < needed {
                continue;
            }
            match body.advance(&bytes[..have]) {
                Progress::Need(more) => {
                    assert!(more > have && have < bytes.len(), "{more} after {have}");
                    needed = more;
                }
                progress => {
                    assert_eq!(progress, Progress::Whole(bytes.len(), Reply::default()));
                    return body.looked_at;
                }
            }
        }
    }

    #[test]
    fn what_is_looked_at_grows_with_the_lines_alone() {
        let text = |chunks: usize, len: usize| {
            let chunk = format!("{len:x};a=b\r\n{}\r\n", "x".repeat(len));
            (chunk.repeat(chunks) + "0\r\nTrailer: value\r\n\r\n").into_bytes()
        };
        let lines = |chunks: usize, len: usize| text(chunks, len).len() - chunks * (len + 2);
        for piece in [1, 7, 1_000, usize::MAX / 2] {
            for (chunks, len) in [(1_000, 10), (2_000, 10), (1_000, 3_000)] {
                let looked_at = read(&text(chunks, len), piece);
                // A line is searched from the last byte on in each further piece, and once more behind its data.
                let most = if piece == 1 { 3 } else { 2 } * lines(chunks, len);
                assert!(looked_at <= most, "{piece}, {chunks} of {len}: {looked_at} of {most}");
            }
        }
    }

    #[test]
    fn a_line_without_an_end_is_garbage_before_it_fills_memory() {
        let mut body = ChunkedBody::behind(0, Reply::default());
        let line = vec![b'1'; 2 * LONGEST_LINE];
        assert_eq!(body.advance(&line[..100]), Progress::Need(101));
        assert_eq!(body.advance(&line), Progress::Garbage("the line of a chunk is too long"));
    }
}
