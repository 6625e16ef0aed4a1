//! What a configuration refers to on the machine that runs it.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

use rheostat_base::CoreId;

/// A machine, as far as a configuration refers to it. The implementation does the I/O; what it does not know is left
/// unchecked.
pub trait Machine {
    /// Whether the kernel has a network interface of this name, in the network namespace of the process.
    fn has_interface(&self, name: &str) -> Option<bool>;

    /// Whether a worker can be pinned to this core.
    fn core(&self, core: CoreId) -> Option<CoreState>;

    /// The cores that workers can be pinned to, written `0-3,6`.
    fn usable_cores(&self) -> String;

    /// Which file a path leads to, whatever links and spelling it uses.
    fn file(&self, path: &Path) -> Option<FileId>;

    /// Why no program could listen for connections there, over the kernel's sockets.
    fn why_not_listen(&self, at: SocketAddr) -> Option<NoListener>;
}

/// Why no program could listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoListener {
    /// Whether the address is the reason, and not the port.
    pub is_address: bool,
    /// The reason and its fix.
    pub reason: String,
}

/// Whether a worker can be pinned to a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreState {
    /// The process may use it.
    Usable,
    /// The machine has it, and the affinity mask of the process has not.
    Masked,
    /// The machine has no such core, or it is offline.
    Absent,
}

/// What a path leads to. Two paths of equal identity are one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileId {
    /// A regular file that is there.
    Inode {
        /// The device of its file system.
        device: u64,
        /// Its number there.
        inode: u64,
    },
    /// A file that is not there yet.
    New {
        /// The device of the folder's file system.
        device: u64,
        /// The folder's number there.
        folder: u64,
        /// The name that it would get.
        name: OsString,
    },
}

/// Any machine: nothing that a configuration refers to is looked at, and files are compared by their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnyMachine;

impl Machine for AnyMachine {
    fn has_interface(&self, _name: &str) -> Option<bool> {
        None
    }

    fn core(&self, _core: CoreId) -> Option<CoreState> {
        None
    }

    fn usable_cores(&self) -> String {
        String::new()
    }

    fn file(&self, _path: &Path) -> Option<FileId> {
        None
    }

    fn why_not_listen(&self, _at: SocketAddr) -> Option<NoListener> {
        None
    }
}
