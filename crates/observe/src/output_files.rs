//! The files that a run writes, and what is missing in them.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheostat_io::{CaptureWriter, WriteError};
use serde::{Deserialize, Serialize};

use crate::log_writer::{LogError, LogMonitor};

/// A file that misses some of what was to be in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncompleteFile {
    /// The file.
    pub file: String,
    /// How many packets or lines are missing; while the run goes on, so far.
    pub lost: u64,
    /// `packets` or `lines`.
    pub unit: Unit,
    /// What the operating system said, or why else something is left out.
    pub error: String,
}

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A capture.
    Packets,
    /// A log.
    Lines,
}

impl fmt::Display for IncompleteFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            Unit::Packets => "packets",
            Unit::Lines => "lines",
        };
        write!(f, "{}: {} {unit} missing: {}", self.file, self.lost, self.error)
    }
}

/// The files that a run writes. Clones see the same files.
#[derive(Clone, Default)]
pub struct OutputFiles {
    captures: Vec<CaptureWriter>,
    logs: Arc<Mutex<Vec<LogMonitor>>>,
}

impl OutputFiles {
    /// Adds captures.
    pub fn add_captures(&mut self, captures: impl IntoIterator<Item = CaptureWriter>) {
        self.captures.extend(captures);
    }

    /// Adds a log.
    pub fn add_log(&self, log: LogMonitor) {
        self.logs().push(log);
    }

    /// Puts these logs in the place of those before. Of those, the ones that miss something stay, one for each file.
    pub fn replace_logs(&self, new: impl IntoIterator<Item = LogMonitor>) {
        let mut logs = self.logs();
        let mut stay: Vec<LogMonitor> = Vec::new();
        for log in logs.drain(..).filter(|log| log.failure().is_some()) {
            if !stay.iter().any(|known| known.path() == log.path()) {
                stay.push(log);
            }
        }
        logs.extend(stay.into_iter().chain(new));
    }

    fn logs(&self) -> MutexGuard<'_, Vec<LogMonitor>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The files in which something is missing by now. While all is well this costs a load per file.
    pub fn incomplete(&self) -> Vec<IncompleteFile> {
        let captures = self.captures.iter().filter_map(CaptureWriter::failure);
        let logs = self.logs();
        let logs = logs.iter().filter_map(LogMonitor::failure);
        captures.map(of_capture).chain(logs.map(of_log)).collect()
    }
}

impl fmt::Debug for OutputFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let logs = self.logs();
        let paths = self.captures.iter().map(CaptureWriter::path);
        f.debug_list().entries(paths.chain(logs.iter().map(LogMonitor::path))).finish()
    }
}

fn of_capture(error: WriteError) -> IncompleteFile {
    let (path, lost, problem) = match error {
        WriteError::Write { path, lost, source } => (path, lost, source.to_string()),
        WriteError::Create { path, source } => (path, 0, source.to_string()),
        WriteError::Extension { path } => (path, 0, "its name states no format".to_owned()),
        WriteError::OtherLink { path, lost } => (
            path,
            lost,
            "of another link type than the first; a .pcapng file takes them".to_owned(),
        ),
    };
    let file = path.display().to_string();
    IncompleteFile { file, lost, unit: Unit::Packets, error: problem }
}

fn of_log(error: LogError) -> IncompleteFile {
    let (path, lost, problem) = match error {
        LogError::Start { path, source } => (path, 0, source.to_string()),
        LogError::Incomplete { path, lost, problem } => (path, lost, problem),
    };
    let file = path.display().to_string();
    IncompleteFile { file, lost, unit: Unit::Lines, error: problem }
}
