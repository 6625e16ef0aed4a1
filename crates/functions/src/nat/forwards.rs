//! External endpoints with a fixed inner one.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use rheostat_base::{ShardId, Time};
use rheostat_nf::registry::{Rule, RuleCounters};
use rheostat_packet::wire::protocol::ProtocolName;

use super::config::Forward;

impl Forward {
    /// The forward as listings show it.
    fn named(&self) -> Rule {
        let (protocol, (address, port), inner) =
            (ProtocolName(self.protocol), self.external, self.internal);
        Rule {
            name: format!("{protocol} {address}:{port}"),
            text: format!("forward to {}:{}", inner.0, inner.1),
        }
    }
}

/// Static forwards, found from either end.
#[derive(Clone, Debug, Default)]
pub(super) struct Forwards {
    /// The place of each external endpoint in the configuration.
    places: HashMap<(u8, Ipv4Addr, u16), usize>,
    counters: Arc<RuleCounters>,
    by_external: HashMap<(u8, Ipv4Addr, u16), (Ipv4Addr, u16)>,
    by_internal: HashMap<(u8, Ipv4Addr, u16), (Ipv4Addr, u16)>,
}

impl Forwards {
    pub(super) fn new(forwards: &[Forward]) -> Forwards {
        let counters = Arc::new(RuleCounters::new(forwards.iter().map(Forward::named)));
        let mut found = Forwards { counters, ..Forwards::default() };
        for (place, forward) in forwards.iter().enumerate() {
            let Forward { protocol, external, internal } = *forward;
            found.places.insert((protocol, external.0, external.1), place);
            found.by_external.insert((protocol, external.0, external.1), internal);
            // Of several ways in, the first is the way out.
            found.by_internal.entry((protocol, internal.0, internal.1)).or_insert(external);
        }
        found
    }

    /// How often each forward has opened a flow, in the order of the configuration.
    pub(super) fn counters(&self) -> Arc<RuleCounters> {
        self.counters.clone()
    }

    /// Counts a flow of the forward at this place. Only the lane that has the shard may call it.
    pub(super) fn count(&self, place: usize, shard: ShardId, bytes: usize, now: Time) {
        self.counters.count(place, shard, bytes, now);
    }

    /// The place of the forward with this external endpoint among the counters.
    pub(super) fn place(&self, protocol: u8, end: (Ipv4Addr, u16)) -> Option<usize> {
        self.places.get(&(protocol, end.0, end.1)).copied()
    }

    /// Where packets to this external endpoint go.
    pub(super) fn internal(&self, protocol: u8, end: (Ipv4Addr, u16)) -> Option<(Ipv4Addr, u16)> {
        self.by_external.get(&(protocol, end.0, end.1)).copied()
    }

    /// What stands for this inner endpoint.
    pub(super) fn external(&self, protocol: u8, end: (Ipv4Addr, u16)) -> Option<(Ipv4Addr, u16)> {
        self.by_internal.get(&(protocol, end.0, end.1)).copied()
    }

    /// The ways in: protocol, external endpoint and inner one.
    pub(super) fn inbound(&self) -> impl Iterator<Item = (u8, (Ipv4Addr, u16), (Ipv4Addr, u16))> {
        self.by_external
            .iter()
            .map(|(&(protocol, address, port), &internal)| (protocol, (address, port), internal))
    }

    /// The fixed translations, inner endpoint to external one.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u8, (Ipv4Addr, u16), (Ipv4Addr, u16))> {
        self.by_internal
            .iter()
            .map(|(&(protocol, address, port), &external)| (protocol, (address, port), external))
    }
}
