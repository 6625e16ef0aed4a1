//! Takes a stream apart into records of known length, without trusting the length: memory grows only
//! as bytes really come.

use std::io::{self, BufReader, Read};

use super::ReadError;

/// Bytes asked of the operating system at once.
const READ_AHEAD: usize = 256 * 1024;

/// The bytes of one record at a time, and where in the stream it began.
pub(super) struct Framing<R> {
    input: BufReader<R>,
    record: Vec<u8>,
    /// Where the record in `record` begins.
    offset: u64,
    /// Whether what is in `record` belongs to the next record.
    peeked: bool,
}

impl<R: Read> Framing<R> {
    pub(super) fn new(input: R) -> Framing<R> {
        Framing {
            input: BufReader::with_capacity(READ_AHEAD, input),
            record: Vec::new(),
            offset: 0,
            peeked: false,
        }
    }

    /// The first four bytes of the stream, or all when it has fewer, without using them up.
    pub(super) fn peek(&mut self) -> Result<&[u8], io::Error> {
        self.input.by_ref().take(4).read_to_end(&mut self.record)?;
        self.peeked = true;
        Ok(&self.record)
    }

    /// Drops the last record and reads the first `count` bytes of the next. `false` when the stream
    /// ends before the first of them.
    pub(super) fn begin(&mut self, count: usize) -> Result<bool, ReadError> {
        if !std::mem::take(&mut self.peeked) {
            self.offset += self.record.len() as u64;
            self.record.clear();
        }
        self.fill(count)?;
        match self.record.len() {
            0 => Ok(false),
            length if length < count => Err(ReadError::Truncated { offset: self.offset }),
            _ => Ok(true),
        }
    }

    /// Reads on until the record has `count` bytes.
    pub(super) fn extend(&mut self, count: usize) -> Result<(), ReadError> {
        self.fill(count)?;
        if self.record.len() < count {
            return Err(ReadError::Truncated { offset: self.offset });
        }
        Ok(())
    }

    /// The record as far as it was read.
    pub(super) fn record(&self) -> &[u8] {
        &self.record
    }

    /// Where the record begins.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes of the stream used up.
    pub(super) fn consumed(&self) -> u64 {
        self.offset + self.record.len() as u64
    }

    /// The error of a record whose contents are wrong.
    pub(super) fn corrupt(&self, what: &'static str) -> ReadError {
        ReadError::Corrupt { offset: self.offset, what }
    }

    fn fill(&mut self, count: usize) -> Result<(), ReadError> {
        let missing = count.saturating_sub(self.record.len()) as u64;
        // `read_to_end` enlarges the vector as bytes come, so that a length of gigabytes in a file of
        // a hundred bytes allocates a hundred bytes.
        let read = self.input.by_ref().take(missing).read_to_end(&mut self.record);
        let offset = self.consumed();
        read.map(drop).map_err(|source: io::Error| ReadError::Io { offset, source })
    }
}
