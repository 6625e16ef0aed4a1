//! Why an interface cannot be used.

use std::io;

use rheostat_kernel::capability::{Capability, Refusal};
use rheostat_steer::RewriteError;
use thiserror::Error;

use crate::backend::bpf::BpfError;

/// Why an interface cannot be used by packet sockets.
#[derive(Debug, Error)]
pub enum PacketOpenError {
    /// There is no such interface.
    #[error("there is no interface `{interface}`: `ip link` lists those there are ({source})")]
    NoInterface {
        /// Its name.
        interface: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// A device without queues is of no use.
    #[error("a device needs at least one queue")]
    NoQueue,
    /// The process may not do this.
    #[error("{0}")]
    Permission(Refusal),
    /// Another process takes packets from the interface.
    #[error(
        "interface `{interface}` is in use by another process of rheostat, or by another device of this \
         one: stop that (`ss --unix --all --processes | grep rheostat-interface-{index}` names it)"
    )]
    InUse {
        /// The interface.
        interface: String,
        /// The kernel's number of it.
        index: u32,
    },
    /// A ring of this size cannot be had.
    #[error("cannot make rings of {slots} packets: choose a smaller `ring` ({source})")]
    Ring {
        /// The packets asked for.
        slots: u32,
        /// What the operating system said.
        source: io::Error,
    },
    /// A socket cannot be set up.
    #[error("cannot {doing}: {source}")]
    Socket {
        /// What cannot be done.
        doing: &'static str,
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

impl PacketOpenError {
    pub(super) fn socket(doing: &'static str, source: io::Error) -> PacketOpenError {
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                PacketOpenError::Permission(Refusal::new(doing, &[Capability::NetRaw]))
            }
            _ => PacketOpenError::Socket { doing, source },
        }
    }
}
