//! Why an interface cannot be used by AF_XDP.

use std::io;

use rheostat_kernel::capability::Refusal;
use rheostat_steer::RewriteError;
use thiserror::Error;

use crate::backend::bpf::BpfError;

/// Why an interface cannot be used by AF_XDP.
#[derive(Debug, Error)]
pub enum XdpOpenError {
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
    /// Lanes that share queues come in groups of one size.
    #[error("{lanes} lanes cannot share queues by {claimants}: each queue needs as many lanes")]
    Claimants {
        /// The lanes.
        lanes: u16,
        /// The lanes that are to share a queue.
        claimants: u16,
    },
    /// The order of claims is that of one ring.
    #[error(
        "`{interface}` has {queues} hardware queues, and lanes that share queues keep the order of one          (`ordered = true`): give it one with `ethtool -L {interface} combined 1`, or remove `ordered`"
    )]
    Ordered {
        /// The interface.
        interface: String,
        /// Its queues.
        queues: u32,
    },
    /// Rings of this size are impossible.
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
    /// The process may not do this.
    #[error("{0}")]
    Permission(Refusal),
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
    /// The operating system refused something else.
    #[error("cannot {what} on `{interface}`: {source}")]
    Socket {
        /// The interface.
        interface: String,
        /// What it refused.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// The program that steers packets could not be brought into the kernel.
    #[error(transparent)]
    Program(#[from] BpfError),
    /// The placement that the device should begin with does not fit it.
    #[error(transparent)]
    Placement(#[from] RewriteError),
}
