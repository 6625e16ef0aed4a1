//! Which queue a packet waits in.

use rheostat_base::LaneId;
use rheostat_steer::dispatch::{Arrival, Choice, Dispatch, SharedQueue};

/// How servers share what arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueSystem {
    /// A queue for each server, to which packets are led at random: k x M/G/1, scale-out.
    Separate,
    /// One queue: the server that is free first takes the next packet: M/G/k, scale-up.
    Shared,
}

impl QueueSystem {
    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            QueueSystem::Separate => "separate",
            QueueSystem::Shared => "shared",
        }
    }
}

impl Dispatch for QueueSystem {
    fn name(&self) -> &'static str {
        QueueSystem::name(*self)
    }

    fn dispatch(&mut self, packet: &Arrival, backlogs: &[u32]) -> Choice {
        match self {
            QueueSystem::Separate => {
                // The hash is random; taken by its upper bits, any number of servers has equal parts.
                let server = (u64::from(packet.hash) * backlogs.len() as u64) >> u32::BITS;
                Choice::Lane(LaneId(server as u16))
            }
            QueueSystem::Shared => SharedQueue.dispatch(packet, backlogs),
        }
    }

    fn keeps_flows(&self) -> bool {
        false
    }

    /// No core dispatches: nothing but queues and servers takes time.
    fn in_hardware(&self) -> bool {
        true
    }
}
