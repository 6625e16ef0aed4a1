//! What is noted about a packet that is traced.

use std::net::SocketAddr;

use rheostat_base::{DeviceId, DropReason, LaneId, ShardId, Time};
use rheostat_packet::FlowKey;
use rheostat_packet::wire::TcpFlags;

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
    /// A service over TCP made it, and not because of a packet that is traced.
    Made {
        /// What the service did it for.
        cause: &'static str,
        /// This machine's end of the connection.
        local: SocketAddr,
        /// The peer's.
        remote: SocketAddr,
        /// The state of the connection.
        state: &'static str,
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
    /// It is a segment for a service over TCP.
    Segment {
        /// What it is.
        segment: Box<SegmentSummary>,
        /// What takes it.
        taker: &'static str,
    },
    /// The service has decided about it.
    Decided(Box<SegmentDecision>),
    /// The program of the service has had its turn.
    Program {
        /// Bytes it read.
        read: u64,
        /// Requests it handled.
        requests: u64,
        /// Bytes it wrote.
        written: u64,
        /// Whether it refused what it read.
        refused: bool,
        /// Whether it panicked.
        panicked: bool,
    },
    /// The connection is over, or in TIME-WAIT.
    Closed {
        /// Why.
        reason: &'static str,
    },
    /// The service answers with a segment, or this is the one it made.
    Answer {
        /// What it is.
        segment: Box<SegmentSummary>,
        /// Whether it is of another connection than the segment that it comes of.
        is_elsewhere: bool,
        /// Why it is sent.
        reason: String,
    },
    /// It comes back as if from outside.
    Hairpin,
    /// A device took it.
    Sent(DeviceId),
    /// It served its purpose.
    Consumed,
    /// It was dropped.
    Dropped(DropReason),
}

/// The header of a segment, and its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    /// This machine's end.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// The flags of its header.
    pub flags: TcpFlags,
    /// Its sequence number.
    pub seq: u32,
    /// What it acknowledges.
    pub ack: Option<u32>,
    /// The window in its header, not scaled.
    pub window: u16,
    /// Bytes of data.
    pub len: u32,
}

/// What a service over TCP did with a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentDecision {
    /// All of it in words.
    pub words: String,
    /// The state of the connection before; none if there was no connection.
    pub was: Option<&'static str>,
    /// The state after.
    pub state: Option<&'static str>,
    /// Numbers that are in order now and were not before: bytes, and the peer's FIN.
    pub in_order: u32,
    /// Bytes held beyond gaps now, if not as many as before.
    pub held: Option<u32>,
    /// Numbers of this end that it acknowledged: bytes, SYN and FIN.
    pub acknowledged: u32,
    /// Which duplicate acknowledgement in a row it is, if it is one.
    pub duplicate_ack: Option<u32>,
    /// Why it, or a part of it, was ignored.
    pub ignored: Option<&'static str>,
    /// Whether an acknowledgement challenges the peer, where one would if there had not been one just before.
    pub challenged: Option<bool>,
}

impl SegmentDecision {
    /// A decision that is about no connection.
    pub fn in_words(words: impl Into<String>) -> SegmentDecision {
        SegmentDecision {
            words: words.into(),
            was: None,
            state: None,
            in_order: 0,
            held: None,
            acknowledged: 0,
            duplicate_ack: None,
            ignored: None,
            challenged: None,
        }
    }
}

impl Step {
    /// Whether a trace of a packet begins with it.
    pub fn is_first(&self) -> bool {
        matches!(self, Step::Received { .. } | Step::Made { .. })
    }

    /// Whether nothing can follow.
    pub fn is_last(&self) -> bool {
        matches!(self, Step::Sent(_) | Step::Consumed | Step::Dropped(_))
    }
}
