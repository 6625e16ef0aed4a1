//! Giving out external endpoints, and taking them back.

use std::net::Ipv4Addr;

use rheostat_base::{DropReason, Time};
use rheostat_packet::FlowKey;

use super::Nat;
use super::choice::{self, Wanted};
use super::config::{Filtering, Mapping};
use super::flow::{Binding, Endpoint, Ends, Translated};
use super::log::{MappingChange, MappingEvent};
use super::mapping::{External, InnerEndpoint, MappingId};
use super::pool::Part;
use super::ports::are_choosable;
use super::shard::NatShard;
use crate::cx::Flows;

/// Ports that are tried for a flow whose endpoint other flows may share: when so many are taken, the
/// next flow is refused, so that nobody can make the search long.
const TRIES: usize = 64;
/// Flows that outside may open to a mapping before inside answers any of them.
pub(super) const UNANSWERED: u32 = 64;

impl Nat {
    /// Finds an external endpoint for a flow that is opened from inside.
    pub(super) fn bind(
        &self,
        shard: &mut NatShard,
        flows: Flows<'_>,
        key: &FlowKey,
        (inner, remote): (Endpoint, Endpoint),
        now: Time,
    ) -> Result<(Ends, Binding), DropReason> {
        let protocol = key.protocol();
        if let Some(external) = self.rules.forwards.external(protocol, inner) {
            return Ok((Ends { inner, external, remote }, Binding::Fixed));
        }
        if self.rules.config.mapping == Mapping::EndpointIndependent && are_choosable(protocol) {
            let zone = key.zone();
            let endpoint = InnerEndpoint { address: inner.0, port: inner.1, protocol, zone };
            let id = match shard.mappings.find(&endpoint) {
                Some(id) => id,
                None => self.map(shard, endpoint, now)?,
            };
            shard.mappings.get_mut(id).kept_by += 1;
            self.grant(shard, id, remote.0);
            let External { address, port } = shard.mappings.get(id).external;
            let external = (self.rules.pool.address(address), port);
            return Ok((Ends { inner, external, remote }, Binding::Mapping { id, kept: true }));
        }
        if !self.take_from_quota(inner.0) {
            return Err(DropReason::QuotaExceeded);
        }
        let found = self.rules.pool.parts_of(inner.0).find_map(|part| {
            self.unshared(shard, flows, protocol, key.zone(), (inner, remote), &part)
        });
        let Some(external) = found else {
            self.give_back_to_quota(inner.0);
            return Err(DropReason::PortsExhausted);
        };
        let ends = Ends { inner, external, remote };
        self.count_created(shard, ends.inner, external);
        let event = self.event(MappingChange::Created, protocol, &ends, true, now);
        shard.note(event);
        Ok((ends, Binding::Own))
    }

    /// Makes a mapping for an endpoint inside that has none.
    fn map(
        &self,
        shard: &mut NatShard,
        inner: InnerEndpoint,
        now: Time,
    ) -> Result<MappingId, DropReason> {
        if !self.take_from_quota(inner.address) {
            return Err(DropReason::QuotaExceeded);
        }
        let found = self
            .rules
            .pool
            .parts_of(inner.address)
            .find_map(|part| self.free_port(shard, &inner, &part, now));
        let Some(external) = found else {
            self.give_back_to_quota(inner.address);
            return Err(DropReason::PortsExhausted);
        };
        let id = shard.mappings.insert(inner, external);
        let rank = shard.classes.of(inner.protocol).rank(external.port);
        if let Some(place) = shard.sets.place(external.address, inner.protocol, rank) {
            shard.sets.occupy(place, id);
        }
        let ends = self.ends_of(shard, id);
        self.count_created(shard, ends.inner, ends.external);
        let event = self.event(MappingChange::Created, inner.protocol, &ends, false, now);
        shard.note(event);
        Ok(id)
    }

    /// A port of `part` that no mapping has and that leads home.
    fn free_port(
        &self,
        shard: &mut NatShard,
        inner: &InnerEndpoint,
        part: &Part,
        now: Time,
    ) -> Option<External> {
        let (protocol, address) = (inner.protocol, self.rules.pool.address(part.address));
        let anybody = (Ipv4Addr::UNSPECIFIED, 0);
        let key = FlowKey::v4((address, 0), anybody, protocol, inner.zone);
        let NatShard { id, steering, classes, rng, sets, .. } = shard;
        let classes = classes.of(protocol);
        let class = classes.leading_to(*id, &key, steering);
        let usable = |port| {
            self.rules.forwards.internal(protocol, (address, port)).is_none()
                && sets
                    .place(part.address, protocol, classes.rank(port))
                    .is_some_and(|place| sets.is_usable(place, now))
        };
        let port = choice::choose(class, &self.wanted(inner.port, part), rng, usize::MAX, usable)?;
        Some(External { address: part.address, port })
    }

    /// An external endpoint of `part` that no other flow to `remote` has and that leads home.
    fn unshared(
        &self,
        shard: &mut NatShard,
        flows: Flows<'_>,
        protocol: u8,
        zone: u32,
        (inner, remote): (Endpoint, Endpoint),
        part: &Part,
    ) -> Option<Endpoint> {
        let address = self.rules.pool.address(part.address);
        let key = |port| {
            let external = (address, port);
            Ends { inner, external, remote }.external_key(protocol, zone)
        };
        if !are_choosable(protocol) {
            // The port, if there is one at all, stays as it is, and flows are placed by the remote address.
            return flows.is_free(&key(inner.1)).then_some((address, inner.1));
        }
        let NatShard { id, steering, classes, rng, .. } = shard;
        let class = classes.of(protocol).leading_to(*id, &key(0), steering);
        let usable = |port| {
            self.rules.forwards.internal(protocol, (address, port)).is_none()
                && flows.is_free(&key(port))
        };
        let port = choice::choose(class, &self.wanted(inner.1, part), rng, TRIES, usable)?;
        Some((address, port))
    }

    fn wanted(&self, inner: u16, part: &Part) -> Wanted {
        let privileged = !self.rules.pool.has_blocks();
        Wanted { inner, ports: part.ports.clone(), privileged }
    }

    /// Whom a packet from outside is for, if it may come in.
    pub(super) fn admit(
        &self,
        shard: &mut NatShard,
        key: &FlowKey,
        (external, remote): (Endpoint, Endpoint),
    ) -> Option<(Ends, Binding)> {
        let protocol = key.protocol();
        if let Some(inner) = self.rules.forwards.internal(protocol, external) {
            return Some((Ends { inner, external, remote }, Binding::Fixed));
        }
        if self.rules.config.mapping != Mapping::EndpointIndependent || !are_choosable(protocol) {
            return None;
        }
        let address = self.rules.pool.place(external.0)?;
        let rank = shard.classes.of(protocol).rank(external.1);
        let id = shard.sets.mapping(shard.sets.place(address, protocol, rank)?)?;
        let mapping = shard.mappings.get(id);
        let External { port, .. } = mapping.external;
        // A port of another class has the same rank.
        let is_it = port == external.1 && mapping.inner.zone == key.zone();
        let lets_in = match self.rules.config.filtering {
            Filtering::EndpointIndependent => true,
            Filtering::AddressDependent => shard.permissions.has(id, remote.0),
            Filtering::AddressAndPortDependent => false,
        };
        let in_use = mapping.kept_by > 0 && mapping.unanswered < UNANSWERED;
        if !is_it || !lets_in || !in_use {
            return None;
        }
        let inner = (mapping.inner.address, mapping.inner.port);
        shard.mappings.get_mut(id).unanswered += 1;
        Some((Ends { inner, external, remote }, Binding::Mapping { id, kept: false }))
    }

    /// Inside has answered a flow that outside has opened: from now on it keeps its mapping.
    #[cold]
    pub(super) fn keep(&self, shard: &mut NatShard, translated: &mut Translated) {
        let Binding::Mapping { id, kept: false } = translated.binding else { return };
        let mapping = shard.mappings.get_mut(id);
        mapping.unanswered -= 1;
        mapping.kept_by += 1;
        self.grant(shard, id, translated.ends.remote.0);
        translated.binding = Binding::Mapping { id, kept: true };
    }

    /// Whether a mapping is kept by any flow that inside has sent on.
    pub(super) fn is_kept(&self, shard: &NatShard, id: MappingId) -> bool {
        shard.mappings.get(id).kept_by > 0
    }

    /// Takes back what a flow that ends had.
    pub(super) fn release(
        &self,
        shard: &mut NatShard,
        protocol: u8,
        Translated { ends, binding, .. }: Translated,
        now: Time,
    ) {
        match binding {
            Binding::Fixed => {}
            Binding::Own => {
                self.give_back_to_quota(ends.inner.0);
                shard.counts.ended += 1;
                let event = self.event(MappingChange::Ended, protocol, &ends, true, now);
                shard.note(event);
            }
            Binding::Mapping { id, kept } => {
                if kept && self.rules.config.filtering == Filtering::AddressDependent {
                    shard.permissions.revoke(id, ends.remote.0);
                }
                let mapping = shard.mappings.get_mut(id);
                if kept {
                    mapping.kept_by -= 1;
                } else {
                    mapping.unanswered -= 1;
                }
                if mapping.kept_by == 0 && mapping.unanswered == 0 {
                    self.unmap(shard, id, now);
                }
            }
        }
    }

    fn unmap(&self, shard: &mut NatShard, id: MappingId, now: Time) {
        let ends = self.ends_of(shard, id);
        let mapping = shard.mappings.remove(id);
        let InnerEndpoint { address, protocol, .. } = mapping.inner;
        let rank = shard.classes.of(protocol).rank(mapping.external.port);
        if let Some(place) = shard.sets.place(mapping.external.address, protocol, rank) {
            shard.sets.release(place, now, self.rules.config.rest);
        }
        self.give_back_to_quota(address);
        shard.counts.ended += 1;
        let event = self.event(MappingChange::Ended, protocol, &ends, false, now);
        shard.note(event);
    }

    /// The endpoints of a mapping, without a remote one.
    fn ends_of(&self, shard: &NatShard, id: MappingId) -> Ends {
        let mapping = shard.mappings.get(id);
        let External { address, port } = mapping.external;
        Ends {
            inner: (mapping.inner.address, mapping.inner.port),
            external: (self.rules.pool.address(address), port),
            remote: (Ipv4Addr::UNSPECIFIED, 0),
        }
    }

    fn grant(&self, shard: &mut NatShard, id: MappingId, remote: Ipv4Addr) {
        if self.rules.config.filtering == Filtering::AddressDependent {
            shard.permissions.grant(id, remote);
        }
    }

    fn count_created(&self, shard: &mut NatShard, inner: Endpoint, external: Endpoint) {
        shard.counts.created += 1;
        shard.counts.preserved += u64::from(inner.1 == external.1);
    }

    fn event(
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

    fn take_from_quota(&self, host: Ipv4Addr) -> bool {
        self.quota.as_ref().is_none_or(|quota| quota.take(host.into()))
    }

    fn give_back_to_quota(&self, host: Ipv4Addr) {
        if let Some(quota) = &self.quota {
            quota.give_back(host.into());
        }
    }
}
