//! One point of a packet.

use std::fmt;
use std::net::SocketAddr;

use rheostat_base::DeviceId;
use rheostat_capture::trace::Step;
use rheostat_packet::FlowKey;
use serde::{Deserialize, Serialize};

use super::segment::{DecisionLine, SegmentLine};

/// A point of a packet's way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracePoint {
    /// Microseconds since the lane took the packet from its queue.
    pub us: f64,
    /// The lane that saw it there.
    pub lane: u16,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What happened to a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum What {
    /// A lane took it from its queue of a device.
    Received {
        /// The device.
        device: String,
        /// Bytes on the wire.
        length: u32,
        /// Its time stamp: nanoseconds since 1970.
        nanos: u64,
        /// The device's hash of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hash: Option<u32>,
        /// What the hash covers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hashed: Option<String>,
        /// The bucket that follows from it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bucket: Option<usize>,
    },
    /// A service over TCP made it, and not because of a packet that is traced.
    Made {
        /// What the service did it for.
        cause: String,
        /// This machine's end of the connection.
        local: SocketAddr,
        /// The peer's.
        remote: SocketAddr,
        /// The state of the connection.
        state: String,
    },
    /// Its shard was found.
    Placed {
        /// What it is to the flow tables.
        kind: String,
        /// Its flow, inside first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<Flow>,
        /// The side it comes from: `inside` or `outside`.
        from: String,
        /// The shard.
        shard: u16,
        /// The lane that owns it.
        owner: u16,
    },
    /// It was put on the ring to another lane.
    HandedTo {
        /// The lane.
        to: u16,
    },
    /// Its flow is with an offloading lane, to which it was sent.
    Offloaded {
        /// The lane.
        to: u16,
    },
    /// It can be processed at the home of its flow only, to which it was sent back.
    Refused {
        /// The lane that owns the flow's shard.
        to: u16,
    },
    /// It waits for a flow to come home.
    Waits,
    /// A lane took it off its ring.
    Taken,
    /// It is a fragment that waits for the first of its datagram, or is it.
    Fragment,
    /// What its flow's table knew.
    Looked {
        /// Whether the flow was there.
        known: bool,
    },
    /// A function has seen it.
    Function {
        /// The function.
        name: String,
        /// What it decided.
        verdict: String,
        /// The flow before the function rewrote the packet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<Flow>,
        /// The flow after it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Flow>,
    },
    /// The functions made packets of their own about it.
    Originated {
        /// How many.
        packets: usize,
    },
    /// Its flow is in the table from now on.
    FlowMade,
    /// The network layer has decided.
    Routed {
        /// What.
        decision: String,
    },
    /// It is a segment for a service over TCP.
    Segment {
        /// What it is.
        #[serde(flatten)]
        segment: SegmentLine,
        /// What takes it: a connection, a listener, or neither.
        taker: String,
    },
    /// The service has decided about it.
    Decided(DecisionLine),
    /// The program of the service has had its turn.
    Program {
        /// Bytes it read.
        read: u64,
        /// Requests it handled.
        requests: u64,
        /// Bytes it wrote.
        written: u64,
        /// Whether it refused what it read.
        #[serde(default, skip_serializing_if = "is_false")]
        refused: bool,
        /// Whether it panicked.
        #[serde(default, skip_serializing_if = "is_false")]
        panicked: bool,
    },
    /// Its connection is over, or in TIME-WAIT.
    Closed {
        /// Why.
        reason: String,
    },
    /// The service answers with a segment, or this is the one it made.
    Answer {
        /// What it is.
        #[serde(flatten)]
        segment: SegmentLine,
        /// Whether it is of another connection than the segment that it comes of.
        #[serde(default, skip_serializing_if = "is_false")]
        elsewhere: bool,
        /// Why it is sent.
        reason: String,
    },
    /// It comes back as if from outside.
    Hairpin,
    /// A device took it.
    Sent {
        /// The device.
        device: String,
    },
    /// It served its purpose.
    Consumed,
    /// It was dropped.
    Dropped {
        /// Why.
        reason: String,
    },
}

/// Two endpoints, that inside first, and a protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// The protocol's name, or its number.
    pub protocol: String,
    /// The endpoint inside.
    pub inner: String,
    /// The endpoint outside.
    pub outer: String,
}

impl Flow {
    fn of(key: &FlowKey) -> Flow {
        let protocol = match key.protocol() {
            1 => "icmp".to_owned(),
            6 => "tcp".to_owned(),
            17 => "udp".to_owned(),
            58 => "icmp6".to_owned(),
            132 => "sctp".to_owned(),
            other => format!("protocol {other}"),
        };
        let end = |address, port| std::net::SocketAddr::new(address, port).to_string();
        Flow {
            protocol,
            inner: end(key.first(), key.first_port()),
            outer: end(key.second(), key.second_port()),
        }
    }
}

impl What {
    /// A step in words; `devices` has the devices' names.
    pub(super) fn of(step: Step, devices: &[String]) -> What {
        let name = |device: DeviceId| devices.get(device.index()).cloned().unwrap_or_default();
        match step {
            Step::Received { device, length, nanos, hash, bucket } => What::Received {
                device: name(device),
                length,
                nanos,
                hash: hash.map(|(hash, _)| hash),
                hashed: hash.map(|(_, covers)| covers.to_owned()),
                bucket,
            },
            Step::Placed { kind, key, from_inside, shard, owner } => What::Placed {
                kind: kind.to_owned(),
                flow: key.as_ref().map(Flow::of),
                from: if from_inside { "inside" } else { "outside" }.to_owned(),
                shard: shard.0,
                owner: owner.0,
            },
            Step::HandedTo(lane) => What::HandedTo { to: lane.0 },
            Step::Offloaded(lane) => What::Offloaded { to: lane.0 },
            Step::Refused(lane) => What::Refused { to: lane.0 },
            Step::Waits => What::Waits,
            Step::Taken => What::Taken,
            Step::Held => What::Fragment,
            Step::Looked { known } => What::Looked { known },
            Step::Function { name, verdict, rewrote } => What::Function {
                name: name.to_owned(),
                verdict,
                before: rewrote.as_ref().map(|(before, _)| Flow::of(before)),
                after: rewrote.as_ref().map(|(_, after)| Flow::of(after)),
            },
            Step::Originated(packets) => What::Originated { packets },
            Step::FlowMade => What::FlowMade,
            Step::Routed(decision) => What::Routed { decision },
            Step::Made { cause, local, remote, state } => {
                What::Made { cause: cause.to_owned(), local, remote, state: state.to_owned() }
            }
            Step::Segment { segment, taker } => {
                What::Segment { segment: SegmentLine::of(&segment), taker: taker.to_owned() }
            }
            Step::Decided(decision) => What::Decided(DecisionLine::of(*decision)),
            Step::Program { read, requests, written, refused, panicked } => {
                What::Program { read, requests, written, refused, panicked }
            }
            Step::Closed { reason } => What::Closed { reason: reason.to_owned() },
            Step::Answer { segment, is_elsewhere, reason } => {
                let segment = SegmentLine::of(&segment);
                What::Answer { segment, elsewhere: is_elsewhere, reason }
            }
            Step::Hairpin => What::Hairpin,
            Step::Sent(device) => What::Sent { device: name(device) },
            Step::Consumed => What::Consumed,
            Step::Dropped(reason) => What::Dropped { reason: reason.name().to_owned() },
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} - {}", self.protocol, self.inner, self.outer)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Received { device, length, hash, hashed, bucket, .. } => {
                write!(f, "received on {device}: {length} bytes")?;
                match (hash, hashed, bucket) {
                    (Some(hash), Some(hashed), Some(bucket)) => {
                        write!(f, ", hash {hash:08x} over {hashed}, bucket {bucket}")
                    }
                    _ => f.write_str(", not hashed"),
                }
            }
            What::Placed { kind, flow, from, shard, owner } => {
                match flow {
                    Some(flow) => write!(f, "{kind} {flow}, from {from}; ")?,
                    None => write!(f, "{kind}, from {from}; ")?,
                }
                write!(f, "shard {shard} of lane {owner}")
            }
            What::HandedTo { to } => write!(f, "handed to lane {to}"),
            What::Offloaded { to } => write!(f, "flow is away: sent to offloading lane {to}"),
            What::Refused { to } => {
                write!(f, "cannot be processed away from its shard: sent home to lane {to}")
            }
            What::Waits => f.write_str("waits until a flow is home"),
            What::Taken => f.write_str("taken from the ring between lanes"),
            What::Fragment => f.write_str("shown to the fragment tracker"),
            What::Looked { known: true } => f.write_str("flow found"),
            What::Looked { known: false } => f.write_str("no such flow yet"),
            What::Function { name, verdict, before, after } => {
                write!(f, "{name}: {verdict}")?;
                match (before, after) {
                    (Some(before), Some(after)) => write!(f, "; {before} is now {after}"),
                    _ => Ok(()),
                }
            }
            What::Originated { packets: 1 } => f.write_str("the functions made a packet about it"),
            What::Originated { packets } => {
                write!(f, "the functions made {packets} packets about it")
            }
            What::FlowMade => f.write_str("flow entered in the table"),
            What::Routed { decision } => f.write_str(decision),
            What::Made { cause, local, remote, state } => {
                write!(f, "tcp {local} - {remote}, {state}; cause: {cause}")
            }
            What::Segment { segment, taker } => write!(f, "{segment}, for {taker}"),
            What::Decided(decision) => f.write_str(&decision.decision),
            What::Program { read, requests, written, refused, panicked } => {
                write!(f, "program: reads {read} bytes, ")?;
                match requests {
                    0 => {}
                    1 => f.write_str("handles 1 request, ")?,
                    _ => write!(f, "handles {requests} requests, ")?,
                }
                write!(f, "writes {written} bytes")?;
                f.write_str(if *refused { ", refuses what it read" } else { "" })?;
                f.write_str(if *panicked { ", PANICS" } else { "" })
            }
            What::Closed { reason } => write!(f, "connection closed: {reason}"),
            What::Answer { segment, elsewhere, reason } => {
                write!(f, "sends {segment}")?;
                if *elsewhere {
                    write!(f, " to {}", segment.remote)?;
                }
                write!(f, ": {reason}")
            }
            What::Hairpin => f.write_str("hairpin: arrives once more, from outside"),
            What::Sent { device } => write!(f, "sent on {device}"),
            What::Consumed => f.write_str("consumed"),
            What::Dropped { reason } => write!(f, "DROPPED: {reason}"),
        }
    }
}
