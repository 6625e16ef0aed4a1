//! Properties of a configured function that other parts of a configuration depend on.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use rheostat_steer::{PacketSet, PrefixList};

/// Where a function keeps what it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowPlace {
    /// It keeps nothing of flows.
    Nowhere,
    /// In shards and nowhere else: the lanes that share a queue own these together, and flows can leave for offloading lanes.
    #[default]
    Shards,
    /// In objects that all lanes share.
    Objects,
    /// In objects that all lanes share, and in shards besides: a transaction is about packets of several shards.
    ObjectsAndShards,
}

/// Properties of a configured function that other parts of a configuration depend on. The default is a function that keeps
/// little state of flows in shards, and nothing else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionFacts {
    /// Where it keeps what it knows of flows.
    pub flows: FlowPlace,
    /// The header fields that its packets may be placed by, where these are not addresses, ports and protocol.
    pub steering: Option<PacketSet>,
    /// Whether flows may have a second key.
    pub second_key: bool,
    /// Whether its state of a flow takes more than 64 bytes.
    pub large_state: bool,
    /// Whether devices stand on no side: its packets come from any number of them, and leave by others.
    pub without_sides: bool,
    /// Whether its devices are ports of a bridge, which have no addresses.
    pub bridges: bool,
    /// Whether its devices must have addresses.
    pub needs_addresses: bool,
    /// The hosts whose addresses it translates, if it translates; empty for all that send from inside.
    pub translated: Option<PrefixList>,
    /// Whether it distinguishes hosts inside by their addresses, so that it cannot stand behind a function that translates these.
    pub by_inner_address: bool,
    /// The ports that it gives flows, if it does.
    pub ports: Option<RangeInclusive<u16>>,
    /// The addresses it stands for: packets to them are the chain's.
    pub served: Vec<IpAddr>,
}

impl FunctionFacts {
    /// Whether its flows are in shards and nowhere else.
    pub fn owns_flows(&self) -> bool {
        self.flows == FlowPlace::Shards
    }

    /// The header fields that its packets may be placed by.
    pub fn steering(&self) -> PacketSet {
        match self.flows {
            FlowPlace::Nowhere | FlowPlace::Objects => PacketSet::NONE,
            FlowPlace::Shards | FlowPlace::ObjectsAndShards => {
                self.steering.unwrap_or(PacketSet::five_tuple())
            }
        }
    }

    /// Whether it works on shared objects and keeps state of flows in shards besides.
    pub fn spans_shards(&self) -> bool {
        self.flows == FlowPlace::ObjectsAndShards
    }

    /// Whether it looks at addresses and ports of packets.
    pub fn knows_flows(&self) -> bool {
        self.flows != FlowPlace::Nowhere && !self.bridges
    }
}
