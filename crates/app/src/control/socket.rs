//! The socket in the file system: no other user can connect to it at any time, and it is removed at the end.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use rheostat_kernel::privileges::Identity;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use thiserror::Error;

/// How often a path is tried that others replace meanwhile.
const TRIES: usize = 8;

/// Why there can be no control socket.
#[derive(Debug, Error)]
pub(crate) enum SocketError {
    /// A running instance answers there.
    #[error(
        "another instance listens at the control socket {}: stop it with `rheo stop --control {}`, \
         or choose another path with --control", .0.display(), .0.display()
    )]
    Live(PathBuf),
    /// Something else is in the way.
    #[error("{} is no socket and stays as it is: choose another path for the control socket", .0.display())]
    NotASocket(PathBuf),
    /// A socket is in the way that may be in use.
    #[error(
        "cannot find out whether an instance listens at the control socket {}, which stays as it is: {source}; \
         choose another path with --control", path.display()
    )]
    Unknown { path: PathBuf, source: io::Error },
    /// The operating system refuses.
    #[error("cannot make the control socket {}: {source}{}", path.display(), hint(source))]
    Make { path: PathBuf, source: io::Error },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; choose a path in a folder of yours with --control",
        io::ErrorKind::InvalidInput => "; the path of a socket has 107 bytes at most",
        io::ErrorKind::NotFound => "; make the folder first",
        _ => "",
    }
}

/// Whether a process listens behind the socket file at `path`. Never waits, whatever the listener does.
///
/// # Errors
/// When that is not known: there is no file, it must not be used, or is a socket of another kind.
pub(super) fn is_listened_at(path: &Path) -> io::Result<bool> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        // EAGAIN: more wait to be accepted than the listener has room for.
        Ok(()) | Err(Errno::AGAIN) => Ok(true),
        Err(Errno::CONNREFUSED) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Device and inode of a file.
type FileIdentity = (u64, u64);

fn identity_of(file: &Metadata) -> FileIdentity {
    (file.dev(), file.ino())
}

/// A listening socket that only its owner and root can connect to. Dropping it removes its file.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Of our file, so that no other is removed.
    identity: FileIdentity,
}

impl ControlSocket {
    /// Lets another user connect, in place of the one that made it.
    ///
    /// # Errors
    /// [`SocketError::Make`] when the operating system refuses.
    pub(crate) fn give_to(&self, identity: Identity) -> Result<(), SocketError> {
        let (user, group) = (Some(identity.user), Some(identity.group));
        chown(&self.path, user, group)
            .map_err(|source| SocketError::Make { path: self.path.clone(), source })
    }

    /// Listens at `path`. A socket file without a listener, left by a crash, is replaced; one with a listener never is, not
    /// even by instances that start at the same time. The folder is made if only it is missing.
    ///
    /// # Errors
    /// [`SocketError`] when another instance listens there, or no socket can be made.
    pub(crate) fn bind(path: &Path) -> Result<ControlSocket, SocketError> {
        let fails = |source| SocketError::Make { path: path.to_owned(), source };
        for _ in 0..TRIES {
            let stale = stale_at(path)?;
            match ControlSocket::create(path, stale) {
                // Another instance was quicker.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map_err(fails),
            }
        }
        Err(fails(io::ErrorKind::AlreadyExists.into()))
    }

    /// Whether there can be a socket at `path`, as far as can be seen without making it.
    ///
    /// # Errors
    /// As [`ControlSocket::bind`].
    pub(crate) fn check(path: &Path) -> Result<(), SocketError> {
        let fails = |source| SocketError::Make { path: path.to_owned(), source };
        stale_at(path)?;
        SocketAddr::from_pathname(path).map_err(fails)?;
        let folder = folder_of(path);
        // The folder itself is made, if its own is there.
        let folder = if folder.exists() { folder } else { folder_of(folder) };
        access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| fails(error.into()))
    }

    /// Binds in a folder that no other user can enter, narrows the mode, and only then moves the socket
    /// to its place: at no moment is there a socket that others may connect to, and the umask, which
    /// all threads share, stays alone.
    fn create(path: &Path, stale: Option<FileIdentity>) -> io::Result<ControlSocket> {
        // A file may have a longer name than the address of a socket.
        SocketAddr::from_pathname(path)?;
        let folder = folder_of(path);
        if !folder.exists() {
            DirBuilder::new().mode(0o755).create(folder)?;
        }
        let private = private_folder(folder)?;
        let (hidden, old) = (private.join("s"), private.join("old"));
        let made = UnixListener::bind(&hidden).and_then(|listener| {
            fs::set_permissions(&hidden, Permissions::from_mode(0o600))?;
            let identity = identity_of(&fs::symlink_metadata(&hidden)?);
            if let Some(stale) = stale {
                take_away(path, &old, stale)?;
            }
            // Unlike a rename, this replaces nothing.
            fs::hard_link(&hidden, path)?;
            Ok(ControlSocket { listener, path: path.to_owned(), identity })
        });
        // The error is that of `made`. The old file goes last: until then, no file has its inode.
        let _ = fs::remove_file(&hidden);
        let _ = fs::remove_file(&old);
        fs::remove_dir(&private)?;
        made
    }

    pub(super) fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// The stale socket at `path`, if there is one.
fn stale_at(path: &Path) -> Result<Option<FileIdentity>, SocketError> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(None) };
    if !found.file_type().is_socket() {
        return Err(SocketError::NotASocket(path.to_owned()));
    }
    match is_listened_at(path) {
        Ok(true) => Err(SocketError::Live(path.to_owned())),
        Ok(false) => Ok(Some(identity_of(&found))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(SocketError::Unknown { path: path.to_owned(), source }),
    }
}

/// A new folder inside `folder` that only we can enter. One that a crash left behind, perhaps of a process
/// with our number, stays as it is.
fn private_folder(folder: &Path) -> io::Result<PathBuf> {
    let process = std::process::id();
    let mut made = Err(io::ErrorKind::AlreadyExists.into());
    for number in 0..TRIES {
        let private = folder.join(format!(".rheo-{process}-{number}"));
        made = DirBuilder::new().mode(0o700).create(&private).map(|()| private);
        if !matches!(&made, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            break;
        }
    }
    made
}

/// Moves the file at `path` to `old` if it is the stale one, and leaves it otherwise.
fn take_away(path: &Path, old: &Path, stale: FileIdentity) -> io::Result<()> {
    match fs::rename(path, old) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        moved => moved?,
    }
    if identity_of(&fs::symlink_metadata(old)?) != stale {
        // That of an instance which started meanwhile.
        fs::hard_link(old, path)?;
    }
    Ok(())
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let is_ours = |file: Metadata| identity_of(&file) == self.identity;
        if fs::symlink_metadata(&self.path).is_ok_and(is_ours) {
            // A failure cannot be reported any more; the next run replaces the file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    //! Timed: sockets.

    use super::*;

    #[test]
    fn only_the_owner_may_connect_and_the_file_goes_with_the_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/x.sock");
        let socket = ControlSocket::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let entries: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(entries.len(), 1, "nothing is left but the socket: {entries:?}");
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "a crash leaves the file behind");
        let live = ControlSocket::bind(&path).unwrap();
        let error = ControlSocket::bind(&path).unwrap_err();
        assert!(matches!(error, SocketError::Live(_)), "{error}");
        assert!(error.to_string().contains("rheo stop --control"), "{error}");
        drop(live);
        assert!(!path.exists());
    }

    #[test]
    fn of_instances_that_find_a_stale_socket_at_the_same_time_one_gets_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sock");
        drop(UnixListener::bind(&path).unwrap());
        // Both have found it stale before either replaces it.
        let stale = stale_at(&path).unwrap();
        assert!(stale.is_some());
        let first = ControlSocket::create(&path, stale).unwrap();
        let second = ControlSocket::create(&path, stale).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AlreadyExists);
        assert!(is_listened_at(&path).unwrap(), "the first one's socket is where it was");
        assert!(matches!(ControlSocket::bind(&path), Err(SocketError::Live(_))));
        let entries: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(entries.len(), 1, "nothing is left but the socket: {entries:?}");
        drop(first);
        assert!(!path.exists());
    }

    #[test]
    fn an_instance_that_is_stopped_and_asked_by_many_is_alive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sock");
        let listener = UnixListener::bind(&path).unwrap();
        // Connects without accepting, until no more may wait.
        let mut waiting = Vec::new();
        let connect = || {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
            super::connect(&socket, &SocketAddrUnix::new(&path).unwrap()).map(|()| socket)
        };
        while let Ok(socket) = connect() {
            waiting.push(socket);
        }
        assert!(matches!(ControlSocket::bind(&path), Err(SocketError::Live(_))));
        drop(listener);
    }

    #[test]
    fn a_socket_of_another_kind_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let _log = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        let error = ControlSocket::bind(&path).unwrap_err();
        assert!(matches!(error, SocketError::Unknown { .. }), "{error}");
        assert!(path.exists());
    }

    #[test]
    fn what_a_crash_left_in_the_folder_is_not_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join(format!(".rheo-{}-0", std::process::id()));
        fs::create_dir(&left).unwrap();
        ControlSocket::bind(&folder.path().join("x.sock")).unwrap();
        assert!(left.exists());
    }

    #[test]
    fn what_is_not_ours_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        fs::write(&path, "mine").unwrap();
        assert!(matches!(ControlSocket::bind(&path), Err(SocketError::NotASocket(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        // A socket that took the place of ours.
        let path = folder.path().join("x.sock");
        let socket = ControlSocket::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let other = UnixListener::bind(&path).unwrap();
        drop(socket);
        assert!(path.exists());
        drop(other);
    }

    #[test]
    fn a_path_that_no_socket_can_have_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x".repeat(120));
        let error = ControlSocket::bind(&path).unwrap_err().to_string();
        assert!(error.ends_with("has 107 bytes at most"), "{error}");
        let error = ControlSocket::bind(&folder.path().join("no/such/folder/x")).unwrap_err();
        assert!(error.to_string().ends_with("make the folder first"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    }
}
