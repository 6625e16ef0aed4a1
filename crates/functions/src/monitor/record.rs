//! What is reported of a flow.

use rheostat_base::Time;
use rheostat_packet::FlowKey;

/// Why a record was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndReason {
    /// There was no packet for the idle time-out.
    Idle,
    /// The flow goes on, and it was time.
    Active,
    /// Both ends of the connection have closed it.
    Closed,
    /// One end has reset the connection.
    Reset,
    /// The run was over.
    Forced,
    /// The table was full, and the flow made room for another.
    LackOfResources,
}

impl EndReason {
    /// The word for it in logs.
    pub const fn name(self) -> &'static str {
        match self {
            EndReason::Idle => "idle",
            EndReason::Active => "active",
            EndReason::Closed => "closed",
            EndReason::Reset => "reset",
            EndReason::Forced => "forced",
            EndReason::LackOfResources => "evicted",
        }
    }

    /// The value of `flowEndReason` (RFC 5102, 5.11.3).
    pub const fn ipfix(self) -> u8 {
        match self {
            EndReason::Idle => 1,
            EndReason::Active => 2,
            EndReason::Closed | EndReason::Reset => 3,
            EndReason::Forced => 4,
            EndReason::LackOfResources => 5,
        }
    }
}

/// What one direction of a flow had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WayCounts {
    /// Bytes of IP packets with their headers (`octetDeltaCount`).
    pub bytes: u64,
    /// Packets (`packetDeltaCount`).
    pub packets: u32,
    /// All flags of TCP that were seen (`tcpControlBits`).
    pub flags: u8,
    /// The least and the largest time to live, or hop limit; zero before the first packet
    /// (`minimumTTL`, `maximumTTL`).
    ttl: [u8; 2],
}

impl WayCounts {
    /// Counts a packet of so many bytes.
    #[inline]
    pub(super) fn count(&mut self, bytes: u32, flags: u8, ttl: Option<u8>) {
        let is_first = self.packets == 0;
        self.bytes += u64::from(bytes);
        self.packets += 1;
        self.flags |= flags;
        if let Some(ttl) = ttl {
            self.ttl =
                if is_first { [ttl; 2] } else { [self.ttl[0].min(ttl), self.ttl[1].max(ttl)] };
        }
    }

    /// The least and the largest time to live, if there were packets.
    pub fn ttl(&self) -> Option<[u8; 2]> {
        (self.packets > 0).then_some(self.ttl)
    }
}

/// What a flow had from its last record on, or from its start. A biflow in the words of RFC 5103: both
/// directions in one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// Whose it is, the inner endpoint first.
    pub key: FlowKey,
    /// When the flow's first packet came, in an earlier record maybe.
    pub began: Time,
    /// When the record's first packet came.
    pub start: Time,
    /// When its last packet came.
    pub end: Time,
    /// Which record of the flow this is, from 0.
    pub part: u32,
    /// Why it was made.
    pub reason: EndReason,
    /// Whether the flow's first packet came from the key's first endpoint.
    pub initiated_forward: bool,
    /// From the key's first endpoint to its second, and back.
    pub ways: [WayCounts; 2],
    /// ICMP errors about the flow. They are in no record.
    pub errors: u32,
}
