//! The requests of a client.

use serde::{Deserialize, Serialize};

use super::{ConnectionsRequest, DeleteFlowsRequest, HealthWord, ListRequest, ReloadRequest};

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The summary so far.
    Status,
    /// Shows a device's indirection table, or rewrites it first; answered once no packet can be placed
    /// by the old entries any more.
    Table {
        /// The device's name.
        device: String,
        /// The new entries: for each bucket the number of its lane.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entries: Option<Vec<u16>>,
        /// New entries by chance.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shuffle: Option<Shuffle>,
    },
    /// Changes the health of a load balancer's backend.
    Backend {
        /// The service's name.
        service: String,
        /// The backend's address, with its port where several share the address.
        backend: String,
        /// What it is from now on.
        health: HealthWord,
    },
    /// Copies of packets, until `count` is reached or the client closes its side.
    Capture(CaptureRequest),
    /// The way of single packets through the run, until `count` is reached or the client closes its
    /// side.
    Trace(TraceRequest),
    /// What a policy would do with the load there is; answered once it has been looked at for long
    /// enough.
    Explain(ExplainRequest),
    /// What keeps the run from scaling; answered once it has been looked at for long enough.
    Profile(ProfileRequest),
    /// The connections of a service over TCP, in the form of protocol version 1; [`Request::List`] is the newer one.
    Connections(ConnectionsRequest),
    /// A page of a listing.
    List(ListRequest),
    /// Ends flows as a time-out does.
    DeleteFlows(DeleteFlowsRequest),
    /// The versions of the instance.
    Hello,
    /// Puts another configuration in force; answered once all lanes go by it.
    Reload(ReloadRequest),
    /// The configuration in force.
    Config,
    /// Ends the run in good order.
    Stop,
    /// Confirms a run that would end by itself.
    Keep,
}

/// For how long to profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProfileRequest {
    /// For how many milliseconds to look; two seconds without it, a minute at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_ms: Option<u64>,
}

/// What to explain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExplainRequest {
    /// The policy to ask; without it that of the run, or `rsspp` where that one moves nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// For how many milliseconds to look at the load; a second without it, a minute at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_ms: Option<u64>,
    /// How many packets to look at to distinguish flows; 20,000 without it, a million at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<u64>,
}

/// New entries of a table by chance: the old ones in another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shuffle {
    /// What the order is drawn from.
    #[serde(default)]
    pub seed: u64,
    /// How many times in a row, each once the one before is in force.
    #[serde(default = "once")]
    pub times: u32,
    /// Milliseconds between two times.
    #[serde(default)]
    pub pause_ms: u64,
}

fn once() -> u32 {
    1
}

/// Which packets to copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CaptureRequest {
    /// Only packets of this device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Only packets that come in (`true`), or that go out (`false`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inbound: Option<bool>,
    /// Packets as they were received.
    pub before: bool,
    /// Packets as they are sent.
    pub after: bool,
    /// Packets that are dropped.
    pub dropped: bool,
    /// Of those dropped, only for this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only packets that this expression matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Ends after so many packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Bytes of each packet at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snaplen: Option<u32>,
}

/// Which packets to follow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TraceRequest {
    /// Only packets that this expression matches when they are received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// How many packets, 1 to 255.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u8>,
}
