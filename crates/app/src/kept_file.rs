//! Lists that are kept in files of the user's cache folder: what was measured on a machine and is not measured again at each start.

use std::path::{Path, PathBuf};
use std::{fs, io};

use rheostat_kernel::Topology;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// The folder in `$XDG_CACHE_HOME`, or in `.cache` of `$HOME`.
const FOLDER: &str = "rheostat";

/// A file with a list as JSON.
#[derive(Debug)]
pub struct KeptFile {
    path: Option<PathBuf>,
}

/// Why a list was not kept.
#[derive(Debug, Error)]
pub enum KeepError {
    /// No folder is this user's.
    #[error("neither HOME nor XDG_CACHE_HOME is set")]
    NoFolder,
    /// The file system refuses.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl KeptFile {
    /// The file of this name in this user's cache folder.
    pub fn named(name: &str) -> KeptFile {
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let cache = folder("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| folder("HOME").map(|home| Path::new(&home).join(".cache")));
        KeptFile::at(cache.map(|cache| cache.join(FOLDER).join(name)))
    }

    /// The file at this path; `None` is where there is no cache folder.
    pub fn at(path: Option<PathBuf>) -> KeptFile {
        KeptFile { path }
    }

    /// Where the file is.
    pub fn place(&self) -> String {
        self.path.as_ref().map_or_else(|| "no file".to_owned(), |path| path.display().to_string())
    }

    /// The list. A file that cannot be read, or is none of such entries, has an empty one.
    pub fn read<T: DeserializeOwned>(&self) -> Vec<T> {
        let text = self.path.as_ref().and_then(|path| fs::read_to_string(path).ok());
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Writes the file, in whole or not at all.
    ///
    /// # Errors
    /// [`KeepError`] when there is no cache folder, or it cannot be written.
    pub fn write<T: Serialize>(&self, entries: &[T]) -> Result<(), KeepError> {
        let path = self.path.as_ref().ok_or(KeepError::NoFolder)?;
        let write = || -> io::Result<()> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let fresh = path.with_extension(format!("json.{}", std::process::id()));
            fs::write(&fresh, serde_json::to_string_pretty(entries)?)?;
            fs::rename(&fresh, path)
        };
        write().map_err(|source| KeepError::Write { path: path.clone(), source })
    }
}

/// The key of this machine in kept lists: its identifier, its processor and its cache.
pub fn machine_key() -> String {
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
    fn a_list_is_kept_in_a_new_folder_and_nonsense_is_an_empty_list() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("list.json");
        let file = KeptFile::at(Some(path.clone()));
        assert!(file.read::<u32>().is_empty());
        file.write(&[7, 9]).unwrap();
        assert_eq!(file.read::<u32>(), [7, 9]);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no other file stays");
        fs::write(&path, "{").unwrap();
        assert!(file.read::<u32>().is_empty());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let file = KeptFile::at(Some(PathBuf::from("/proc/none/list.json")));
        assert!(file.write(&[1]).unwrap_err().to_string().contains("/proc/none/list.json"));
        assert!(KeptFile::at(None).write(&[1]).unwrap_err().to_string().contains("XDG_CACHE_HOME"));
        assert_eq!(KeptFile::at(None).place(), "no file");
    }
}
