//! A capture that is played more than once.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rheostat_io::{CaptureSource, CaptureStatus, OpenError, Source};

use super::{Recording, Reel};

/// Captures up to this size are held in memory; longer ones are read anew each time.
const HELD: u64 = 256 << 20;

/// A capture to be replayed. Its file stays open, so that it cannot go away while it is played.
#[derive(Debug)]
pub struct CaptureReel {
    contents: Contents,
    /// What was found when it was last read.
    status: Mutex<Arc<CaptureStatus>>,
}

#[derive(Debug)]
enum Contents {
    Held(Recording),
    File { file: Arc<File>, name: String, size: u64 },
}

impl CaptureReel {
    /// Opens a capture.
    ///
    /// # Errors
    /// As [`CaptureSource::open`].
    pub fn open(path: &Path) -> Result<CaptureReel, OpenError> {
        CaptureReel::holding(path, HELD)
    }

    fn holding(path: &Path, held: u64) -> Result<CaptureReel, OpenError> {
        let mut source = CaptureSource::open(path)?;
        let status = source.status();
        let file_error = |source| OpenError::File { path: path.to_owned(), source };
        let metadata = std::fs::metadata(path).map_err(file_error)?;
        // A pipe can be read once, however long it is.
        let contents = if metadata.is_file() && metadata.len() > held {
            let file = Arc::new(File::open(path).map_err(file_error)?);
            Contents::File { file, name: path.display().to_string(), size: metadata.len() }
        } else {
            Contents::Held(Recording::of(&mut source))
        };
        Ok(CaptureReel { contents, status: Mutex::new(status) })
    }

    /// What was wrong with the first few records that could not be read, the last time the capture was.
    pub fn warnings(&self) -> Vec<String> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).warnings()
    }
}

impl Reel for CaptureReel {
    fn play(&self) -> Box<dyn Source> {
        match &self.contents {
            Contents::Held(recording) => recording.play(),
            Contents::File { file, name, size } => {
                let beginning = FromBeginning { file: file.clone(), at: 0 };
                match CaptureSource::new(name, beginning, Some(*size)) {
                    Ok(source) => {
                        *self.status.lock().unwrap_or_else(PoisonError::into_inner) =
                            source.status();
                        Box::new(source)
                    }
                    // It was a capture when it was opened, and has been overwritten since.
                    Err(_) => Recording::default().play(),
                }
            }
        }
    }
}

/// A file read from its beginning, independently of other readers.
struct FromBeginning {
    file: Arc<File>,
    at: u64,
}

impl Read for FromBeginning {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
