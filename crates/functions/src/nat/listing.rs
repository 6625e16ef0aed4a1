//! What the NAT lists: of a flow its translation, and beside flows the mappings of a shard and the forwards of the configuration.

use std::net::SocketAddrV4;

use rheostat_nf::{ListCx, Lists};
use rheostat_packet::FlowKey;
use rheostat_run::listing::ListedFields;

use super::flow::{Binding, Endpoint, FlowState, Stage};
use super::forwards::Forwards;
use super::mapping::{Mapping, Use};
use super::pool::Pool;
use super::{Nat, NatShard};

impl Lists for Nat {
    fn list(
        &self,
        cx: ListCx<'_, NatShard>,
        _: &FlowKey,
        flow: &FlowState,
        into: &mut ListedFields,
    ) {
        into.opened(flow.opened_inside);
        let Some(translated) = &flow.translated else {
            return into.text("mapping", "none");
        };
        let mapping = match translated.binding {
            Binding::Fixed => "forward",
            Binding::Mapping | Binding::Asked => "shared",
            Binding::Own => "own",
        };
        let stage = match flow.stage {
            Stage::Waiting => "unanswered",
            Stage::Firm => "answered",
            Stage::Closed => "over",
        };
        let ends = &translated.ends;
        into.text("mapping", mapping);
        into.text("state", stage);
        into.endpoint("inside", socket(ends.inner));
        into.endpoint("outside", socket(ends.external));
        into.endpoint("peer", socket(ends.remote));
        if translated.is_hairpin {
            into.flag("hairpin", true);
        }
        if self.has_lost_port(cx.shard, translated) {
            into.flag("lost_port", true);
        }
    }

    fn entries(
        &self,
        cx: ListCx<'_, NatShard>,
        from: u32,
        most: usize,
        into: &mut Vec<ListedFields>,
    ) -> Option<u32> {
        let (next, mappings) = cx.shard.mappings.from(from, most);
        into.extend(mappings.map(|mapping| of_mapping(mapping, &self.rules.pool)));
        next
    }

    fn fixed_entries(&self, into: &mut Vec<ListedFields>) {
        of_forwards(&self.rules.forwards, into);
    }
}

/// The forwards of a configuration.
pub(super) fn of_forwards(forwards: &Forwards, into: &mut Vec<ListedFields>) {
    let mut all: Vec<_> = forwards.inbound().collect();
    all.sort_unstable();
    for (protocol, external, inner) in all {
        let mut fields = ListedFields::default();
        fields.text("kind", "forward");
        fields.number("protocol", protocol.into());
        fields.endpoint("inside", socket(inner));
        fields.endpoint("outside", socket(external));
        into.push(fields);
    }
}

fn of_mapping(mapping: &Mapping, pool: &Pool) -> ListedFields {
    let inner = mapping.inner();
    let external = (pool.address(mapping.external.address), mapping.external.port);
    let mut fields = ListedFields::default();
    fields.text("kind", "shared");
    fields.number("protocol", inner.protocol.into());
    fields.endpoint("inside", socket((inner.address, inner.port)));
    fields.endpoint("outside", socket(external));
    let state = match mapping.usage() {
        Use::Lost => "lost",
        Use::Held => "held",
        Use::Waiting => "unanswered",
        Use::Closed => "over",
    };
    fields.text("state", state);
    let (kept, unanswered) = mapping.flows();
    fields.number("flows", kept.into());
    if unanswered > 0 {
        fields.number("unanswered", unanswered.into());
    }
    if inner.zone != 0 {
        fields.number("zone", inner.zone.into());
    }
    fields
}

pub(super) fn socket((address, port): Endpoint) -> SocketAddrV4 {
    SocketAddrV4::new(address, port)
}
