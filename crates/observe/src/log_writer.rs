//! Writes a log to a file while a run goes on.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use rheostat_nf::registry::Lines;
use thiserror::Error;

/// How often the log is looked at.
const PAUSE: Duration = Duration::from_millis(5);
/// Bytes gathered before the operating system is asked to write, while more comes.
const WRITE_BEHIND: usize = 64 * 1024;

/// The log could not be written.
#[derive(Debug, Error)]
pub enum LogError {
    /// There can be no such file, or no thread that writes it.
    #[error("cannot write the log `{}`: {source}", path.display())]
    Start {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file could not be written to its end.
    #[error("the log `{}` is incomplete, {lost} lines are missing: {problem}", path.display())]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// Lines that are not in the file as a whole.
        lost: u64,
        /// What the operating system said.
        problem: String,
    },
}

/// A thread that writes a log while a run goes on.
///
/// When a write fails, the file ends there. What comes later is taken all the same, so that no lane has to wait, and
/// its lines are counted.
#[derive(Debug)]
pub struct LogWriter {
    monitor: LogMonitor,
    stop: Arc<AtomicBool>,
    /// The file that takes the place of the open one; `None` for a log without a file.
    next: Option<Arc<NextFile>>,
    thread: Option<JoinHandle<()>>,
}

/// A file to go on with.
type NextFile = Mutex<Option<File>>;

/// A view of a log that stays valid while it is written, and afterwards.
#[derive(Clone, Debug)]
pub struct LogMonitor(Arc<LogState>);

#[derive(Debug)]
struct LogState {
    path: PathBuf,
    /// Why a write failed, if one did.
    problem: OnceLock<String>,
    lost: AtomicU64,
}

impl LogMonitor {
    fn new(path: &Path) -> LogMonitor {
        let (problem, lost) = Default::default();
        LogMonitor(Arc::new(LogState { path: path.to_owned(), problem, lost }))
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Why the file is incomplete, if it is by now.
    pub fn failure(&self) -> Option<LogError> {
        let problem = self.0.problem.get()?.clone();
        // Relaxed: a count, exact once the writer is closed.
        let lost = self.0.lost.load(Ordering::Relaxed);
        Some(LogError::Incomplete { path: self.0.path.clone(), lost, problem })
    }
}

impl LogWriter {
    /// Starts writing `lines` to a new file at `path`.
    ///
    /// # Errors
    /// [`LogError::Start`] when there can be no such file, or no thread.
    pub fn start(path: &Path, lines: impl Lines) -> Result<LogWriter, LogError> {
        let wrong = |source| LogError::Start { path: path.to_owned(), source };
        LogWriter::start_to(path, File::create(path).map_err(wrong)?, true, lines)
    }

    /// Starts writing `lines` behind what the file at `path` has, which is made if it is not there.
    ///
    /// # Errors
    /// As [`LogWriter::start`].
    pub fn append(path: &Path, lines: impl Lines) -> Result<LogWriter, LogError> {
        let wrong = |source| LogError::Start { path: path.to_owned(), source };
        LogWriter::start_to(path, open_to_append(path).map_err(wrong)?, true, lines)
    }

    /// Opens the file anew, by its name: what is written from now on, within some milliseconds, is behind what the file of that name
    /// has. The one before is closed; whoever renamed it finds it complete. A log without a file has nothing to open.
    ///
    /// # Errors
    /// [`LogError::Start`] when the file cannot be opened; then the one before goes on.
    pub fn reopen(&self) -> Result<(), LogError> {
        let Some(next) = &self.next else { return Ok(()) };
        let path = self.monitor.path();
        let wrong = |source| LogError::Start { path: path.to_owned(), source };
        let file = open_to_append(path).map_err(wrong)?;
        *next.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        Ok(())
    }

    /// Follows `lines` without a file, for what they do besides.
    ///
    /// # Errors
    /// [`LogError::Start`] when there can be no thread.
    pub fn start_without_file(lines: impl Lines) -> Result<LogWriter, LogError> {
        LogWriter::start_to(Path::new("(no file)"), io::sink(), false, lines)
    }

    fn start_to(
        path: &Path,
        file: impl Write + Send + 'static,
        has_name: bool,
        mut lines: impl Lines,
    ) -> Result<LogWriter, LogError> {
        let wrong = |source| LogError::Start { path: path.to_owned(), source };
        let monitor = LogMonitor::new(path);
        let next = has_name.then(Arc::<NextFile>::default);
        let (file, gathered): (Box<dyn Write + Send>, _) = (Box::new(file), Vec::new());
        let mut output = Output { file, next: next.clone(), gathered, state: monitor.0.clone() };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let write = move || {
            // The file is open. What it could not give up is found when the run makes sure of it.
            let _ = rheostat_kernel::privileges::give_up();
            follow(&mut lines, &mut output, &stopped);
        };
        let thread = thread::Builder::new().name("rheo-log".into()).spawn(write).map_err(wrong)?;
        Ok(LogWriter { monitor, stop, next, thread: Some(thread) })
    }

    /// A view of the log.
    pub fn monitor(&self) -> LogMonitor {
        self.monitor.clone()
    }

    /// Writes what is left, once nothing is added any more, and closes the file.
    ///
    /// # Errors
    /// [`LogError::Incomplete`] when a write failed.
    pub fn close(mut self) -> Result<(), LogError> {
        self.end();
        self.monitor.failure().map_or(Ok(()), Err)
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(Err(_panic)) = self.thread.take().map(JoinHandle::join) {
            let _ = self.monitor.0.problem.set("the thread that writes it panicked".to_owned());
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        // A run that failed drops this without `close`: its own error is reported, not the log's.
        self.end();
    }
}

/// A file whose writes go behind what it has, whoever else has written it.
fn open_to_append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// A file, and lines on the way to it.
struct Output {
    file: Box<dyn Write + Send>,
    next: Option<Arc<NextFile>>,
    gathered: Vec<u8>,
    state: Arc<LogState>,
}

impl Output {
    /// Goes on with another file, if there is one.
    fn take_next_file(&mut self) {
        let next = self.next.as_ref();
        let next = next.and_then(|next| next.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(file) = next {
            self.file = Box::new(file);
        }
    }

    /// Writes what is gathered. Lines that are not in the file as a whole then are lost.
    fn write_gathered(&mut self) {
        let mut written = 0;
        while written < self.gathered.len() && self.state.problem.get().is_none() {
            match self.file.write(&self.gathered[written..]) {
                Ok(0) => self.fail("nothing more can be written"),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.fail(error),
            }
        }
        let missing = self.gathered[written..].iter().filter(|byte| **byte == b'\n').count();
        self.state.lost.fetch_add(missing as u64, Ordering::Relaxed);
        self.gathered.clear();
    }

    fn fail(&self, problem: impl ToString) {
        // The first failure is the one that ends the file.
        let _ = self.state.problem.set(problem.to_string());
    }
}

fn follow(lines: &mut impl Lines, output: &mut Output, stop: &AtomicBool) {
    loop {
        // Read before the log is emptied, so that nothing noted before the stop is missed. Pairs
        // with the release in `close`.
        let last = stop.load(Ordering::Acquire);
        // Lines fail only where their file does, and this one is memory.
        let new = lines.write_new(&mut output.gathered).unwrap_or_else(|error| {
            output.fail(error);
            0
        });
        if new > 0 && output.gathered.len() < WRITE_BEHIND {
            continue;
        }
        if new == 0 && last {
            if let Err(error) = lines.write_last(&mut output.gathered) {
                output.fail(error);
            }
            return output.write_gathered();
        }
        // A reader that follows the file sees everything up to now.
        output.write_gathered();
        output.take_next_file();
        if new == 0 {
            thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    //! Timed: threads, sleep.

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

    /// A disk with room for so many bytes.
    struct Disk(usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.0);
            self.0 -= count;
            if count == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(count) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn after_a_full_disk_lines_are_taken_and_counted() {
        // Room for "3" and half of "2".
        let log = LogWriter::start_to(Path::new("full"), Disk(3), true, Countdown(3)).unwrap();
        let monitor = log.monitor();
        let error = log.close().unwrap_err().to_string();
        assert_eq!(error, "the log `full` is incomplete, 3 lines are missing: no storage space");
        assert_eq!(monitor.failure().unwrap().to_string(), error, "it is known afterwards");
    }

    /// Writes a line for each number that is sent.
    struct Numbers(std::sync::mpsc::Receiver<u32>);

    impl Lines for Numbers {
        fn write_new(&mut self, file: &mut dyn Write) -> io::Result<usize> {
            match self.0.try_recv() {
                Ok(number) => writeln!(file, "{number}").map(|()| 1),
                Err(_) => Ok(0),
            }
        }
    }

    #[test]
    fn a_file_that_was_renamed_ends_and_the_next_goes_on_behind_what_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("log"), folder.path().join("log.1"));
        let (send, lines) = std::sync::mpsc::channel();
        let log = LogWriter::start(&path, Numbers(lines)).unwrap();
        send.send(1).unwrap();
        while std::fs::read_to_string(&path).unwrap() != "1\n" {
            thread::sleep(PAUSE);
        }
        std::fs::rename(&path, &old).unwrap();
        std::fs::write(&path, "0\n").unwrap();
        log.reopen().unwrap();
        // The thread has taken the file when nothing waits for it.
        while log.next.as_ref().unwrap().lock().unwrap().is_some() {
            thread::sleep(PAUSE);
        }
        send.send(2).unwrap();
        log.close().unwrap();
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "1\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "0\n2\n");
    }

    #[test]
    fn a_log_without_a_file_has_nothing_to_reopen() {
        let log = LogWriter::start_without_file(Countdown(1)).unwrap();
        log.reopen().unwrap();
        log.close().unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named() {
        let error = LogWriter::start(Path::new("/no/such/folder/x"), Countdown(0)).unwrap_err();
        assert!(error.to_string().starts_with("cannot write the log `/no/such/folder/x`"));
    }
}
