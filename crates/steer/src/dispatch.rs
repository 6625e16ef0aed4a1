//! Baselines that choose a lane for each packet, to compare the policies with.
//!
//! A [`Policy`](crate::Policy) decides about shards once per period and keeps flows on their lanes.
//! A dispatcher is called for each packet; what that costs in order, locks and copies is what it is
//! there to show (RSS++ section 2, Table 1, sections 5.4 and 5.5).

mod round_robin;
mod shared_queue;
mod spray;
mod stateful_queue;

use rheostat_base::{LaneId, Time};
use thiserror::Error;

pub use round_robin::RoundRobin;
pub use shared_queue::SharedQueue;
pub use spray::Spray;
pub use stateful_queue::{StatefulQueue, StatefulQueueError};

/// Chooses a lane for each packet.
pub trait Dispatch: Send {
    /// The name it has in a configuration.
    fn name(&self) -> &'static str;

    /// Where a packet goes. `backlogs` are the packets waiting, by lane; there is at least one
    /// lane, and always as many.
    fn dispatch(&mut self, packet: &Arrival, backlogs: &[u32]) -> Choice;

    /// Whether packets of a flow stay on one lane, as long as it remembers the flow. If not, flow
    /// state is reached from several lanes and needs locks, and packets overtake each other.
    fn keeps_flows(&self) -> bool;

    /// Whether a NIC can do it. If not, a core of its own reads all packets and passes them on.
    fn in_hardware(&self) -> bool;
}

/// What a dispatcher may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it arrived.
    pub now: Time,
    /// The hash of its flow, the same for both directions.
    pub hash: u32,
    /// The checksum of its transport header, nearly random when payloads differ.
    pub checksum: u16,
    /// Whether it opens or ends a connection: SYN, FIN or RST is set.
    pub connection: bool,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Into this lane's queue.
    Lane(LaneId),
    /// Into the queue of `queue`, which hands it to `lane`.
    Via {
        /// The lane that receives it.
        queue: LaneId,
        /// The lane that processes it.
        lane: LaneId,
    },
    /// Into one queue, from which the next lane that is free takes it.
    Shared,
}

/// No dispatcher has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no dispatcher `{0}`; write one of {list}", list = NAMES.join(", "))]
pub struct UnknownDispatch(pub String);

/// The names that [`by_name`] knows.
pub const NAMES: [&str; 4] = ["spray", "round-robin", "shared-queue", "stateful-queue"];

/// The dispatcher of this name with its default parameters.
///
/// # Errors
/// [`UnknownDispatch`], which lists the names there are.
pub fn by_name(name: &str) -> Result<Box<dyn Dispatch>, UnknownDispatch> {
    match name {
        "spray" => Ok(Box::new(Spray)),
        "round-robin" => Ok(Box::new(RoundRobin::default())),
        "shared-queue" => Ok(Box::new(SharedQueue)),
        "stateful-queue" => Ok(Box::new(StatefulQueue::default())),
        _ => Err(UnknownDispatch(name.to_owned())),
    }
}

/// The lane that `value` leads to.
fn lane_of(value: u32, lanes: usize) -> LaneId {
    LaneId((value as usize % lanes) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispatchers_are_found_by_the_names_they_have() {
        for name in NAMES {
            assert_eq!(by_name(name).unwrap().name(), name);
        }
        assert_eq!(
            by_name("random").err().unwrap().to_string(),
            "there is no dispatcher `random`; write one of spray, round-robin, shared-queue, \
             stateful-queue"
        );
    }
}
