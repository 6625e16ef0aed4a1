//! Receive queues of a device that several lanes take packets from, one lane at a time.
//!
//! | | queues | a lane takes | locks |
//! |---|---|---|---|
//! | [`Sharing::Central`] | one for all lanes, filled from all hardware queues of the device | the oldest packets of it | one |
//! | [`Sharing::Stealing`] | one for each lane, filled from its hardware queue | the oldest of its own; if there are none, the oldest of the fullest other queue, half of it at most | one for each queue |
//!
//! [`RxQueue::recv`] takes the lock of the queue that it receives from and keeps it until [`SharedQueue::release`], so that the lane can
//! do what has to be in the order of the queue before another lane receives. A lane that finds nothing keeps no lock. No lane waits
//! for the lock of a queue that is empty as far as is known; its owner, and a lane that looks whether an owner at work has left
//! packets in its hardware queue, try it.
//!
//! Hardware queues are read in bursts, into a queue in memory, from which packets are taken by fewer, mostly one. So nothing depends
//! on the table by which a NIC distributes packets. Packets of one hardware queue keep their order; between hardware queues there
//! is none but that of the bursts.
//!
//! A lane sleeps on the descriptor of its own hardware queue. When a lane has read more packets than it takes, it says so
//! ([`SharedQueue::release`]), and the runtime wakes others. Beside a lane that has taken packets, another one does not sleep
//! on its descriptor but looks again soon ([`Rest::Nap`](crate::Rest::Nap)): nothing tells it of packets in the hardware queue of a lane that is at
//! work.

mod central;
mod member;
mod stealing;

use crate::device::{RxQueue, SharedQueue};

/// How lanes share the receive queues of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// One queue for all lanes.
    Central {
        /// Packets that a lane takes at a time, at least 1.
        pop: usize,
    },
    /// One queue for each lane, of which others take when they have nothing to do.
    Stealing {
        /// Packets that a lane takes of its own queue at a time, at least 1.
        pop: usize,
        /// Packets that it takes of another's at most, which are half of them at most; at least 1.
        steal: usize,
    },
}

impl Sharing {
    /// One queue, of which a lane takes one packet at a time.
    pub const CENTRAL: Sharing = Sharing::Central { pop: 1 };
    /// A queue for each lane; each takes one packet at a time of its own, or of the fullest other.
    pub const STEALING: Sharing = Sharing::Stealing { pop: 1, steal: 1 };

    /// The same, where a lane takes `burst` packets at a time of any queue.
    pub fn in_bursts_of(self, burst: usize) -> Sharing {
        match self {
            Sharing::Central { .. } => Sharing::Central { pop: burst },
            Sharing::Stealing { .. } => Sharing::Stealing { pop: burst, steal: burst },
        }
    }
}

/// Lets lanes share the receive queues of a device, one of which each lane has so far, in the order of the lanes.
pub fn share_receive(mut queues: Vec<Box<dyn RxQueue>>, sharing: Sharing) -> Vec<Box<dyn RxQueue>> {
    queues.iter_mut().filter_map(|queue| queue.as_shared()).for_each(SharedQueue::leave_transmit);
    match sharing {
        Sharing::Central { pop } => central::share(queues, pop.max(1)),
        Sharing::Stealing { pop, steal } => stealing::share(queues, pop.max(1), steal.max(1)),
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
