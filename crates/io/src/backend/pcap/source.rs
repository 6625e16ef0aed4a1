//! A capture as a source of arrivals.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::{Arrival, Source};

use super::reader::CaptureReader;
use super::record::{Record, RecordBuf};
use super::{FormatError, ReadError};
use crate::OpenError;
use crate::lock::lock;

/// Warnings kept; a capture may have as many bad records as packets.
const MAX_WARNINGS: usize = 8;

/// Yields the packets of a capture, as a stream: nothing but the current packet is in memory.
///
/// A record that cannot be read is counted and described in the [`CaptureStatus`]. A cut or corrupt
/// record ends the capture; what came before it is delivered.
pub struct CaptureSource<R> {
    reader: CaptureReader<R>,
    /// The first packet, read when the capture was opened to see that it can be read.
    first: Option<RecordBuf>,
    status: Arc<CaptureStatus>,
}

/// How far a capture has been read, and what was wrong with it. Shared with the source.
#[derive(Debug)]
pub struct CaptureStatus {
    name: String,
    size: Option<u64>,
    consumed: AtomicU64,
    malformed: AtomicU64,
    warnings: Mutex<Vec<String>>,
}

impl CaptureSource<File> {
    /// Opens a file and reads up to its first packet.
    ///
    /// # Errors
    /// [`OpenError::File`] when it cannot be opened, [`OpenError::Format`] when it is not a capture
    /// we can read.
    pub fn open(path: &Path) -> Result<CaptureSource<File>, OpenError> {
        let file_error = |source| OpenError::File { path: path.to_owned(), source };
        let file = File::open(path).map_err(file_error)?;
        let metadata = file.metadata().map_err(file_error)?;
        // A pipe has no length to be measured against.
        let size = metadata.is_file().then_some(metadata.len());
        CaptureSource::new(&path.display().to_string(), file, size)
            .map_err(|source| OpenError::Format { path: path.to_owned(), source })
    }
}

impl<R: Read> CaptureSource<R> {
    /// Reads a capture from a stream of `size` bytes, if that is known, up to its first packet.
    /// Warnings call it `name`.
    ///
    /// # Errors
    /// [`FormatError`] when it is not a capture we can read, or when its first packet has a link type
    /// we do not know.
    pub fn new(name: &str, input: R, size: Option<u64>) -> Result<CaptureSource<R>, FormatError> {
        let mut reader = CaptureReader::new(input)?;
        let status = Arc::new(CaptureStatus::new(name, size));
        let first = match reader.next_record() {
            Ok(first) => first.map(RecordBuf::from),
            Err(ReadError::UnsupportedLink { number, .. }) => {
                return Err(FormatError::UnsupportedLink { number });
            }
            Err(error) => {
                status.record(&error);
                None
            }
        };
        Ok(CaptureSource { reader, first, status })
    }

    /// A view of the capture that stays valid while a device reads it.
    pub fn status(&self) -> Arc<CaptureStatus> {
        self.status.clone()
    }
}

impl<R: Read + Send> Source for CaptureSource<R> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        frame.clear();
        if let Some(RecordBuf { time, link, wire_len, bytes }) = self.first.take() {
            frame.extend_from_slice(&bytes);
            return Some(Arrival { time, len: bytes.len(), wire_len, link });
        }
        let arrival = loop {
            match self.reader.next_record() {
                Ok(Some(Record { time, link, wire_len, bytes })) => {
                    frame.extend_from_slice(bytes);
                    break Some(Arrival { time, len: bytes.len(), wire_len, link });
                }
                Ok(None) => break None,
                // The reader goes on behind a packet it only does not know, and reports that the capture has
                // ended behind anything worse.
                Err(error) => self.status.record(&error),
            }
        };
        // Relaxed: a figure for a progress bar.
        self.status.consumed.store(self.reader.consumed(), Ordering::Relaxed);
        arrival
    }

    fn progress(&self) -> Option<f64> {
        self.status.progress()
    }
}

impl CaptureStatus {
    pub(super) fn new(name: &str, size: Option<u64>) -> CaptureStatus {
        CaptureStatus {
            name: name.to_owned(),
            size,
            consumed: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            warnings: Mutex::default(),
        }
    }

    /// Records that could not be read. One that ends the capture counts as one, whatever lies behind.
    pub fn malformed(&self) -> u64 {
        self.malformed.load(Ordering::Relaxed)
    }

    /// What was wrong with the first few of them, naming the capture.
    pub fn warnings(&self) -> Vec<String> {
        lock(&self.warnings).clone()
    }

    /// The share of the file that was read, where its size is known.
    pub fn progress(&self) -> Option<f64> {
        let size = self.size.filter(|size| *size > 0)?;
        Some((self.consumed.load(Ordering::Relaxed) as f64 / size as f64).min(1.0))
    }

    pub(super) fn record(&self, error: &ReadError) {
        // Relaxed: only the source writes, and an exact figure is read once it has ended.
        self.malformed.fetch_add(1, Ordering::Relaxed);
        let mut warnings = lock(&self.warnings);
        if warnings.len() < MAX_WARNINGS {
            warnings.push(format!("{}: {error}", self.name));
        }
    }
}
