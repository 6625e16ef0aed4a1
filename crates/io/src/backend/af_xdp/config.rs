//! How an interface is used.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use rheostat_base::{DeviceId, QueueId};
use rheostat_capture::filter::Filter;
use rheostat_steer::{HashOptions, Steering};

use crate::backend::bpf::{AttachMode, FenceMode};

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

/// How an interface is used.
#[derive(Clone, Debug)]
pub struct XdpConfig {
    /// The device's name in the configuration.
    pub name: String,
    /// The device's number.
    pub device: DeviceId,
    /// The name of the interface.
    pub interface: String,
    /// How many lanes there are. Each gets a queue, however many the hardware has.
    pub queues: u16,
    /// How many lanes in a row receive from the same rings: 1, or more, which divide the number of lanes.
    pub claimants: u16,
    /// Whether packets of those lanes are to leave in the order in which they are claimed ([`crate::layer::ordered`]).
    pub ordered: bool,
    /// Where packets belong.
    pub steering: Arc<Steering>,
    /// What their hash covers.
    pub hashing: HashOptions,
    /// Which packets are not left to the kernel.
    pub filter: Filter,
    /// Where the program runs.
    pub mode: AttachMode,
    /// How packets get into the process's buffers.
    pub copy: CopyMode,
    /// How exact a rewrite of the indirection table is.
    pub fence: FenceMode,
    /// Packets that a lane which finds nothing has the kernel take from the driver, at most, in place of interrupts; `None`:
    /// interrupts.
    pub busy_poll: Option<u16>,
    /// Packets that rings hold: a power of two.
    pub descriptors: u32,
    /// Where the indirection table leads each bucket at first; in turn around the queues where nothing is
    /// given.
    pub placement: Option<Vec<QueueId>>,
    /// Counts arrivals. Devices that follow each other on one interface share it, so that the order of their
    /// packets is known.
    pub stamps: Arc<AtomicU32>,
}

impl XdpConfig {
    /// The usual: everything that the interface can do, every packet taken, and rings of 1,024.
    pub fn new(
        name: impl Into<String>,
        interface: impl Into<String>,
        queues: u16,
        steering: Arc<Steering>,
    ) -> XdpConfig {
        XdpConfig {
            name: name.into(),
            device: DeviceId(0),
            interface: interface.into(),
            queues,
            claimants: 1,
            ordered: false,
            steering,
            hashing: HashOptions::default(),
            filter: Filter::default(),
            mode: AttachMode::default(),
            copy: CopyMode::default(),
            fence: FenceMode::default(),
            busy_poll: None,
            descriptors: 1_024,
            placement: None,
            stamps: Arc::default(),
        }
    }
}
