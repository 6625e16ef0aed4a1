//! Packets that a service does not process, because their flow or their shard is elsewhere for now.

use super::{HandoffPacket, LinkPacket};
use crate::offload::FlowNumber;

/// Why a packet was not processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deferral {
    /// Its shard waits for flows to come home.
    Stalled,
    /// It is of a flow that is not here for good, and can be processed at its home only.
    Refused,
}

/// What a service leaves to its lane.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    /// Packets of flows that are away, in the order in which they came.
    pub(super) away: Vec<LinkPacket>,
    /// Others, in the order in which they came.
    pub(super) packets: Vec<(Deferral, HandoffPacket)>,
    /// Flows that have to come home.
    pub(super) recalls: Vec<FlowNumber>,
}

impl Deferred {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.away.is_empty() && self.packets.is_empty() && self.recalls.is_empty()
    }
}
