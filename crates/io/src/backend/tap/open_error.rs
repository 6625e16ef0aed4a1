//! Why a tap interface cannot be had.

use std::io;

use rheostat_kernel::capability::{Capability, Refusal};
use rheostat_steer::RewriteError;
use thiserror::Error;

use crate::backend::bpf::BpfError;

/// Why a tap interface cannot be had.
#[derive(Debug, Error)]
pub enum TapOpenError {
    /// A device without queues is of no use.
    #[error("a device needs at least one queue")]
    NoQueue,
    /// The process may not do this.
    #[error("{0}")]
    Permission(Refusal),
    /// The file by which tap interfaces are made is closed to the process.
    #[error(
        "/dev/net/tun is closed to this user: give it mode 0666, as udev does (`chmod 666 /dev/net/tun`; \
         the kernel still asks for CAP_NET_ADMIN), or run as root"
    )]
    Closed,
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
    /// The placement that the device should begin with does not fit it.
    #[error(transparent)]
    Placement(#[from] RewriteError),
}

impl TapOpenError {
    /// The error of attaching a queue to `interface`.
    pub(super) fn attach(interface: &str, source: io::Error) -> TapOpenError {
        if source.kind() == io::ErrorKind::InvalidInput && source.raw_os_error().is_none() {
            return TapOpenError::Name(interface.to_owned());
        }
        let interface = interface.to_owned();
        match source.raw_os_error() {
            Some(libc::EACCES) => TapOpenError::Closed,
            Some(libc::EPERM) => TapOpenError::Permission(Refusal::new(
                "make tap interfaces",
                &[Capability::NetAdmin],
            )),
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => TapOpenError::NoTun,
            Some(libc::EBUSY | libc::EINVAL | libc::EEXIST) => TapOpenError::Occupied { interface },
            _ => TapOpenError::SetUp { doing: "attach a queue", interface, source },
        }
    }
}
