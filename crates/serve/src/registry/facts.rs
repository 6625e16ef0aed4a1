//! Facts of an application with its settings, as checks, memory plans and devices ask for them.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Facts of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplicationFacts {
    /// How long a request may take to arrive; for ever without.
    pub request_timeout: Option<Duration>,
    /// Bytes of its longest request, where that is more than `longest_request` of `[serve]`.
    pub longest_request: usize,
    /// A setting in bytes, with its key, that the memory of a shard bounds.
    pub in_shard_memory: Option<(&'static str, usize)>,
    /// Memory beside that of connections.
    pub memory: Vec<ApplicationMemory>,
    /// Whether it has no requests, and takes events of its connections ([`Handler`](crate::Handler)).
    pub is_handler: bool,
    /// How it opens connections, if it does.
    pub opens: Option<Opening>,
}

/// Connections that an application opens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// The ports it connects from; those that need no privileges without any.
    pub source_ports: Option<RangeInclusive<u16>>,
}

/// Memory that an application takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationMemory {
    /// What it is for.
    pub purpose: &'static str,
    /// Bytes, of each lane or of all together.
    pub bytes: u64,
    /// Whether each lane takes so much.
    pub is_per_lane: bool,
    /// What the size follows from.
    pub from: String,
    /// The setting to lower, such as `[serve] memory`.
    pub setting: &'static str,
}
