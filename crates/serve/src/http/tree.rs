//! A directory, out of which no name leads.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat};

/// A directory and what lies beneath it.
#[derive(Debug)]
pub(super) struct Tree(OwnedFd);

/// The version of a file: two that are equal have the same contents, unless the file was modified twice within the time that its
/// system can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    device: u64,
    inode: u64,
    /// Bytes.
    pub(super) len: u64,
    /// Seconds since 1970, and nanoseconds.
    pub(super) modified: (i64, u32),
    changed: (i64, u32),
}

impl Version {
    /// The version of an open file.
    pub(super) fn of(file: impl AsFd) -> io::Result<Version> {
        Ok(Version::from(&rustix::fs::fstat(file)?))
    }
}

impl From<&Stat> for Version {
    fn from(status: &Stat) -> Version {
        Version {
            device: status.st_dev,
            inode: status.st_ino,
            len: status.st_size as u64,
            modified: (status.st_mtime, status.st_mtime_nsec as u32),
            changed: (status.st_ctime, status.st_ctime_nsec as u32),
        }
    }
}

/// What stands for a directory.
const INDEX: &str = "index.html";

impl Tree {
    pub(super) fn open(root: &Path) -> io::Result<Tree> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(Tree(rustix::fs::openat(CWD, root, flags, Mode::empty())?))
    }

    /// The same directory once more.
    pub(super) fn try_clone(&self) -> io::Result<Tree> {
        Ok(Tree(self.0.try_clone()?))
    }

    /// The file of this path, and its version; in place of a directory, its index. `None` for a directory whose name lacks its slash.
    pub(super) fn find(&self, path: &str) -> io::Result<Option<(File, Version)>> {
        let name = match path.strip_suffix('/') {
            Some(directory) => format!("{directory}/{INDEX}"),
            None => path.to_owned(),
        };
        // Without it, opening a pipe would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let file = self.open_at(&name, flags, Mode::empty())?;
        let status = rustix::fs::fstat(&file)?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile => Ok(Some((file.into(), Version::from(&status)))),
            FileType::Directory => Ok(None),
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// Makes a file that is not there, to be written.
    pub(super) fn create(&self, path: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        Ok(self.open_at(path, flags, Mode::from_raw_mode(0o644))?.into())
    }

    /// Gives a file in `directory` another name there; returns whether there was none of that name.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if there was one and the file `must_be_new`.
    pub(super) fn rename(
        &self,
        directory: &str,
        from: &str,
        to: &str,
        must_be_new: bool,
    ) -> io::Result<bool> {
        let directory = self.directory(directory)?;
        let new =
            rustix::fs::renameat_with(&directory, from, &directory, to, RenameFlags::NOREPLACE);
        match new {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::EXIST | rustix::io::Errno::INVAL) if !must_be_new => {
                rustix::fs::renameat(&directory, from, &directory, to)?;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file in `directory`.
    pub(super) fn remove(&self, directory: &str, name: &str) -> io::Result<()> {
        let directory = self.directory(directory)?;
        Ok(rustix::fs::unlinkat(&directory, name, rustix::fs::AtFlags::empty())?)
    }

    fn directory(&self, path: &str) -> io::Result<OwnedFd> {
        self.open_at(path, OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty())
    }

    fn open_at(&self, path: &str, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let beneath = match path.trim_start_matches('/') {
            "" => ".",
            beneath => beneath,
        };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::CLOEXEC;
        match rustix::fs::openat2(&self.0, beneath, flags, mode, resolve) {
            // It leads out of the tree.
            Err(rustix::io::Errno::XDEV | rustix::io::Errno::LOOP) => {
                Err(io::ErrorKind::PermissionDenied.into())
            }
            Err(error) => Err(error.into()),
            Ok(file) => Ok(file),
        }
    }
}
