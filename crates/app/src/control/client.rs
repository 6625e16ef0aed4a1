//! The end of the control socket that commands use.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rheostat_observe::control::{self, Reply, Request};
use thiserror::Error;

use super::socket::is_listened_at;

/// Where instances have their control sockets by default.
const FOLDER: &str = "/run/rheo";

/// Which running instance is meant.
#[derive(Debug, clap::Args)]
pub(crate) struct Target {
    /// The control socket of the running instance; without it, the only one in /run/rheo.
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) control: Option<PathBuf>,
}

/// Why a running instance did not do what it was asked.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    /// No socket was named and there is none where they usually are.
    #[error(
        "no instance has a control socket in {FOLDER}: name one with --control PATH, the path that \
         the instance was given with --control or in [observe] control"
    )]
    None,
    /// Several could be meant.
    #[error("several instances have control sockets: name one of {0} with --control PATH")]
    Several(String),
    /// All instances that could be meant have ended without removing their sockets.
    #[error("no instance answers at {0}: they have ended without removing their sockets")]
    Stale(String),
    /// No process listens.
    #[error("no instance answers at {}: {source}{}", path.display(), hint(source))]
    Connect { path: PathBuf, source: io::Error },
    /// The conversation broke off.
    #[error("the instance stopped answering: {0}")]
    Broken(io::Error),
    /// The instance went before it had answered.
    #[error("the instance ended before it had answered")]
    Ended,
    /// Not a reply of this version.
    #[error("the instance's answer is not understood ({0}): is it another version of rheo?")]
    Reply(serde_json::Error),
    /// A reply to another request.
    #[error("the instance's answer is none to this request: is it another version of rheo?")]
    Unexpected,
    /// The instance refused.
    #[error("{0}")]
    Refused(String),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; only its owner and root may ask",
        io::ErrorKind::ConnectionRefused => "; it has ended without removing its socket",
        io::ErrorKind::NotFound => "; is it running, and was it given this --control?",
        _ => "",
    }
}

/// A conversation with a running instance.
#[derive(Debug)]
pub(crate) struct ControlClient {
    reader: BufReader<UnixStream>,
}

impl Target {
    /// Connects to the instance.
    ///
    /// # Errors
    /// [`ClientError`] when none is found, or it does not listen.
    pub(crate) fn connect(&self) -> Result<ControlClient, ClientError> {
        let path = match &self.control {
            Some(path) => path.clone(),
            None => only_socket(Path::new(FOLDER))?,
        };
        match UnixStream::connect(&path) {
            Ok(stream) => Ok(ControlClient { reader: BufReader::new(stream) }),
            Err(source) => Err(ClientError::Connect { path, source }),
        }
    }

    /// Sends a request whose answer is one line.
    ///
    /// # Errors
    /// [`ClientError`] when the instance cannot be asked, or refuses.
    pub(crate) fn ask(&self, request: &Request) -> Result<Reply, ClientError> {
        let mut client = self.connect()?;
        client.send(request)?;
        client.receive()?.ok_or(ClientError::Ended)
    }
}

impl ControlClient {
    /// Sends a request.
    ///
    /// # Errors
    /// [`ClientError::Broken`] when the instance has gone.
    pub(crate) fn send(&mut self, request: &Request) -> Result<(), ClientError> {
        let line = control::line(request);
        self.reader.get_mut().write_all(line.as_bytes()).map_err(ClientError::Broken)
    }

    /// Sends bytes that follow a request.
    ///
    /// # Errors
    /// As [`ControlClient::send`].
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.reader.get_mut().write_all(bytes).map_err(ClientError::Broken)
    }

    /// The next reply; `None` when there will be none.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the instance's reason, or why it could not be read.
    pub(crate) fn receive(&mut self) -> Result<Option<Reply>, ClientError> {
        let mut line = String::new();
        if self.reader.read_line(&mut line).map_err(ClientError::Broken)? == 0 {
            return Ok(None);
        }
        match serde_json::from_str(&line).map_err(ClientError::Reply)? {
            Reply::Error { message } => Err(ClientError::Refused(message)),
            reply => Ok(Some(reply)),
        }
    }

    /// Whether more of an answer has come already.
    pub(crate) fn has_more(&self) -> bool {
        !self.reader.buffer().is_empty()
    }

    /// What ends an answer that goes on, from any thread: the instance sends what is left.
    ///
    /// # Errors
    /// [`ClientError::Broken`] when the connection cannot be shared.
    pub(crate) fn enough(&self) -> Result<impl Fn() + Send + use<>, ClientError> {
        let stream = self.reader.get_ref().try_clone().map_err(ClientError::Broken)?;
        Ok(move || {
            // If it is closed already, there is nothing to end.
            let _ = stream.shutdown(Shutdown::Write);
        })
    }
}

/// The only socket in a folder that a process listens behind; the only socket, where none has a listener.
fn only_socket(folder: &Path) -> Result<PathBuf, ClientError> {
    let is_socket =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut sockets: Vec<_> = entries.map(|entry| entry.path()).filter(is_socket).collect();
    sockets.sort();
    let names = |sockets: &[PathBuf]| {
        let names: Vec<_> = sockets.iter().map(|path| path.display().to_string()).collect();
        names.join(", ")
    };
    if sockets.len() > 1 {
        let all = names(&sockets);
        sockets.retain(|path| is_listened_at(path).unwrap_or(false));
        if sockets.is_empty() {
            return Err(ClientError::Stale(all));
        }
    }
    match sockets.as_slice() {
        [] => Err(ClientError::None),
        [only] => Ok(only.clone()),
        several => Err(ClientError::Several(names(several))),
    }
}

#[cfg(test)]
mod tests {
    //! Timed: sockets.

    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_only_socket_of_a_folder_is_found() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(only_socket(folder.path()), Err(ClientError::None)));
        fs::write(folder.path().join("notes"), "").unwrap();
        let first = folder.path().join("a.sock");
        let _a = UnixListener::bind(&first).unwrap();
        assert_eq!(only_socket(folder.path()).unwrap(), first);
        let _b = UnixListener::bind(folder.path().join("b.sock")).unwrap();
        let error = only_socket(folder.path()).unwrap_err().to_string();
        assert!(error.contains("a.sock") && error.contains("b.sock"), "{error}");
    }

    #[test]
    fn a_stale_socket_beside_a_live_one_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let [stale, live, other] =
            ["a.sock", "b.sock", "c.sock"].map(|name| folder.path().join(name));
        drop(UnixListener::bind(&stale).unwrap());
        let listener = UnixListener::bind(&live).unwrap();
        assert_eq!(only_socket(folder.path()).unwrap(), live);
        assert!(stale.exists(), "a client removes nothing");
        drop(UnixListener::bind(&other).unwrap());
        drop(listener);
        let error = only_socket(folder.path()).unwrap_err();
        assert!(matches!(error, ClientError::Stale(_)), "{error}");
    }
}
