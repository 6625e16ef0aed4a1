//! A claim to an interface that other processes respect and that ends with the process that has it.
//!
//! | claim | where | binds |
//! |---|---|---|
//! | a lock (flock(2)) on a file in `/run/rheo` | root alone can write there | processes that can open the file; nobody else can make it or hold it |
//! | a Unix socket that listens at an abstract name (unix(7)) | everywhere | all, if its holder is to be believed: any user can take such a name |
//!
//! A holder of the name is believed that is root, has the user of this process (`SO_PEERCRED`), or whose user has a packet socket on
//! the interface, for which it needs CAP_NET_RAW. Where its user cannot be learned, since too many have asked it, any user's packet
//! socket will do. The claims of any other are ignored, so that no local user keeps a run from its
//! interface. Names of sockets belong to the network namespace, as interfaces do, and files are named after the namespace.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use rustix::process::geteuid;

/// Where files lie by which running instances are found.
const FOLDER: &str = "/run/rheo";
/// The sockets of all protocols that look at whole frames, in this network namespace (packet(7)).
const PACKET_SOCKETS: &str = "/proc/thread-self/net/packet";
/// The columns of the interface and of the user there.
const INTERFACE_COLUMN: usize = 4;
const USER_COLUMN: usize = 7;

/// Callers that wait at a holder, which answers none: those beyond do not learn its user.
const CALLERS: i32 = 128;

/// A claim, until it is dropped.
#[derive(Debug)]
pub(crate) struct InterfaceLock {
    _file: Option<File>,
    _socket: Option<OwnedFd>,
}

impl InterfaceLock {
    /// Claims the interface of this number in the namespace of the calling thread.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] when it is claimed already.
    pub(crate) fn claim(index: u32) -> io::Result<InterfaceLock> {
        InterfaceLock::claim_in(Path::new(FOLDER), index)
    }

    fn claim_in(folder: &Path, index: u32) -> io::Result<InterfaceLock> {
        let file = if is_safe(folder) { lock_file(folder, index)? } else { None };
        let name = format!("rheostat-interface-{index}");
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
        let socket = stream()?;
        let socket = match bind(&socket, &address) {
            Ok(()) => {
                listen(&socket, CALLERS)?;
                Some(socket)
            }
            Err(Errno::ADDRINUSE) if !is_believed(&address, index) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(InterfaceLock { _file: file, _socket: socket })
    }
}

/// Whether nobody but root can write to a folder. Root makes the one that is missing.
fn is_safe(folder: &Path) -> bool {
    if geteuid().is_root() {
        // One that cannot be made is not there below.
        let _ = DirBuilder::new().mode(0o755).create(folder);
    }
    let is_roots =
        |found: fs::Metadata| found.is_dir() && found.uid() == 0 && found.mode() & 0o022 == 0;
    fs::symlink_metadata(folder).is_ok_and(is_roots)
}

/// Locks the file of an interface; `None` where this process cannot have it.
fn lock_file(folder: &Path, index: u32) -> io::Result<Option<File>> {
    let namespace = fs::metadata("/proc/thread-self/ns/net")?.ino();
    let path = folder.join(format!("interface-{namespace}-{index}.lock"));
    let mut options = File::options();
    let Ok(file) = options.write(true).create(true).truncate(false).mode(0o600).open(path) else {
        return Ok(None);
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::AddrInUse.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// A socket of which no call waits: a holder might keep its callers waiting.
fn stream() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Whether the process that listens at `address` uses the interface, as far as its user shows.
fn is_believed(address: &SocketAddrUnix, index: u32) -> bool {
    let holder = stream().and_then(|socket| {
        connect(&socket, address)?;
        socket_peercred(&socket)
    });
    match holder.map(|holder| holder.uid) {
        Ok(user) if user.is_root() || user == geteuid() => true,
        Ok(user) => has_packet_socket(index, |found| found == user.as_raw()),
        Err(Errno::AGAIN) => has_packet_socket(index, |_| true),
        Err(_) => false,
    }
}

/// Whether a user for whose id `counts` returns true has a packet socket on the interface.
fn has_packet_socket(index: u32, counts: impl Fn(u32) -> bool) -> bool {
    let sockets = fs::read_to_string(PACKET_SOCKETS).unwrap_or_default();
    sockets.lines().skip(1).any(|line| {
        let column = |place| line.split_whitespace().nth(place)?.parse::<u32>().ok();
        column(INTERFACE_COLUMN) == Some(index) && column(USER_COLUMN).is_some_and(&counts)
    })
}

#[cfg(test)]
mod tests {
    //! Timed: threads, devices.

    use std::os::unix::fs::PermissionsExt;

    use rheostat_testkit::namespace::isolated;
    use rustix::process::Uid;
    use rustix::thread::set_thread_res_uid;

    use super::*;
    use crate::sys::packet_socket::PacketSocket;

    fn user() -> Uid {
        Uid::from_raw(65_534)
    }

    fn kind(claim: io::Result<InterfaceLock>) -> Result<(), io::ErrorKind> {
        claim.map(drop).map_err(|error| error.kind())
    }

    #[test]
    fn an_interface_has_one_claim_at_a_time() {
        // No interface has such a number.
        let index = 0x7fff_0000 + std::process::id() % 0x8000;
        let missing = Path::new("/nonexistent/rheo");
        let claim = InterfaceLock::claim_in(missing, index).unwrap();
        assert!(InterfaceLock::claim_in(missing, index + 1).is_ok());
        let second = InterfaceLock::claim_in(missing, index);
        assert_eq!(kind(second), Err(io::ErrorKind::AddrInUse));
        drop(claim);
        assert!(InterfaceLock::claim_in(missing, index).is_ok());
    }

    #[test]
    fn a_name_taken_by_another_user_keeps_no_run_from_its_interface() {
        let name = "a_name_taken_by_another_user_keeps_no_run_from_its_interface";
        isolated(module_path!(), name, || {
            let folder = tempfile::tempdir().unwrap();
            let loopback = 1;
            // The user of a thread is its own.
            let squatter = std::thread::spawn(move || {
                set_thread_res_uid(user(), user(), user()).unwrap();
                let name = format!("rheostat-interface-{loopback}");
                let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
                let socket = stream().unwrap();
                bind(&socket, &address).unwrap();
                socket
            });
            let socket = squatter.join().unwrap();
            let claim = || InterfaceLock::claim_in(folder.path(), loopback);
            assert_eq!(kind(claim()), Ok(()), "nobody listens");
            let listening = std::thread::spawn(move || {
                set_thread_res_uid(user(), user(), user()).unwrap();
                listen(&socket, 1).unwrap();
                socket
            });
            let socket = listening.join().unwrap();
            let first = claim().unwrap();
            assert_eq!(kind(claim()), Err(io::ErrorKind::AddrInUse), "the file is locked");
            drop(first);
            // The same where any user could hold the file.
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
            assert_eq!(kind(claim()), Ok(()));
            call_all();
            assert_eq!(kind(claim()), Ok(()), "it answers nobody");
            drop(socket);
            let first = claim().unwrap();
            assert_eq!(kind(claim()), Err(io::ErrorKind::AddrInUse));
            // Others have asked the holder as often as it can be asked.
            let socket = PacketSocket::new().unwrap();
            socket.bind(loopback, true).unwrap();
            call_all();
            assert_eq!(kind(claim()), Err(io::ErrorKind::AddrInUse));
            drop(first);
        });
    }

    /// Calls the holder of the claim to interface 1 until no more callers can wait.
    fn call_all() {
        let address = SocketAddrUnix::new_abstract_name(b"rheostat-interface-1").unwrap();
        let outcome = std::iter::repeat_with(|| connect(stream().unwrap(), &address));
        assert_eq!(outcome.take(10_000).find_map(Result::err), Some(Errno::AGAIN));
    }

    #[test]
    fn a_holder_of_another_user_with_a_packet_socket_is_believed() {
        let name = "a_holder_of_another_user_with_a_packet_socket_is_believed";
        isolated(module_path!(), name, || {
            let missing = Path::new("/nonexistent/rheo");
            let held = std::thread::spawn(move || {
                rustix::thread::set_keep_capabilities(true).unwrap();
                let all = rustix::thread::capabilities(None).unwrap();
                set_thread_res_uid(user(), user(), user()).unwrap();
                rustix::thread::set_capabilities(None, all).unwrap();
                let claim = InterfaceLock::claim_in(missing, 1).unwrap();
                let socket = PacketSocket::new().unwrap();
                socket.bind(1, true).unwrap();
                (claim, socket)
            });
            let (claim, socket) = held.join().unwrap();
            let again = || kind(InterfaceLock::claim_in(missing, 1));
            assert_eq!(again(), Err(io::ErrorKind::AddrInUse));
            drop(socket);
            assert_eq!(again(), Ok(()), "it does not use the interface");
            drop(claim);
        });
    }
}
