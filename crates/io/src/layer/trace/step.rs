//! What is noted about a packet that is traced.

use rheostat_base::{DeviceId, DropReason, LaneId, ShardId, Time};
use rheostat_packet::FlowKey;

/// A note about a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The packet's mark.
    pub packet: u8,
    /// When it was noted.
    pub at: Time,
    /// The lane that noted it.
    pub lane: LaneId,
    /// What happened.
    pub step: Step,
}

/// A step of a packet's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A lane received it from its queue of a device.
    Received {
        /// The device.
        device: DeviceId,
        /// Bytes on the wire.
        length: u32,
        /// Its time stamp, in nanoseconds since 1970.
        nanos: u64,
        /// The device's hash of it, with what it covers; none where the device does not hash.
        hash: Option<(u32, &'static str)>,
        /// The bucket that follows from the hash.
        bucket: Option<usize>,
    },
    /// Its shard was found.
    Placed {
        /// What it is to the flow tables: `flow`, `icmp error`, `fragment`, `no flow`.
        kind: &'static str,
        /// The key of its flow.
        key: Option<FlowKey>,
        /// Whether it comes from inside.
        from_inside: bool,
        /// The shard.
        shard: ShardId,
        /// The lane that owns it.
        owner: LaneId,
    },
    /// It was put on the ring to another lane.
    HandedTo(LaneId),
    /// Its flow is with this offloading lane, to which it was sent.
    Offloaded(LaneId),
    /// It can be processed at the home of its flow only, this lane, to which it was sent back.
    Refused(LaneId),
    /// It waits until its flow is home, or a flow on which it depends.
    Waits,
    /// A lane took it off its ring.
    Taken,
    /// A fragment that waits for the first of its datagram.
    Held,
    /// What its flow's table knew.
    Looked {
        /// Whether the flow was there, and its time not up.
        known: bool,
    },
    /// A function has seen it.
    Function {
        /// The function.
        name: &'static str,
        /// What it decided.
        verdict: String,
        /// The flow's key before and after, if the function has rewritten the packet.
        rewrote: Option<(FlowKey, FlowKey)>,
    },
    /// The functions made packets of their own about it.
    Originated(usize),
    /// It is now the first packet of a flow in the table.
    FlowMade,
    /// The network layer has decided: a route, a next hop, an answer.
    Routed(String),
    /// It comes back as if from outside.
    Hairpin,
    /// A device took it.
    Sent(DeviceId),
    /// It served its purpose.
    Consumed,
    /// It was dropped.
    Dropped(DropReason),
}

impl Step {
    /// Whether nothing can follow.
    pub fn is_last(&self) -> bool {
        matches!(self, Step::Sent(_) | Step::Consumed | Step::Dropped(_))
    }
}
