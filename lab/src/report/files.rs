//! Which files of results there are.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rheostat_observe::profile::ScalingProfile;
use thiserror::Error;

use super::profiles;
use super::rows::{self, RowFile};
use crate::record::{RecordError, RequestRow, Results, read};

/// What was found under some files and folders.
#[derive(Debug, Default)]
pub struct ResultFile {
    /// Files of results with what is in them, sorted by scenario, measured before simulated, older first.
    pub results: Vec<(PathBuf, Results)>,
    /// Files of profiles with the profiles in them.
    pub profiles: Vec<(PathBuf, ScalingProfile)>,
    /// Files of rows, or of tables as they were printed.
    pub rows: Vec<RowFile>,
    /// Files in folders that cannot be read, or are of no kind that is known, with what is wrong.
    pub unread: Vec<(PathBuf, String)>,
}

/// Why there is nothing to report.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A file that was requested is none of results.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A file or a folder cannot be read, or not be written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nothing was found.
    #[error(
        "there are no results in {}: `rheo bench balance` and `rheo sim balance` write some, to \
         `results/` or to where --results says; of what `rheo profile --json` prints, keep the line",
        list(places)
    )]
    Nothing {
        /// Where was looked.
        places: Vec<PathBuf>,
    },
}

fn list(places: &[PathBuf]) -> String {
    places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Reads all results in these files and folders, and the folders within them.
///
/// In a folder, files that end in `.jsonl` or `.txt` are results; those that end in `.md` or `.html` are about results
/// and are left alone; everything else, and what cannot be read, is in [`ResultFile::unread`]. A file that is named
/// itself must be one of results.
///
/// # Errors
/// [`ReportError`] when a file that is named cannot be read, or when there are no results at all.
pub fn find(places: &[PathBuf]) -> Result<ResultFile, ReportError> {
    let mut found = ResultFile::default();
    for place in places {
        if place.is_dir() {
            look_into(place, &mut found)?;
        } else {
            look_at(place, &mut found)?;
        }
    }
    let is_empty = found.results.is_empty() && found.profiles.is_empty() && found.rows.is_empty();
    if is_empty && found.unread.is_empty() {
        return Err(ReportError::Nothing { places: places.to_vec() });
    }
    let key = |results: &Results| {
        let file_header = &results.file_header;
        (file_header.scenario.clone(), file_header.simulated, file_header.started.clone())
    };
    found.results.sort_by_key(|(_, results)| key(results));
    Ok(found)
}

/// The results in a file, or the newest in a folder.
///
/// # Errors
/// As [`find`].
pub fn one(place: &Path) -> Result<(PathBuf, Results), ReportError> {
    let found = find(&[place.to_owned()])?;
    let newest = found
        .results
        .into_iter()
        .max_by(|(_, a), (_, b)| a.file_header.started.cmp(&b.file_header.started));
    newest.ok_or_else(|| ReportError::Nothing { places: vec![place.to_owned()] })
}

/// The rows about requests in a file, or in all files of a folder; none where there are runs of scenarios.
///
/// # Errors
/// As [`find`].
pub fn requests(place: &Path) -> Result<Vec<RequestRow>, ReportError> {
    let found = find(&[place.to_owned()])?;
    if !found.results.is_empty() {
        return Ok(Vec::new());
    }
    Ok(found.rows.iter().flat_map(RowFile::requests).collect())
}

/// Reads a file of results, or of profiles.
fn look_at(path: &Path, found: &mut ResultFile) -> Result<(), RecordError> {
    if let Some(profiles) = profiles::read(path) {
        found.profiles.extend(profiles.into_iter().map(|profile| (path.to_owned(), profile)));
        return Ok(());
    }
    match read(path) {
        Ok(results) => found.results.push((path.to_owned(), results)),
        // Whether it is a broken file of runs, or one of rows, its first line states.
        Err(_) if !begins_with_a_preface(path) => found.rows.push(rows::read(path)?),
        Err(error) => return Err(error),
    }
    Ok(())
}

fn begins_with_a_preface(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.trim_start().starts_with("{\"preface\""))
}

fn look_into(folder: &Path, found: &mut ResultFile) -> Result<(), ReportError> {
    let failed = |source| ReportError::Io { path: folder.to_owned(), source };
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // Links are not followed into folders: they might lead in a circle.
        entries.push((entry.path(), entry.file_type().map_err(failed)?.is_dir()));
    }
    entries.sort();
    for (path, is_folder) in entries {
        if is_folder {
            look_into(&path, found)?;
            continue;
        }
        match path.extension().and_then(OsStr::to_str) {
            Some("md" | "html") => {}
            Some("jsonl" | "txt") => match look_at(&path, found) {
                Ok(()) => {}
                Err(RecordError::Line { line, problem, .. }) => {
                    found.unread.push((path, format!("line {line}: {problem}")));
                }
                Err(RecordError::Io { source, .. }) => {
                    found.unread.push((path, source.to_string()));
                }
            },
            _ => found.unread.push((path, "results end in .jsonl or .txt".to_owned())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use crate::record::Recorder;

    fn record(folder: &Path, name: &str, started: &str) -> PathBuf {
        let mut results = sample(name);
        started.clone_into(&mut results.file_header.started);
        let mut recorder = Recorder::create(folder, &results.file_header).unwrap();
        recorder.add(&results.runs[0]).unwrap();
        recorder.path().to_owned()
    }

    #[test]
    fn folders_are_searched_and_every_file_is_read_or_named() {
        let folder = tempfile::tempdir().unwrap();
        let old = record(&folder.path().join("a/b"), "balance", "2026-11-20T10:00:00Z");
        let new = record(folder.path(), "balance", "2026-11-21T10:00:00Z");
        fs::write(folder.path().join("rows.jsonl"), "{\"chain\":\"nat\"}\n").unwrap();
        fs::write(folder.path().join("table.txt"), "chain ns\n").unwrap();
        fs::write(folder.path().join("README.md"), "# Results\n").unwrap();
        fs::write(folder.path().join("broken.jsonl"), "{\"preface\":1}\n").unwrap();
        fs::write(folder.path().join("core"), "").unwrap();
        let found = find(&[folder.path().to_owned()]).unwrap();
        let paths: Vec<_> = found.results.iter().map(|(path, _)| path).collect();
        assert_eq!(paths, [&old, &new]);
        let rows: Vec<_> = found.rows.iter().filter_map(|file| file.path.file_name()).collect();
        assert_eq!(rows, ["rows.jsonl", "table.txt"]);
        let unread: Vec<_> = found.unread.iter().filter_map(|(path, _)| path.file_name()).collect();
        assert_eq!(unread, ["broken.jsonl", "core"]);
        assert!(found.unread[0].1.starts_with("line 1"), "{:?}", found.unread);
        assert_eq!(one(folder.path()).unwrap().0, new);
    }

    #[test]
    fn what_is_asked_for_and_not_there_is_an_error_that_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let message = |place: PathBuf| find(&[place]).unwrap_err().to_string();
        let path = folder.path().join("rows.jsonl");
        assert!(message(path.clone()).contains("rows.jsonl: No such file"));
        fs::write(&path, "{}\n").unwrap();
        assert!(message(path.clone()).contains("line 1"));
        fs::remove_file(path).unwrap();
        assert!(message(folder.path().to_owned()).contains("rheo bench balance"));
    }
}
