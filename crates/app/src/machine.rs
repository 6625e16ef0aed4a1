//! The machine that this process runs on, as far as configurations refer to it.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rheostat_base::CoreId;
use rheostat_control::config::workers::CoreList;
use rheostat_control::{Config, CoreState, FileId, Machine, NoListener};
use rheostat_kernel::CoreSet;
use rheostat_kernel::InterfaceLink;
use rheostat_observe::control::FileInUse;
use rheostat_serve::host::{Host, HostError};

/// Symbolic links that are followed to a file that is not there yet: as many as the kernel follows.
const LINKS: usize = 40;

/// This machine.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThisMachine;

impl Machine for ThisMachine {
    fn has_interface(&self, name: &str) -> Option<bool> {
        match InterfaceLink::of(name) {
            Ok(_) => Some(true),
            Err(error) if error.raw_os_error() == Some(NO_DEVICE) => Some(false),
            Err(_) => None,
        }
    }

    fn core(&self, core: CoreId) -> Option<CoreState> {
        let usable = CoreSet::available().ok()?.cores().contains(&core);
        let online: Option<CoreList> =
            fs::read_to_string("/sys/devices/system/cpu/online").ok()?.trim().parse().ok();
        Some(match online.is_some_and(|online| online.cores().contains(&core)) {
            _ if usable => CoreState::Usable,
            true => CoreState::Masked,
            false => CoreState::Absent,
        })
    }

    fn usable_cores(&self) -> String {
        let cores = CoreSet::available().map(|set| set.cores().to_vec()).unwrap_or_default();
        let names: Vec<_> = cores.iter().map(|core| core.0.to_string()).collect();
        // Distinct numbers, so that they can be read as a list and written in ranges.
        names
            .join(",")
            .parse()
            .map_or_else(|_| "none".to_owned(), |list: CoreList| list.to_string())
    }

    fn file(&self, path: &Path) -> Option<FileId> {
        file_id(path)
    }

    fn why_not_listen(&self, at: SocketAddr) -> Option<NoListener> {
        let error = Host::check(at).err()?;
        let is_address = matches!(error, HostError::NoSuchAddress(_));
        Some(NoListener { is_address, reason: error.to_string() })
    }
}

/// This machine, where a run goes on: its cores, interfaces and listeners are taken, and stay.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunningMachine;

impl Machine for RunningMachine {
    fn has_interface(&self, _name: &str) -> Option<bool> {
        None
    }

    fn core(&self, _core: CoreId) -> Option<CoreState> {
        None
    }

    fn usable_cores(&self) -> String {
        ThisMachine.usable_cores()
    }

    fn file(&self, path: &Path) -> Option<FileId> {
        file_id(path)
    }

    fn why_not_listen(&self, _at: SocketAddr) -> Option<NoListener> {
        None
    }
}

/// The error of the kernel for an interface that is not there (ENODEV).
const NO_DEVICE: i32 = 19;

/// Which regular file a path leads to, or would make; `None` for what is no regular file, and where that is not
/// known.
pub(crate) fn file_id(path: &Path) -> Option<FileId> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match fs::metadata(&path) {
            Ok(found) if found.is_file() => {
                return Some(FileId::Inode { device: found.dev(), inode: found.ino() });
            }
            Ok(_) => return None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => return None,
        }
        // A link that leads nowhere is followed by the call that makes the file.
        match fs::read_link(&path) {
            Ok(target) => path = folder_of(&path).join(target),
            Err(_) => break,
        }
    }
    let folder = fs::metadata(folder_of(&path)).ok()?;
    let name = path.file_name()?.to_owned();
    Some(FileId::New { device: folder.dev(), folder: folder.ino(), name })
}

/// Whether two paths lead to one regular file.
pub(crate) fn is_same_file(a: &Path, b: &Path) -> bool {
    file_id(a).is_some_and(|id| file_id(b) == Some(id))
}

/// The files that a run of `config` reads or writes, each with what it is to the run.
pub(crate) fn named_files(config: &Config) -> Vec<(String, PathBuf)> {
    let mut files = Vec::new();
    for device in &config.devices {
        let role = |what| format!("the {what} of device `{}`", device.name);
        files.extend(device.input().map(|path| (role("input"), path.to_owned())));
        files.extend(device.output().map(|path| (role("output"), path.to_owned())));
    }
    for function in &config.chain {
        let role = format!("the log of function `{}`", function.name());
        files.extend(function.log().map(|path| (role, path.to_owned())));
    }
    files
}

/// Those that are regular files by now.
pub(crate) fn in_use(files: &[(String, PathBuf)]) -> Vec<FileInUse> {
    let file = |(role, path): &(String, PathBuf)| match file_id(path)? {
        FileId::Inode { device, inode } => Some(FileInUse { role: role.clone(), device, inode }),
        FileId::New { .. } => None,
    };
    files.iter().filter_map(file).collect()
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_the_same_by_every_link_and_spelling() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a"), "x").unwrap();
        fs::write(at("b"), "x").unwrap();
        fs::create_dir(at("sub")).unwrap();
        symlink(at("a"), at("soft")).unwrap();
        fs::hard_link(at("a"), at("hard")).unwrap();
        symlink(folder.path(), at("folder")).unwrap();
        for same in ["a", "soft", "hard", "sub/../a", "./a", "folder/a"] {
            assert!(is_same_file(&at("a"), &at(same)), "{same}");
        }
        assert!(!is_same_file(&at("a"), &at("b")));
        // Files that are not there yet.
        symlink("new", at("dangling")).unwrap();
        assert!(is_same_file(&at("new"), &at("sub/../new")));
        assert!(is_same_file(&at("new"), &at("dangling")));
        assert!(!is_same_file(&at("new"), &at("other")));
        // Any number of outputs may go to a device.
        assert!(!is_same_file(Path::new("/dev/null"), Path::new("/dev/null")));
        symlink("loop", at("loop")).unwrap();
        assert_eq!(file_id(&at("loop")), None);
    }
}
