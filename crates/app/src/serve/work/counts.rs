//! Counts of operations that are kept, per machine, in a file of the user's cache folder.

use rheostat_serve::work::WorkKind;
use rheostat_serve::work::calibration::Calibration;
use serde::{Deserialize, Serialize};

use crate::BUILD;
use crate::kept_file::{KeepError, KeptFile, machine_key};

const FILE: &str = "work.json";

/// The counts in the file.
#[derive(Debug)]
pub(super) struct KeptCounts {
    file: KeptFile,
    machine: String,
    entries: Vec<WorkEntry>,
}

/// A count, and what it is of: other machines and other builds have others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct WorkEntry {
    machine: String,
    profile: String,
    work: String,
    buffer: u64,
    target_ns: u64,
    operations: u64,
    measured_ns: f64,
    spread: f64,
}

impl KeptCounts {
    /// Reads this user's file. One that cannot be read, or makes no sense, has no counts.
    pub(super) fn open() -> KeptCounts {
        KeptCounts::at(KeptFile::named(FILE), machine_key())
    }

    fn at(file: KeptFile, machine: String) -> KeptCounts {
        KeptCounts { entries: file.read(), file, machine }
    }

    /// Where the file is.
    pub(super) fn place(&self) -> String {
        self.file.place()
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
            entries.push(WorkEntry {
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
        self.file.write(&self.entries)
    }

    fn is_of(&self, entry: &WorkEntry, work: WorkKind, buffer: u64, target: u64) -> bool {
        (entry.machine.as_str(), entry.profile.as_str()) == (self.machine.as_str(), BUILD.profile)
            && entry.work == work.to_string()
            && (entry.buffer, entry.target_ns) == (buffer, target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_per_machine_work_and_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("work.json");
        let open =
            |machine: &str| KeptCounts::at(KeptFile::at(Some(path.clone())), machine.to_owned());
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
        std::fs::write(&path, "{").unwrap();
        assert_eq!(open("here").get(WorkKind::Roots, 0, 1_000), None);
        again.save().unwrap();
        assert!(open("here").get(WorkKind::Roots, 0, 1_000).is_some());
    }
}
