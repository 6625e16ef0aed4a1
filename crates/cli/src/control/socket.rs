//! The socket in the file system: made so that nobody else can ever connect, and removed at the end.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rheostat_base::privileges::Identity;
use thiserror::Error;

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

/// A listening socket that only its owner and root can connect to. Dropping it removes its file.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of our file, so that nobody else's is removed.
    identity: (u64, u64),
}

impl ControlSocket {
    /// Lets another user connect, in place of the one who made it.
    ///
    /// # Errors
    /// [`SocketError::Make`] when the operating system refuses.
    pub(crate) fn give_to(&self, identity: Identity) -> Result<(), SocketError> {
        let (user, group) = (Some(identity.user), Some(identity.group));
        chown(&self.path, user, group)
            .map_err(|source| SocketError::Make { path: self.path.clone(), source })
    }

    /// Listens at `path`. A socket file that nobody listens behind, left by a crash, is replaced. The
    /// folder is made if only it is missing.
    ///
    /// # Errors
    /// [`SocketError`] when another instance listens there, or no socket can be made.
    pub(crate) fn bind(path: &Path) -> Result<ControlSocket, SocketError> {
        match fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => {
                return Err(SocketError::NotASocket(path.to_owned()));
            }
            Ok(_) if UnixStream::connect(path).is_ok() => {
                return Err(SocketError::Live(path.to_owned()));
            }
            _ => {}
        }
        ControlSocket::create(path)
            .map_err(|source| SocketError::Make { path: path.to_owned(), source })
    }

    /// Binds in a folder that nobody else can enter, narrows the mode, and only then moves the socket
    /// to its place: at no moment is there a socket that others may connect to, and the umask, which
    /// all threads share, stays alone.
    fn create(path: &Path) -> io::Result<ControlSocket> {
        // A file may have a longer name than a socket that someone is to connect to.
        SocketAddr::from_pathname(path)?;
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.exists() {
            DirBuilder::new().mode(0o755).create(folder)?;
        }
        let private = folder.join(format!(".rheo-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&private)?;
        let hidden = private.join("s");
        let made = UnixListener::bind(&hidden).and_then(|listener| {
            fs::set_permissions(&hidden, Permissions::from_mode(0o600))?;
            fs::rename(&hidden, path)?;
            let file = fs::symlink_metadata(path)?;
            let identity = (file.dev(), file.ino());
            Ok(ControlSocket { listener, path: path.to_owned(), identity })
        });
        if made.is_err() {
            // What went wrong is told by `made`.
            let _ = fs::remove_file(&hidden);
        }
        fs::remove_dir(&private)?;
        made
    }

    pub(super) fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let ours = |file: fs::Metadata| (file.dev(), file.ino()) == self.identity;
        if fs::symlink_metadata(&self.path).is_ok_and(ours) {
            // Nobody is left to be told that it stays; the next run replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
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
