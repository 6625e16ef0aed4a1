//! Files of rows: lines of JSON behind a header that says how they were made.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;

use super::Header;

/// Why rows cannot be kept.
#[derive(Debug, Error)]
#[error("{}: {source}", path.display())]
pub struct RecordError {
    /// The file.
    pub path: PathBuf,
    /// Why the file system refuses.
    pub source: io::Error,
}

/// Adds rows to a file as they come, so that what was measured until an interruption is kept.
#[derive(Debug)]
pub struct RowRecorder {
    path: PathBuf,
    file: File,
    /// What the first row is written behind: a line of JSON.
    header: Option<String>,
}

impl RowRecorder {
    /// Opens a file, or makes it; what is in it stays. `header` is written behind it with the first row.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn append(path: &Path, header: &Header) -> Result<RowRecorder, RecordError> {
        let opened = OpenOptions::new().append(true).create(true).open(path);
        RowRecorder::of(path, opened, header)
    }

    /// A new file of this name in `folder`, which is made if there is none.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn create(
        folder: &Path,
        name: &str,
        header: &impl Serialize,
    ) -> Result<RowRecorder, RecordError> {
        let path = folder.join(name);
        fs::create_dir_all(folder).map_err(|source| RecordError { path: path.clone(), source })?;
        RowRecorder::of(&path, File::create(&path), header)
    }

    fn of(
        path: &Path,
        opened: io::Result<File>,
        header: &impl Serialize,
    ) -> Result<RowRecorder, RecordError> {
        let failed = |source| RecordError { path: path.to_owned(), source };
        let header = serde_json::to_string(header).map_err(|error| failed(error.into()))?;
        let file = opened.map_err(failed)?;
        Ok(RowRecorder { path: path.to_owned(), file, header: Some(header) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a row.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn add(&mut self, row: &impl Serialize) -> Result<(), RecordError> {
        let failed = |source| RecordError { path: self.path.clone(), source };
        let row = serde_json::to_string(row).map_err(|error| failed(error.into()))?;
        let header = self.header.take().map_or_else(String::new, |header| header + "\n");
        let text = header + &row + "\n";
        self.file.write_all(text.as_bytes()).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    #[test]
    fn rows_are_added_behind_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        let header = |command: &str| Header {
            command: command.into(),
            commit: "0123456789ab".into(),
            profile: "dist".into(),
            machine: Machine::this(),
            started: "2026-11-26T20:30:00Z".into(),
        };
        for (command, row) in [("rheo a", [("n", 1)]), ("rheo b", [("n", 2)])] {
            let mut recorder = RowRecorder::append(&path, &header(command)).unwrap();
            recorder.add(&row.into_iter().collect::<std::collections::HashMap<_, _>>()).unwrap();
        }
        drop(RowRecorder::append(&path, &header("rheo of no row")).unwrap());
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert_eq!([&lines[0]["command"], &lines[2]["command"]], ["rheo a", "rheo b"]);
        assert_eq!([&lines[1]["n"], &lines[3]["n"]], [1, 2]);
        let error = RowRecorder::append(folder.path(), &header("rheo c")).unwrap_err();
        assert!(error.to_string().contains(folder.path().to_str().unwrap()), "{error}");
    }
}
