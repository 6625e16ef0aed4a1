//! One queue for all lanes.

use super::{Arrival, Choice, Dispatch};

/// A core puts all packets into one queue, from which lanes that are free take the next (RSS++
/// sections 2 and 5.4, "SW Shared Queue"): no lane idles while a packet waits, and nothing keeps
/// packets in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedQueue;

impl Dispatch for SharedQueue {
    fn name(&self) -> &'static str {
        "shared-queue"
    }

    fn dispatch(&mut self, _packet: &Arrival, _backlogs: &[u32]) -> Choice {
        Choice::Shared
    }

    fn keeps_flows(&self) -> bool {
        false
    }

    fn in_hardware(&self) -> bool {
        false
    }
}
