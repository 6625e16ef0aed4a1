//! Writes the log of mappings to a file, one JSON object per line.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rheostat_nf::function::nat::{MappingChange, MappingEvent, MappingLog};
use serde::Serialize;
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

/// One line.
#[derive(Serialize)]
struct Line {
    /// Seconds, as packets count time.
    time: f64,
    event: &'static str,
    protocol: u8,
    inner: SocketAddrV4,
    external: SocketAddrV4,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<SocketAddrV4>,
}

impl LogWriter {
    /// Starts writing `log` to a new file at `path`.
    ///
    /// # Errors
    /// [`LogError`] when there can be no such file, or no thread.
    pub fn start(path: &Path, log: MappingLog) -> Result<LogWriter, LogError> {
        let wrong = |source| LogError { path: path.to_owned(), source };
        let file = BufWriter::new(File::create(path).map_err(wrong)?);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let write = move || follow(&log, file, &stopped);
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

fn follow(log: &MappingLog, mut file: impl Write, stop: &AtomicBool) -> io::Result<()> {
    loop {
        // Asked for before the log is emptied, so that nothing noted before the stop is missed. Pairs
        // with the release in `close`.
        let last = stop.load(Ordering::Acquire);
        let mut written = Ok(());
        let events = log.drain(|event| {
            if written.is_ok() {
                written = write(&mut file, &event);
            }
        });
        written?;
        if events == 0 {
            if last {
                return file.flush();
            }
            thread::sleep(PAUSE);
        }
    }
}

fn write(file: &mut impl Write, event: &MappingEvent) -> io::Result<()> {
    let end = |(address, port)| SocketAddrV4::new(address, port);
    let line = Line {
        time: event.time.as_nanos() as f64 / 1e9,
        event: match event.change {
            MappingChange::Created => "created",
            MappingChange::Ended => "ended",
        },
        protocol: event.protocol,
        inner: end(event.inner),
        external: end(event.external),
        remote: event.remote.map(end),
    };
    serde_json::to_writer(&mut *file, &line)?;
    file.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rheostat_base::Time;
    use std::net::Ipv4Addr;

    #[test]
    fn a_line_says_who_had_which_endpoint_and_when() {
        let event = MappingEvent {
            time: Time::from_nanos(1_500_000_000),
            change: MappingChange::Created,
            protocol: 17,
            inner: (Ipv4Addr::new(10, 0, 0, 5), 4_000),
            external: (Ipv4Addr::new(203, 0, 113, 1), 50_000),
            remote: None,
        };
        let mut file = Vec::new();
        write(&mut file, &event).unwrap();
        let expected = "{\"time\":1.5,\"event\":\"created\",\"protocol\":17,\
                        \"inner\":\"10.0.0.5:4000\",\"external\":\"203.0.113.1:50000\"}\n";
        assert_eq!(String::from_utf8(file).unwrap(), expected);
        let remote = Some((Ipv4Addr::new(198, 51, 100, 1), 53));
        let event = MappingEvent { change: MappingChange::Ended, remote, ..event };
        let mut file = Vec::new();
        write(&mut file, &event).unwrap();
        let text = String::from_utf8(file).unwrap();
        assert!(text.contains("\"ended\"") && text.contains("\"remote\":\"198.51.100.1:53\""));
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named() {
        let error =
            LogWriter::start(Path::new("/no/such/folder/x"), MappingLog::new()).unwrap_err();
        assert!(error.to_string().starts_with("cannot write the log `/no/such/folder/x`"));
    }
}
