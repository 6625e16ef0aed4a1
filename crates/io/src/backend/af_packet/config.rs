//! How an interface is used.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use rheostat_base::{DeviceId, QueueId};
use rheostat_capture::filter::Filter;
use rheostat_steer::{HashOptions, Steering};

use crate::backend::bpf::FenceMode;

/// How an interface is used.
#[derive(Clone, Debug)]
pub struct PacketConfig {
    /// The device's name in the configuration.
    pub name: String,
    /// The device's number.
    pub device: DeviceId,
    /// The name of the interface.
    pub interface: String,
    /// How many lanes there are. Each gets a socket.
    pub queues: u16,
    /// Where packets belong.
    pub steering: Arc<Steering>,
    /// What their hash covers.
    pub hashing: HashOptions,
    /// Which packets are not left to the kernel.
    pub filter: Filter,
    /// Whether packets that rheostat takes are kept from the kernel's own stack. Otherwise both get
    /// them.
    pub exclusive: bool,
    /// How exact a rewrite of the indirection table is.
    pub fence: FenceMode,
    /// Frames that each lane's ring holds, rounded up to a multiple of 64. A frame takes 2 KiB there; of a longer one, the rest
    /// waits in the socket, which holds as many bytes as the ring at least.
    pub ring: u32,
    /// Where the indirection table leads each bucket at first; in turn around the queues where nothing is
    /// given.
    pub placement: Option<Vec<QueueId>>,
    /// Counts arrivals. Devices that follow each other on one interface share it, so that the order of their
    /// packets is known.
    pub stamps: Arc<AtomicU32>,
}

impl PacketConfig {
    /// The usual: every packet taken, none left to the kernel, and rings of 4 MiB.
    pub fn new(
        name: impl Into<String>,
        interface: impl Into<String>,
        queues: u16,
        steering: Arc<Steering>,
    ) -> PacketConfig {
        PacketConfig {
            name: name.into(),
            device: DeviceId(0),
            interface: interface.into(),
            queues,
            steering,
            hashing: HashOptions::default(),
            filter: Filter::default(),
            exclusive: true,
            fence: FenceMode::default(),
            ring: 2_048,
            placement: None,
            stamps: Arc::default(),
        }
    }
}
