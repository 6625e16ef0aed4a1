//! How an interface is used.

use crate::backend::bpf::AttachMode;
use crate::backend::interface_config::interface_config;

/// How packets get from the driver into the process's buffers and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyMode {
    /// Without a copy where the driver can, else with one.
    #[default]
    Auto,
    /// Without a copy, or not at all.
    Zero,
    /// With a copy.
    Copy,
}

interface_config! {
    /// How an interface is used by AF_XDP.
    XdpConfig
    /// A device that uses all that the interface can do, takes every packet, and has rings of 1,024.
    new {
        /// How many lanes in a row receive from the same rings: 1, or more, which divide the number of lanes.
        claimants: u16 = 1,
        /// Whether packets of those lanes are to leave in the order in which they are claimed ([`crate::layer::ordered`]).
        ordered: bool = false,
        /// Where the program runs.
        mode: AttachMode = AttachMode::default(),
        /// How packets get into the process's buffers.
        copy: CopyMode = CopyMode::default(),
        /// Packets that a lane which finds nothing has the kernel take from the driver, at most, in place of interrupts; `None`:
        /// interrupts.
        busy_poll: Option<u16> = None,
        /// Packets that rings hold: a power of two.
        descriptors: u32 = 1_024,
    }
}
