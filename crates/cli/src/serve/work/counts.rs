//! Counts of operations that are kept, per machine, in a file of the user's cache folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rheostat_base::Topology;
use rheostat_serve::work::WorkKind;
use rheostat_serve::work::calibration::Calibration;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::BUILD;

/// The file, in `$XDG_CACHE_HOME`, or in `.cache` of `$HOME`.
const FILE: &str = "rheostat/work.json";

/// The counts in the file.
#[derive(Debug)]
pub(super) struct KeptCounts {
    path: Option<PathBuf>,
    machine: String,
    entries: Vec<Entry>,
}

/// A count, and what it is of: other machines and other builds have others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    machine: String,
    profile: String,
    work: String,
    buffer: u64,
    target_ns: u64,
    operations: u64,
    measured_ns: f64,
    spread: f64,
}

/// Why counts could not be kept.
#[derive(Debug, Error)]
pub(super) enum KeepError {
    #[error("counts of operations are not kept: neither HOME nor XDG_CACHE_HOME is set")]
    NoFolder,
    #[error("counts of operations are not kept in {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl KeptCounts {
    /// Reads this user's file. One that cannot be read, or makes no sense, has no counts.
    pub(super) fn open() -> KeptCounts {
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let cache = folder("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| folder("HOME").map(|home| Path::new(&home).join(".cache")));
        KeptCounts::at(cache.map(|cache| cache.join(FILE)), machine())
    }

    fn at(path: Option<PathBuf>, machine: String) -> KeptCounts {
        let text = path.as_ref().and_then(|path| fs::read_to_string(path).ok());
        let entries = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        KeptCounts { path, machine, entries }
    }

    /// Where the file is.
    pub(super) fn place(&self) -> String {
        self.path.as_ref().map_or_else(|| "no file".to_owned(), |path| path.display().to_string())
    }

    /// The count of this machine and build.
    pub(super) fn get(&self, work: WorkKind, buffer: u64, target: u64) -> Option<Calibration> {
        let entry = self.entries.iter().find(|entry| self.is_of(entry, work, buffer, target))?;
        (entry.operations > 0).then_some(Calibration {
            target_ns: entry.target_ns,
            operations: entry.operations,
            measured_ns: entry.measured_ns,
            spread: entry.spread,
        })
    }

    /// Takes counts in place of older ones.
    pub(super) fn put(&mut self, work: WorkKind, buffer: u64, found: &[Calibration]) {
        for calibration in found {
            let mut entries = std::mem::take(&mut self.entries);
            entries.retain(|entry| !self.is_of(entry, work, buffer, calibration.target_ns));
            entries.push(Entry {
                machine: self.machine.clone(),
                profile: BUILD.profile.to_owned(),
                work: work.to_string(),
                buffer,
                target_ns: calibration.target_ns,
                operations: calibration.operations,
                measured_ns: calibration.measured_ns,
                spread: calibration.spread,
            });
            self.entries = entries;
        }
    }

    /// Writes the file, in whole or not at all.
    pub(super) fn save(&self) -> Result<(), KeepError> {
        let path = self.path.as_ref().ok_or(KeepError::NoFolder)?;
        let write = || -> io::Result<()> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let fresh = path.with_extension(format!("json.{}", std::process::id()));
            fs::write(&fresh, serde_json::to_string_pretty(&self.entries)?)?;
            fs::rename(&fresh, path)
        };
        write().map_err(|source| KeepError::Write { path: path.clone(), source })
    }

    fn is_of(&self, entry: &Entry, work: WorkKind, buffer: u64, target: u64) -> bool {
        (entry.machine.as_str(), entry.profile.as_str()) == (self.machine.as_str(), BUILD.profile)
            && entry.work == work.to_string()
            && (entry.buffer, entry.target_ns) == (buffer, target)
    }
}

/// What tells this machine from others: its name to itself, its processor and its cache.
fn machine() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let id: String = read("/etc/machine-id").trim().chars().take(8).collect();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("processor of unknown model", |(_, model)| model.trim());
    let cache = Topology::of_this_machine().last_level_cache().unwrap_or(0);
    format!("{id} {model}, cache of {cache} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_per_machine_work_and_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("work.json");
        let open = |machine: &str| KeptCounts::at(Some(path.clone()), machine.to_owned());
        let count = |target_ns, operations| Calibration {
            target_ns,
            operations,
            measured_ns: target_ns as f64,
            spread: 0.01,
        };
        let mut here = open("here");
        assert_eq!(here.get(WorkKind::Roots, 0, 1_000), None);
        here.put(WorkKind::Roots, 0, &[count(1_000, 200), count(100_000, 20_000)]);
        here.put(WorkKind::Roots, 0, &[count(1_000, 248)]);
        here.save().unwrap();
        let again = open("here");
        assert_eq!(again.get(WorkKind::Roots, 0, 1_000), Some(count(1_000, 248)));
        assert_eq!(again.get(WorkKind::Roots, 0, 100_000), Some(count(100_000, 20_000)));
        assert_eq!(again.get(WorkKind::Chase, 0, 1_000), None);
        assert_eq!(again.get(WorkKind::Roots, 64, 1_000), None);
        assert_eq!(open("elsewhere").get(WorkKind::Roots, 0, 1_000), None);
        // A file that makes no sense is written anew.
        fs::write(&path, "{").unwrap();
        assert_eq!(open("here").get(WorkKind::Roots, 0, 1_000), None);
        again.save().unwrap();
        assert!(open("here").get(WorkKind::Roots, 0, 1_000).is_some());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let kept = KeptCounts::at(Some(PathBuf::from("/proc/none/work.json")), String::new());
        assert!(kept.save().unwrap_err().to_string().contains("/proc/none/work.json"));
        assert!(KeptCounts::at(None, String::new()).save().is_err());
    }
}
