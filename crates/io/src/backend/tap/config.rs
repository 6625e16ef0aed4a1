//! How a tap interface is made.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use rheostat_base::{DeviceId, QueueId};
use rheostat_capture::filter::Filter;
use rheostat_steer::{HashOptions, Steering};

use crate::backend::bpf::FenceMode;

/// How a tap interface is made.
#[derive(Clone, Debug)]
pub struct TapConfig {
    /// The device's name in the configuration.
    pub name: String,
    /// The device's number.
    pub device: DeviceId,
    /// The name of the interface. It is made if it does not exist, and then vanishes with the device;
    /// `%d` stands for a number that the kernel chooses.
    pub interface: String,
    /// How many lanes there are. Each gets a queue.
    pub queues: u16,
    /// Where packets belong.
    pub steering: Arc<Steering>,
    /// What their hash covers.
    pub hashing: HashOptions,
    /// Which packets are taken. The kernel drops the rest: no other program receives packets of the interface.
    pub filter: Filter,
    /// How exact a rewrite of the indirection table is.
    pub fence: FenceMode,
    /// Where the indirection table leads each bucket at first; in turn around the queues where nothing is
    /// given.
    pub placement: Option<Vec<QueueId>>,
    /// Counts arrivals. Devices that follow each other on one interface share it, so that the order of their
    /// packets is known.
    pub stamps: Arc<AtomicU32>,
}

impl TapConfig {
    /// The usual: every packet taken.
    pub fn new(
        name: impl Into<String>,
        interface: impl Into<String>,
        queues: u16,
        steering: Arc<Steering>,
    ) -> TapConfig {
        TapConfig {
            name: name.into(),
            device: DeviceId(0),
            interface: interface.into(),
            queues,
            steering,
            hashing: HashOptions::default(),
            filter: Filter::default(),
            fence: FenceMode::default(),
            placement: None,
            stamps: Arc::default(),
        }
    }
}
