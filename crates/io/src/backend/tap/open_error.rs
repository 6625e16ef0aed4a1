//! Why a tap interface cannot be had.

use std::io;

use thiserror::Error;

use crate::backend::bpf::BpfError;

/// Why a tap interface cannot be had.
#[derive(Debug, Error)]
pub enum TapOpenError {
    /// A device without queues is of no use.
    #[error("a device needs at least one queue")]
    NoQueue,
    /// The process may not do this.
    #[error(
        "this process may not make tap interfaces: run it as root, or give it the capabilities \
         CAP_NET_ADMIN and CAP_BPF"
    )]
    Permission,
    /// The kernel has no tap interfaces.
    #[error("there is no /dev/net/tun: load the module with `modprobe tun`")]
    NoTun,
    /// Such a name is impossible.
    #[error("`{0}` cannot be the name of an interface: 1 to 15 bytes are possible")]
    Name(String),
    /// There is an interface of this name that cannot be used.
    #[error(
        "interface `{interface}` exists and is in use, or no tap with several queues and a virtio \
         header: choose another name, or remove it with `ip link del {interface}`"
    )]
    Occupied {
        /// Its name.
        interface: String,
    },
    /// The interface cannot be set up.
    #[error("cannot {doing} of interface `{interface}`: {source}")]
    SetUp {
        /// What cannot be done.
        doing: &'static str,
        /// Its name.
        interface: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The programs cannot be brought into the kernel.
    #[error(transparent)]
    Program(#[from] BpfError),
}

impl TapOpenError {
    /// The error of attaching a queue to `interface`.
    pub(super) fn attach(interface: &str, source: io::Error) -> TapOpenError {
        if source.kind() == io::ErrorKind::InvalidInput && source.raw_os_error().is_none() {
            return TapOpenError::Name(interface.to_owned());
        }
        let interface = interface.to_owned();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => TapOpenError::Permission,
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => TapOpenError::NoTun,
            Some(libc::EBUSY | libc::EINVAL | libc::EEXIST) => TapOpenError::Occupied { interface },
            _ => TapOpenError::SetUp { doing: "attach a queue", interface, source },
        }
    }
}
