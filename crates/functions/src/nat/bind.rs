//! Giving out external endpoints; [`release`](super::release) takes them back.
//!
//! A new flow gets a free port. When there is none, it takes over one whose connections are properly
//! over, preferably one that the flow's SYN proves to be free for it (see [`closing`](super::closing)), else one
//! that has been unused for long. When there is none of those either, the host with the most unanswered ports in
//! this shard loses its oldest. All of this is decided in the shard that lacks a port, so the number of lanes does
//! not matter.

use std::net::Ipv4Addr;

use rheostat_base::{DropReason, Time};
use rheostat_packet::FlowKey;
use rheostat_state::{FlowId, Handle};

use super::Nat;
use super::choice::Suitable;
use super::closing::Opening;
use super::config::{Filtering, Mapping};
use super::flow::{Binding, Endpoint, Ends, FlowState, Stage, Translated};
use super::log::{MappingChange, MappingEvent};
use super::mapping::{External, InnerEndpoint, MappingId, Use};
use super::pool::Part;
use super::ports::are_choosable;
use super::shard::{Class, NatShard};
use super::supply::SUPPLIES;
use rheostat_nf::Flows;

/// Flows that outside may open to a mapping before inside answers any of them.
pub(super) const UNANSWERED: u8 = 64;

/// A flow from inside that asks for an external endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) key: FlowKey,
    pub(super) inner: Endpoint,
    pub(super) remote: Endpoint,
    /// Its SYN, if it opens a connection.
    pub(super) opening: Option<Opening>,
    pub(super) now: Time,
}

/// What a flow has got.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) ends: Ends,
    pub(super) binding: Binding,
    pub(super) mapping: MappingId,
    /// The flow that had this endpoint towards this remote one before, and has to end.
    pub(super) displaced: Option<FlowId>,
}

impl Nat {
    /// Finds an external endpoint for a flow that is opened from inside.
    pub(super) fn bind(
        &self,
        shard: &mut NatShard,
        flows: Flows<'_>,
        request: &Request,
    ) -> Result<Bound, DropReason> {
        let Request { key, inner, remote, now, .. } = *request;
        let (protocol, zone) = (key.protocol(), key.zone());
        shard.zone = zone;
        let none = MappingId(0);
        if let Some(external) = self.rules.forwards.external(protocol, inner) {
            let ends = Ends { inner, external, remote };
            return Ok(Bound { ends, binding: Binding::Fixed, mapping: none, displaced: None });
        }
        if self.rules.config.mapping == Mapping::EndpointIndependent && are_choosable(protocol) {
            let endpoint = InnerEndpoint { address: inner.0, port: inner.1, protocol, zone };
            // What a new mapping takes its port from, while the search for one goes on.
            if let Some(part) = self.rules.pool.parts_of(inner.0).next() {
                shard.sets.prefetch(part.address, protocol);
            }
            let id = match shard.mappings.find(&endpoint) {
                Some(id) => {
                    let is_counted = shard.mappings.get(id).usage() != Use::Closed;
                    if !is_counted && self.is_quota_used_up(inner.0) {
                        return Err(DropReason::QuotaExceeded);
                    }
                    id
                }
                None => self.map(shard, flows, endpoint, request)?,
            };
            self.change(shard, id, super::mapping::Mapping::join);
            self.grant(shard, id, remote.0);
            let External { address, port } = shard.mappings.get(id).external;
            let external = (self.rules.pool.address(address), port);
            let ends = Ends { inner, external, remote };
            // A connection of the mapping that had the port before.
            let displaced =
                self.displaceable(shard.place, flows, &ends.external_key(protocol, zone));
            return Ok(Bound { ends, binding: Binding::Mapping, mapping: id, displaced });
        }
        if !self.take_from_quota(inner.0) {
            return Err(DropReason::QuotaExceeded);
        }
        let found = SUPPLIES.into_iter().find_map(|supply| {
            let mut parts = self.rules.pool.parts_of(inner.0);
            parts.find_map(|part| self.unshared(supply, shard, flows, request, &part))
        });
        let Some((external, displaced)) = found else {
            self.give_back_to_quota(inner.0);
            return Err(DropReason::PortsExhausted);
        };
        let ends = Ends { inner, external, remote };
        self.count_created(shard, ends.inner, external);
        let event = self.event(MappingChange::Created, protocol, &ends, true, now);
        shard.note(event);
        Ok(Bound { ends, binding: Binding::Own, mapping: none, displaced })
    }

    /// The flow that has `key`, if it can end for another: it is not answered, or it is over.
    pub(super) fn displaceable(
        &self,
        place: Handle<FlowState>,
        flows: Flows<'_>,
        key: &FlowKey,
    ) -> Option<FlowId> {
        let seen = flows.look_at(key, place)?;
        (seen.state.stage != Stage::Firm).then_some(seen.id)
    }

    /// Whether flows may get an external endpoint: the configuration has not given it away.
    pub(super) fn is_dynamic(&self, protocol: u8, external: Endpoint) -> bool {
        self.rules.forwards.internal(protocol, external).is_none()
    }

    /// Which ports of a class suit a flow from the port `inner`, of a host that may have `part`.
    pub(super) fn suitable(&self, class: Class<'_>, inner: u16, part: &Part) -> Suitable {
        class.suitable(inner, part, !self.rules.pool.has_blocks())
    }

    /// The inner endpoint that a packet from outside is for, if it may come in.
    pub(super) fn admit(
        &self,
        shard: &mut NatShard,
        key: &FlowKey,
        (external, remote): (Endpoint, Endpoint),
    ) -> Option<(Ends, Binding, MappingId)> {
        let protocol = key.protocol();
        if let Some(inner) = self.rules.forwards.internal(protocol, external) {
            return Some((Ends { inner, external, remote }, Binding::Fixed, MappingId(0)));
        }
        if self.rules.config.mapping != Mapping::EndpointIndependent || !are_choosable(protocol) {
            return None;
        }
        let address = self.rules.pool.place(external.0)?;
        let rank = shard.classes.of(protocol).rank(external.1);
        let id = shard.sets.get(address, protocol)?.mapping(rank)?;
        let mapping = shard.mappings.get(id);
        // A port of another class has the same rank.
        let inner = mapping.inner();
        let is_it = mapping.external.port == external.1 && inner.zone == key.zone();
        let lets_in = match self.rules.config.filtering {
            Filtering::EndpointIndependent => true,
            Filtering::AddressDependent => {
                mapping.permits(remote.0) || shard.permissions.has(id, remote.0)
            }
            Filtering::AddressAndPortDependent => false,
        };
        let in_use = mapping.is_kept() && mapping.unanswered < UNANSWERED;
        if !is_it || !lets_in || !in_use {
            return None;
        }
        shard.mappings.get_mut(id).unanswered += 1;
        let inner = (inner.address, inner.port);
        Some((Ends { inner, external, remote }, Binding::Asked, id))
    }

    /// Inside has answered a flow that outside has opened: from now on it keeps its mapping.
    pub(super) fn keep(&self, shard: &mut NatShard, translated: &mut Translated) {
        let id = translated.mapping;
        shard.mappings.get_mut(id).unanswered -= 1;
        self.change(shard, id, super::mapping::Mapping::join);
        self.grant(shard, id, translated.ends.remote.0);
        translated.binding = Binding::Mapping;
    }

    pub(super) fn grant(&self, shard: &mut NatShard, id: MappingId, remote: Ipv4Addr) {
        let counts = self.rules.config.filtering == Filtering::AddressDependent;
        if counts && !shard.mappings.get_mut(id).grant(remote) {
            shard.permissions.grant(id, remote);
        }
    }

    pub(super) fn count_created(&self, shard: &mut NatShard, inner: Endpoint, external: Endpoint) {
        shard.counts.created += 1;
        shard.counts.preserved += u64::from(inner.1 == external.1);
    }

    pub(super) fn event(
        &self,
        change: MappingChange,
        protocol: u8,
        ends: &Ends,
        has_remote: bool,
        time: Time,
    ) -> MappingEvent {
        let Ends { inner, external, remote } = *ends;
        MappingEvent {
            time,
            change,
            protocol,
            inner,
            external,
            remote: has_remote.then_some(remote),
        }
    }

    pub(super) fn take_from_quota(&self, host: Ipv4Addr) -> bool {
        self.quota.as_ref().is_none_or(|quota| quota.take(host.into()))
    }

    /// Takes one, whatever the host has: a connection that was over goes on.
    pub(super) fn take_anyway(&self, host: Ipv4Addr) {
        if let Some(quota) = &self.quota {
            quota.take_anyway(host.into());
        }
    }

    /// Whether a host may have no more ports.
    pub(super) fn is_quota_used_up(&self, host: Ipv4Addr) -> bool {
        self.quota.as_ref().is_some_and(|quota| quota.is_used_up(host.into()))
    }

    pub(super) fn give_back_to_quota(&self, host: Ipv4Addr) {
        if let Some(quota) = &self.quota {
            quota.give_back(host.into());
        }
    }
}
