//! Writes a log to a file while a run goes on.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use thiserror::Error;

/// How often the log is looked at.
const PAUSE: Duration = Duration::from_millis(5);

/// The log could not be written.
#[derive(Debug, Error)]
#[error("cannot write the log `{path}`: {source}")]
pub struct LogError {
    path: PathBuf,
    source: io::Error,
}

/// A thread that writes a log while a run goes on.
#[derive(Debug)]
pub struct LogWriter {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// What a log is made of.
pub trait Lines: Send + 'static {
    /// Writes what has come since the last time, one JSON object per line. Returns how much it was.
    ///
    /// # Errors
    /// Those of the file.
    fn write_new(&mut self, file: &mut dyn Write) -> io::Result<usize>;

    /// Writes what was held back, as nothing comes any more.
    ///
    /// # Errors
    /// Those of the file.
    fn write_last(&mut self, _file: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

impl LogWriter {
    /// Starts writing `lines` to a new file at `path`.
    ///
    /// # Errors
    /// [`LogError`] when there can be no such file, or no thread.
    pub fn start(path: &Path, lines: impl Lines) -> Result<LogWriter, LogError> {
        let wrong = |source| LogError { path: path.to_owned(), source };
        LogWriter::start_to(path, File::create(path).map_err(wrong)?, lines)
    }

    /// Follows `lines` without a file, for what they do besides.
    ///
    /// # Errors
    /// [`LogError`] when there can be no thread.
    pub fn start_without_file(lines: impl Lines) -> Result<LogWriter, LogError> {
        LogWriter::start_to(Path::new("(no file)"), io::sink(), lines)
    }

    fn start_to(
        path: &Path,
        file: impl Write + Send + 'static,
        mut lines: impl Lines,
    ) -> Result<LogWriter, LogError> {
        let wrong = |source| LogError { path: path.to_owned(), source };
        let file = BufWriter::new(file);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let write = move || {
            // The file is open. What it could not give up is found when the run makes sure of it.
            let _ = rheostat_base::privileges::give_up();
            follow(&mut lines, file, &stopped)
        };
        let thread = thread::Builder::new().name("rheo-log".into()).spawn(write).map_err(wrong)?;
        Ok(LogWriter { path: path.to_owned(), stop, thread: Some(thread) })
    }

    /// Writes what is left, once nothing is added any more, and closes the file.
    ///
    /// # Errors
    /// [`LogError`] when a write failed; the file then ends there.
    pub fn close(mut self) -> Result<(), LogError> {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take().map(JoinHandle::join);
        let written =
            thread.unwrap_or(Ok(Ok(()))).unwrap_or_else(|_| Err(io::Error::other("panic")));
        written.map_err(|source| LogError { path: std::mem::take(&mut self.path), source })
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        // When the run failed, nobody asks what became of the log.
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn follow(lines: &mut impl Lines, mut file: impl Write, stop: &AtomicBool) -> io::Result<()> {
    loop {
        // Asked for before the log is emptied, so that nothing noted before the stop is missed. Pairs
        // with the release in `close`.
        let last = stop.load(Ordering::Acquire);
        if lines.write_new(&mut file)? == 0 {
            if last {
                lines.write_last(&mut file)?;
                return file.flush();
            }
            // Whoever follows the file sees what there is.
            file.flush()?;
            thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Countdown(usize);

    impl Lines for Countdown {
        fn write_new(&mut self, file: &mut dyn Write) -> io::Result<usize> {
            if self.0 == 0 {
                return Ok(0);
            }
            writeln!(file, "{}", self.0)?;
            self.0 -= 1;
            Ok(1)
        }

        fn write_last(&mut self, file: &mut dyn Write) -> io::Result<()> {
            writeln!(file, "lift-off")
        }
    }

    #[test]
    fn everything_is_written_before_the_file_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        LogWriter::start(&path, Countdown(3)).unwrap().close().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "3\n2\n1\nlift-off\n");
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named() {
        let error = LogWriter::start(Path::new("/no/such/folder/x"), Countdown(0)).unwrap_err();
        assert!(error.to_string().starts_with("cannot write the log `/no/such/folder/x`"));
    }
}
