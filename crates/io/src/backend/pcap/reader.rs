//! Reads captures of both formats, record by record, from anything that can be read.

use std::io::Read;

use super::framing::Framing;
use super::legacy::{self, Legacy};
use super::ng::{self, Section};
use super::record::{Record, RecordBuf};
use super::{FormatError, ReadError};

/// Reads a capture from a stream. Memory is bounded by the longest record, whatever the file claims.
pub struct CaptureReader<R> {
    framing: Framing<R>,
    format: Format,
    ended: bool,
}

enum Format {
    Legacy(Legacy),
    Ng(Section),
}

impl<R: Read> CaptureReader<R> {
    /// Reads the header of the file and finds out its format.
    ///
    /// # Errors
    /// [`FormatError`] when this is not the beginning of a capture we can read.
    pub fn new(input: R) -> Result<CaptureReader<R>, FormatError> {
        let mut framing = Framing::new(input);
        let format = match framing.peek()? {
            [] => return Err(FormatError::Empty),
            magic if magic == ng::SECTION_HEADER.to_be_bytes() => Format::Ng(Section::default()),
            &[a, b, c, d] if legacy::is_magic([a, b, c, d]) => {
                Format::Legacy(Legacy::read(&mut framing)?)
            }
            &[a, b, c, d] => return Err(FormatError::NotACapture { found: [a, b, c, d] }),
            short => return Err(FormatError::ShortHeader { length: short.len() }),
        };
        Ok(CaptureReader { framing, format, ended: false })
    }

    /// The next packet, or `None` at the end of the capture.
    ///
    /// # Errors
    /// [`ReadError`]; except after [`ReadError::UnsupportedLink`] the next call reports that the capture has
    /// ended.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        if self.ended {
            return Ok(None);
        }
        let result = match &mut self.format {
            Format::Legacy(legacy) => legacy.next(&mut self.framing),
            Format::Ng(section) => section.next(&mut self.framing),
        };
        self.ended = !matches!(result, Ok(Some(_)) | Err(ReadError::UnsupportedLink { .. }));
        result
    }

    /// Bytes of the file used up by the records so far.
    pub fn consumed(&self) -> u64 {
        self.framing.consumed()
    }
}

/// Reads a whole capture from memory: its packets, and what stopped the reading if it was not the end.
///
/// # Errors
/// [`FormatError`] when the bytes are not the beginning of a capture.
pub fn read_all(bytes: &[u8]) -> Result<(Vec<RecordBuf>, Option<ReadError>), FormatError> {
    let mut reader = CaptureReader::new(bytes)?;
    let mut records = Vec::new();
    loop {
        match reader.next_record() {
            Ok(Some(record)) => records.push(record.into()),
            Ok(None) => return Ok((records, None)),
            Err(ReadError::UnsupportedLink { .. }) => {}
            Err(error) => return Ok((records, Some(error))),
        }
    }
}
