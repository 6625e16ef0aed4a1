//! Why programs cannot be brought into the kernel.

use std::error::Error;
use std::io;

use thiserror::Error;

use crate::filter::FilterError;

/// Why a program cannot be loaded, or not attached.
#[derive(Debug, Error)]
pub enum BpfError {
    /// The process may not do this.
    #[error(
        "this process may not {doing}: run it as root, or give it the capabilities CAP_BPF, \
         CAP_NET_ADMIN and CAP_NET_RAW"
    )]
    Permission {
        /// What it may not do.
        doing: &'static str,
    },
    /// The kernel refuses a program or a map.
    #[error("the kernel does not accept {what} (Linux 5.18 or newer is needed): {reason}")]
    Load {
        /// What it does not accept.
        what: &'static str,
        /// What it says.
        reason: String,
    },
    /// A map cannot be mapped into this process.
    #[error("cannot map {map} into memory: {source}")]
    Map {
        /// Which map.
        map: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// The filter cannot be applied.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// There is no such interface.
    #[error("there is no interface number {0} (any more)")]
    NoInterface(u32),
    /// Something else has the place where the program belongs.
    #[error(
        "interface number {interface} has another XDP program: if nobody needs it, remove it with \
         `ip link set dev IFACE xdp off`"
    )]
    Occupied {
        /// The interface.
        interface: u32,
    },
    /// The interface does not take the program.
    #[error("interface number {interface} does not take the program in {mode} mode: {reason}")]
    Attach {
        /// The interface.
        interface: u32,
        /// How it was to be attached.
        mode: &'static str,
        /// What the kernel said.
        reason: String,
    },
    /// There is no such place for a socket.
    #[error("lane {lane} of hardware queue {hardware_queue} cannot have a socket: {reason}")]
    Register {
        /// The queue of the interface.
        hardware_queue: u32,
        /// The lane.
        lane: u16,
        /// What is wrong.
        reason: String,
    },
}

impl BpfError {
    /// The error of loading `what`.
    pub(super) fn load(what: &'static str, error: &(dyn Error + 'static)) -> BpfError {
        match os_error(error) {
            Some(libc::EPERM | libc::EACCES) if !is_verdict(error) => {
                BpfError::Permission { doing: "load programs into the kernel" }
            }
            _ => BpfError::Load { what, reason: whole(error) },
        }
    }
}

/// The number of the system's error that lies behind `error`.
pub(super) fn os_error(error: &(dyn Error + 'static)) -> Option<i32> {
    chain(error).find_map(|cause| cause.downcast_ref::<io::Error>()?.raw_os_error())
}

/// Whether the verifier gave a reason; it refuses with the same number as a lack of capabilities.
fn is_verdict(error: &(dyn Error + 'static)) -> bool {
    whole(error).contains("processed")
}

/// An error with all its causes.
pub(super) fn whole(error: &(dyn Error + 'static)) -> String {
    let causes: Vec<_> = chain(error).map(ToString::to_string).collect();
    causes.join(": ")
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}
