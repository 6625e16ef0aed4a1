//! What programs are made for.

use std::sync::Arc;

use rheostat_base::DeviceId;
use rheostat_capture::filter::Filter;
use rheostat_steer::{HashOptions, Steering};

/// The steering, queues and filter that programs are made for.
#[derive(Clone, Debug)]
pub struct ProgramConfig {
    /// Where packets belong.
    pub steering: Arc<Steering>,
    /// The device they arrive on: states which end of a flow comes first.
    pub device: DeviceId,
    /// What the hash covers.
    pub hashing: HashOptions,
    /// How many lanes there are.
    pub queues: u16,
    /// Which packets are not left to the kernel.
    pub filter: Filter,
}
