//! Which files of results there are.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rheostat_observe::profile::ScalingProfile;
use thiserror::Error;

use super::profiles;
use crate::record::{RecordError, Results, read};

/// What was found under some files and folders.
#[derive(Debug, Default)]
pub struct Found {
    /// Files of results with what is in them, sorted by scenario, measured before simulated, older first.
    pub results: Vec<(PathBuf, Results)>,
    /// Files of profiles with the profiles in them.
    pub profiles: Vec<(PathBuf, ScalingProfile)>,
    /// Files in folders that look alike and are something else, with what is wrong.
    pub skipped: Vec<(PathBuf, String)>,
}

/// Why there is nothing to report.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A file that was asked for is none of results.
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
/// In a folder, files that end in `.jsonl` are looked at; those without results are skipped. A file that is
/// named itself must have some.
///
/// # Errors
/// [`ReportError`] when a file that is named cannot be read, or when there are no results at all.
pub fn find(places: &[PathBuf]) -> Result<Found, ReportError> {
    let mut found = Found::default();
    for place in places {
        if place.is_dir() {
            look_into(place, &mut found)?;
        } else {
            look_at(place, &mut found)?;
        }
    }
    if found.results.is_empty() && found.profiles.is_empty() {
        return Err(ReportError::Nothing { places: places.to_vec() });
    }
    let key = |results: &Results| {
        let preface = &results.preface;
        (preface.scenario.clone(), preface.simulated, preface.started.clone())
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
        .max_by(|(_, a), (_, b)| a.preface.started.cmp(&b.preface.started));
    newest.ok_or_else(|| ReportError::Nothing { places: vec![place.to_owned()] })
}

/// Reads a file of results, or of profiles.
fn look_at(path: &Path, found: &mut Found) -> Result<(), RecordError> {
    if let Some(profiles) = profiles::read(path) {
        found.profiles.extend(profiles.into_iter().map(|profile| (path.to_owned(), profile)));
        return Ok(());
    }
    found.results.push((path.to_owned(), read(path)?));
    Ok(())
}

fn look_into(folder: &Path, found: &mut Found) -> Result<(), ReportError> {
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
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            match look_at(&path, found) {
                Ok(()) => {}
                Err(RecordError::Line { line, problem, .. }) => {
                    found.skipped.push((path, format!("line {line}: {problem}")));
                }
                Err(RecordError::Io { source, .. }) => {
                    found.skipped.push((path, source.to_string()));
                }
            }
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
        started.clone_into(&mut results.preface.started);
        let mut recorder = Recorder::create(folder, &results.preface).unwrap();
        recorder.add(&results.runs[0]).unwrap();
        recorder.path().to_owned()
    }

    #[test]
    fn folders_are_searched_and_what_is_no_result_is_skipped_and_told() {
        let folder = tempfile::tempdir().unwrap();
        let old = record(&folder.path().join("a/b"), "balance", "2026-11-20T10:00:00Z");
        let new = record(folder.path(), "balance", "2026-11-21T10:00:00Z");
        fs::write(folder.path().join("rows.jsonl"), "{\"chain\":\"nat\"}\n").unwrap();
        fs::write(folder.path().join("README.md"), "# Results\n").unwrap();
        let found = find(&[folder.path().to_owned()]).unwrap();
        let paths: Vec<_> = found.results.iter().map(|(path, _)| path).collect();
        assert_eq!(paths, [&old, &new]);
        assert_eq!(found.skipped.len(), 1, "{:?}", found.skipped);
        assert!(
            found.skipped[0].0.ends_with("rows.jsonl") && found.skipped[0].1.starts_with("line 1")
        );
        assert_eq!(one(folder.path()).unwrap().0, new);
    }

    #[test]
    fn what_is_asked_for_and_not_there_is_an_error_that_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let message = |place: PathBuf| find(&[place]).unwrap_err().to_string();
        let path = folder.path().join("rows.jsonl");
        assert!(message(path.clone()).contains("rows.jsonl: No such file"));
        fs::write(&path, "{}\n").unwrap();
        assert!(message(path).contains("line 1"));
        assert!(message(folder.path().to_owned()).contains("rheo bench balance"));
    }
}
