//! Why an interface cannot be used.

use std::io;

use rheostat_kernel::capability::{Capability, Refusal};
use rheostat_steer::RewriteError;
use thiserror::Error;

use crate::backend::bpf::BpfError;

/// Why an interface cannot be used, by AF_XDP, by packet sockets or as a tap.
#[derive(Debug, Error)]
pub enum InterfaceError {
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
    /// The operating system refused something else.
    #[error("cannot {doing} on `{interface}`: {source}")]
    SetUp {
        /// What cannot be done.
        doing: &'static str,
        /// The interface.
        interface: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The programs could not be brought into the kernel.
    #[error(transparent)]
    Program(#[from] BpfError),
    /// The placement that the device should begin with does not fit it.
    #[error(transparent)]
    Placement(#[from] RewriteError),
    /// Lanes that share queues come in groups of one size.
    #[error("{lanes} lanes cannot share queues by {claimants}: each queue needs as many lanes")]
    Claimants {
        /// The lanes.
        lanes: u16,
        /// The lanes that are to share a queue.
        claimants: u16,
    },
    /// Lanes that keep the order of claims share one ring of AF_XDP.
    #[error(
        "`{interface}` has {queues} hardware queues, and lanes that share queues keep the order of \
         one (`ordered = true`): give it one with `ethtool -L {interface} combined 1`, or remove `ordered`"
    )]
    Ordered {
        /// The interface.
        interface: String,
        /// Its queues.
        queues: u32,
    },
    /// Rings of AF_XDP of this size are impossible.
    #[error("rings of {0} descriptors are impossible: take a power of two from 64 to 32768")]
    Descriptors(u32),
    /// The pool's buffers cannot be shared with the kernel.
    #[error(
        "packet buffers {stride} bytes apart, with {headroom} in front of a packet, cannot be shared \
         with the kernel: they must be 2048 or 4096 bytes apart and have at least 256 in front"
    )]
    Layout {
        /// From one buffer to the next.
        stride: usize,
        /// In front of a packet.
        headroom: usize,
    },
    /// The pool is too small.
    #[error(
        "{buffers} packet buffers are too few for {queues} hardware queues: give the pool at least \
         {needed}, or the interface fewer queues with `ethtool -L`"
    )]
    PoolTooSmall {
        /// The pool's buffers.
        buffers: usize,
        /// The interface's queues.
        queues: u32,
        /// How many would do.
        needed: usize,
    },
    /// The process may not lock this much memory.
    #[error(
        "the kernel does not lock {bytes} bytes of packet buffers: raise the limit with \
         `ulimit -l unlimited`, or give the process the capability CAP_IPC_LOCK ({source})"
    )]
    Memory {
        /// The size of the pool.
        bytes: usize,
        /// What the operating system said.
        source: io::Error,
    },
    /// Another socket has the queue.
    #[error(
        "queue {queue} of `{interface}` belongs to another AF_XDP socket: stop the process that holds \
         it (`ss --xdp -p` names it)"
    )]
    Busy {
        /// The interface.
        interface: String,
        /// Its queue.
        queue: u32,
    },
    /// The driver cannot work in the process's memory.
    #[error(
        "the driver of `{interface}` cannot receive without a copy: use `copy = \"auto\"` ({source})"
    )]
    NoZeroCopy {
        /// The interface.
        interface: String,
        /// What the operating system said.
        source: io::Error,
    },
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
}

impl InterfaceError {
    /// The error of a step that needs a capability, from what the operating system said.
    pub(super) fn set_up(
        doing: &'static str,
        interface: &str,
        needed: Capability,
    ) -> impl Fn(io::Error) -> InterfaceError {
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied => {
                InterfaceError::Permission(Refusal::new(doing, &[needed]))
            }
            _ => InterfaceError::SetUp { doing, interface: interface.to_owned(), source },
        }
    }
}
