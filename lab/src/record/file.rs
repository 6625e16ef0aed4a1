//! Files of results: a preface, and then a line per run.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{FileHeader, RecordedRow, RecordedRun, rows};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RecordLine {
    #[serde(rename = "preface")]
    FileHeader(Box<FileHeader>),
    Run(Box<RecordedRun>),
}

/// Writes results as they come, so that what was measured until an interruption is kept.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: File,
}

/// A file of results.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// What it begins with.
    pub file_header: FileHeader,
    /// Its runs, in the order they were made.
    pub runs: Vec<RecordedRun>,
}

/// Why results cannot be written or read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The file system refuses.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is not what a file of results has there.
    #[error("{}, line {line}: {problem}; is it a file that `rheo bench` or `rheo sim` wrote?", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line's number.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

impl Recorder {
    /// A new file in `folder`, which is made if there is none, named after the scenario and the time; it
    /// begins with `preface`.
    ///
    /// # Errors
    /// [`RecordError::Io`].
    pub fn create(folder: &Path, file_header: &FileHeader) -> Result<Recorder, RecordError> {
        let kind = if file_header.simulated { "sim" } else { "bench" };
        let time = file_header.started.replace([':', '-'], "");
        let path = folder.join(format!("{kind}-{}-{time}.jsonl", file_header.scenario));
        let failed = |source| RecordError::Io { path: path.clone(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        let file = File::create(&path).map_err(failed)?;
        let mut recorder = Recorder { path, file };
        recorder.write(&RecordLine::FileHeader(Box::new(file_header.clone())))?;
        Ok(recorder)
    }

    /// Adds a run.
    ///
    /// # Errors
    /// [`RecordError::Io`].
    pub fn add(&mut self, run: &RecordedRun) -> Result<(), RecordError> {
        self.write(&RecordLine::Run(Box::new(run.clone())))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write(&mut self, line: &RecordLine) -> Result<(), RecordError> {
        let mut text = serde_json::to_string(line).expect("results are plain data");
        text.push('\n');
        self.file
            .write_all(text.as_bytes())
            .map_err(|source| RecordError::Io { path: self.path.clone(), source })
    }
}

/// Reads a file of results. Of one that was not written to its end, what is there.
///
/// # Errors
/// [`RecordError`] when it cannot be read, or is something else.
pub fn read(path: &Path) -> Result<Results, RecordError> {
    let failed = |source| RecordError::Io { path: path.to_owned(), source };
    let text = fs::read_to_string(path).map_err(failed)?;
    // A run that was interrupted while it wrote has left a line without an end.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let (mut file_header, mut runs) = (None, Vec::new());
    for (number, line) in (1..).zip(whole.lines()) {
        let wrong =
            |problem: String| RecordError::Line { path: path.to_owned(), line: number, problem };
        match serde_json::from_str(line).map_err(|error| wrong(error.to_string()))? {
            RecordLine::FileHeader(first) if number == 1 => file_header = Some(*first),
            RecordLine::Run(run) if number > 1 => runs.push(*run),
            _ => return Err(wrong("one header comes first, and then runs".into())),
        }
    }
    match file_header {
        Some(file_header) => Ok(Results { file_header, runs }),
        None => {
            let problem = "the file is empty".to_owned();
            Err(RecordError::Line { path: path.to_owned(), line: 1, problem })
        }
    }
}

impl Results {
    /// What they come to.
    pub fn rows(&self) -> Vec<RecordedRow> {
        rows(&self.runs, self.file_header.noise.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rheostat_measure::machine::Machine;

    fn file_header() -> FileHeader {
        FileHeader {
            command: "rheo bench balance".into(),
            commit: "0123456789ab".into(),
            profile: "dist".into(),
            machine: Machine::this(),
            started: "2026-11-21T20:30:00Z".into(),
            scenario: "balance".into(),
            title: "t".into(),
            question: "q?".into(),
            text: String::new(),
            noise: None,
            costs: None,
            simulated: false,
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::create(&folder.path().join("new"), &file_header()).unwrap();
        let run = RecordedRun {
            policy: "rss".into(),
            latency_us: vec![(0.5, 1.25)],
            ..RecordedRun::default()
        };
        recorder.add(&run).unwrap();
        assert!(recorder.path().ends_with("bench-balance-20261121T203000Z.jsonl"));
        let results = read(recorder.path()).unwrap();
        assert_eq!(results, Results { file_header: file_header(), runs: vec![run] });

        let torn = fs::read_to_string(recorder.path()).unwrap() + "{\"run\":{\"scen";
        fs::write(recorder.path(), torn).unwrap();
        assert_eq!(read(recorder.path()).unwrap(), results, "what was interrupted is left out");
    }

    #[test]
    fn what_is_no_file_of_results_is_refused_with_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        let line = serde_json::to_string(&RecordLine::FileHeader(Box::new(file_header()))).unwrap();
        for (text, place) in [
            (String::new(), "line 1"),
            ("{\"chain\":\"nat\"}\n".into(), "line 1"),
            (format!("{line}\n{line}\n"), "line 2"),
            (format!("{line}\n{{\"run\":{{}}}}\n"), "line 2"),
        ] {
            fs::write(&path, text).unwrap();
            let message = read(&path).unwrap_err().to_string();
            assert!(message.contains(place) && message.contains("rows.jsonl"), "{message}");
        }
    }
}
