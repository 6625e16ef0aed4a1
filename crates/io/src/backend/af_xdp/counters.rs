//! What a device counts, and keeps when its sockets are closed.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use rheostat_base::Counter;

use crate::backend::shared_ring::Claimants;

/// What the device counts.
#[derive(Debug)]
pub(super) struct Counters {
    /// By lane.
    pub(super) lanes: Box<[LaneCounters]>,
    /// Those that share RX rings: by group of lanes, and then by hardware queue.
    pub(super) claimants: Vec<Vec<Claimants>>,
    /// What the kernel had dropped when the sockets were closed.
    pub(super) at_close: Mutex<Option<KernelDrops>>,
    /// The interface is gone for good.
    pub(super) gone: AtomicBool,
    /// Nothing more is to arrive.
    pub(super) stopped: AtomicBool,
}

/// What one lane counts.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct LaneCounters {
    pub(super) received: Counter,
    pub(super) received_bytes: Counter,
    /// Packets put into the TX ring.
    pub(super) taken: Counter,
    pub(super) taken_bytes: Counter,
    /// Of these, those that the kernel refused to send.
    pub(super) unsent: Counter,
    pub(super) unsent_bytes: Counter,
    /// System calls that were to send packets.
    pub(super) send_calls: Counter,
    /// Packets that were copied on their way out.
    pub(super) copied: Counter,
    /// Buffers given to the kernel with packets in them.
    pub(super) lent: Counter,
    /// Frames longer than a chain of buffers may be.
    pub(super) oversize: Counter,
    /// Descriptors from the kernel that cannot be.
    pub(super) refused: Counter,
}

/// What the kernel has dropped.
#[derive(Clone, Debug, Default)]
pub(super) struct KernelDrops {
    /// Because an RX ring was full, by lane or by group of lanes that share it.
    pub(super) queue_full: Vec<u64>,
    /// Because no buffer was in the FILL ring.
    pub(super) fill_empty: u64,
    /// Because the frame was too long for a socket that takes no packets of several buffers.
    pub(super) too_long: u64,
    /// Descriptors that the kernel has not accepted from us.
    pub(super) invalid: u64,
}

impl Counters {
    /// Of `lanes`, of which so many in a row share RX rings, on so many hardware queues.
    pub(super) fn new(lanes: u16, claimants: u16, hardware_queues: u32) -> Counters {
        let groups = if claimants > 1 { lanes / claimants } else { 0 };
        let of_ring = |_| Claimants::new(claimants.into());
        let of_group = |_| (0..hardware_queues).map(of_ring).collect();
        Counters {
            lanes: (0..lanes).map(|_| LaneCounters::default()).collect(),
            claimants: (0..groups).map(of_group).collect(),
            at_close: Mutex::new(None),
            gone: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        }
    }
}
