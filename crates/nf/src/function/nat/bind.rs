//! Giving out external endpoints, and taking them back.
//!
//! A new flow gets a port that nobody has. When there is none, it takes over one whose connections are properly
//! over, preferably one that the flow's SYN proves to be free for it (see [`closing`](super::closing)), else one
//! that has been unused for long. When there is none of those either, the host with the most unanswered ports in
//! this shard loses its oldest. All of this is decided in the shard that lacks a port, so the number of lanes does
//! not matter.

use std::net::Ipv4Addr;

use rheostat_base::{DropReason, Time};
use rheostat_packet::FlowKey;
use rheostat_state::FlowId;

use super::Nat;
use super::choice::{Look, Suitable, Wanted};
use super::closing::Opening;
use super::config::{Filtering, Mapping};
use super::crowd::{Crowd, Holding, Way};
use super::flow::{Binding, Endpoint, Ends, FlowState, Stage, Translated};
use super::log::{MappingChange, MappingEvent};
use super::mapping::{External, InnerEndpoint, MappingId, Use};
use super::pool::Part;
use super::ports::{PortSet, are_choosable};
use super::rank_set::RankSet;
use super::shard::NatShard;
use crate::cx::{Flows, Seen};

/// Ports that are tried before those of a remote endpoint are kept in sets.
const TRIES: usize = 16;
/// Ports whose connections are over that are looked at for one that a SYN proves to be free.
const LOOKS: usize = 64;
/// Flows that outside may open to a mapping before inside answers any of them.
pub(super) const UNANSWERED: u8 = 64;

/// Where ports come from, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Supply {
    /// Nobody has them.
    Free,
    /// Their connections are over.
    Spent,
    /// Nobody has answered their flows.
    Waiting,
}

const SUPPLIES: [Supply; 3] = [Supply::Free, Supply::Spent, Supply::Waiting];

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
            let displaced = self.displaceable(flows, &ends.external_key(protocol, zone));
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

    /// Makes a mapping for an endpoint inside that has none.
    fn map(
        &self,
        shard: &mut NatShard,
        flows: Flows<'_>,
        inner: InnerEndpoint,
        request: &Request,
    ) -> Result<MappingId, DropReason> {
        if !self.take_from_quota(inner.address) {
            return Err(DropReason::QuotaExceeded);
        }
        let found = SUPPLIES.into_iter().find_map(|supply| {
            let mut parts = self.rules.pool.parts_of(inner.address);
            parts.find_map(|part| self.port_of(supply, shard, flows, &inner, &part, request))
        });
        let Some((external, rank)) = found else {
            self.give_back_to_quota(inner.address);
            return Err(DropReason::PortsExhausted);
        };
        let set = shard.sets.get(external.address, inner.protocol);
        if let Some(former) = set.and_then(|set| set.mapping(rank)) {
            self.dispossess(shard, former, request.now);
        }
        let id = shard.mappings.insert(inner, external);
        if let Some(set) = shard.sets.get_mut(external.address, inner.protocol) {
            set.occupy(rank, id);
        }
        let ends = self.ends_of(shard, id);
        self.count_created(shard, ends.inner, ends.external);
        let event = self.event(MappingChange::Created, inner.protocol, &ends, false, request.now);
        shard.note(event);
        Ok(id)
    }

    /// A port of `part` from this supply that leads home, and its rank.
    fn port_of(
        &self,
        supply: Supply,
        shard: &mut NatShard,
        flows: Flows<'_>,
        inner: &InnerEndpoint,
        part: &Part,
        request: &Request,
    ) -> Option<(External, usize)> {
        let (protocol, address) = (inner.protocol, self.rules.pool.address(part.address));
        let anybody = (Ipv4Addr::UNSPECIFIED, 0);
        let key = FlowKey::v4((address, 0), anybody, protocol, inner.zone);
        let NatShard { id, steering, classes, rng, sets, .. } = shard;
        let class = classes.of(protocol).leading_to(*id, &key, steering);
        let set = sets.get_or_make(part.address, protocol, || {
            PortSet::new(class.len(), |rank| self.is_dynamic(protocol, (address, class[rank])))
        })?;
        set.wake(request.now);
        let suitable = Suitable::of(class, &self.wanted(inner.port, part));
        let rank = match supply {
            Supply::Free => suitable.choose(&set.free, rng),
            Supply::Waiting => {
                set.waiting.oldest_of_largest(inner.address, |rank| suitable.contains(rank))
            }
            Supply::Spent => self.spent(&suitable, &set.spent, rng, |rank| {
                let external = (address, class[rank]);
                let ends = Ends { inner: request.inner, external, remote: request.remote };
                match self.seen(flows, &ends.external_key(protocol, inner.zone)) {
                    Some(seen) => self.proof(&seen, request),
                    // To this remote endpoint, the port was not used of late, if it is known for what it was.
                    None => match set.rests_until(rank) {
                        Some(until) => Proof::UnusedSince(before(until, self.rules.config.rest)),
                        None => Proof::Given,
                    },
                }
            }),
        }?;
        let port = class[rank];
        Nat::count_supply(shard, supply);
        Some((External { address: part.address, port }, rank))
    }

    /// Counts where a port came from.
    fn count_supply(shard: &mut NatShard, supply: Supply) {
        shard.counts.reused += u64::from(supply == Supply::Spent);
        shard.counts.taken += u64::from(supply == Supply::Waiting);
    }

    /// One of the ports that others need no more: the first of those looked at for which there is proof, else
    /// the one of them that was not used for the longest time.
    fn spent(
        &self,
        suitable: &Suitable,
        spent: &RankSet,
        rng: &mut impl rand::Rng,
        proof: impl Fn(usize) -> Proof,
    ) -> Option<usize> {
        let mut oldest: Option<(Time, usize)> = None;
        let proven = suitable.some_of(spent, rng, LOOKS, |rank| match proof(rank) {
            Proof::Given => Look::Taken,
            Proof::UnusedSince(time) => {
                let found = (time, rank);
                oldest = Some(oldest.map_or(found, |known| known.min(found)));
                Look::Next
            }
        });
        proven.or(oldest.map(|(_, rank)| rank))
    }

    /// What shows that a port is free for a request, given the flow that had it towards the same remote
    /// endpoint.
    fn proof(&self, seen: &Seen<'_, FlowState>, request: &Request) -> Proof {
        let closing = &seen.state.closing;
        let is_proven = closing.is_over()
            && request.opening.is_some_and(|opening| closing.is_outlived_by(opening));
        match is_proven {
            true => Proof::Given,
            false => {
                Proof::UnusedSince(before(seen.deadline, self.rules.config.timeouts.tcp_time_wait))
            }
        }
    }

    /// The flow that has `key`, if it can end for another: it is not answered, or it is over.
    pub(super) fn displaceable(&self, flows: Flows<'_>, key: &FlowKey) -> Option<FlowId> {
        let seen = self.seen(flows, key)?;
        (seen.state.stage != Stage::Firm).then_some(seen.id)
    }

    fn seen<'a>(&self, flows: Flows<'a>, key: &FlowKey) -> Option<Seen<'a, FlowState>> {
        flows.look_at(key, self.place?)
    }

    /// An external endpoint of `part` from this supply that leads home and that no other flow to the same
    /// remote endpoint has; and the flow that has had it.
    fn unshared(
        &self,
        supply: Supply,
        shard: &mut NatShard,
        flows: Flows<'_>,
        request: &Request,
        part: &Part,
    ) -> Option<(Endpoint, Option<FlowId>)> {
        let Request { key: named, inner, remote, now, .. } = *request;
        let (protocol, zone) = (named.protocol(), named.zone());
        let address = self.rules.pool.address(part.address);
        let key = |port| {
            let external = (address, port);
            Ends { inner, external, remote }.external_key(protocol, zone)
        };
        if !are_choosable(protocol) {
            // The port, if there is one at all, stays as it is, and flows are placed by the remote address.
            let is_free = supply == Supply::Free && flows.is_free(&key(inner.1));
            return is_free.then_some(((address, inner.1), None));
        }
        let NatShard { id, steering, classes, rng, crowds, .. } = shard;
        let class = classes.of(protocol).leading_to(*id, &key(0), steering);
        let suitable = Suitable::of(class, &self.wanted(inner.1, part));
        let way = Way::new(address, remote, protocol, zone);
        let usable = |port| self.is_dynamic(protocol, (address, port)) && flows.is_free(&key(port));
        let crowd = match crowds.get_mut(&way) {
            Some(crowd) => crowd,
            None if supply == Supply::Free && suitable.len() > 0 => {
                let tried = suitable.try_some(rng, TRIES, |rank| usable(class[rank]));
                if let Some(rank) = tried {
                    return Some(((address, class[rank]), None));
                }
                let holding = |rank: usize| match self.is_dynamic(protocol, (address, class[rank]))
                {
                    true => flows.find(&key(class[rank])).map(|_| {
                        let seen = self.seen(flows, &key(class[rank]));
                        seen.map_or(Holding::Kept, |seen| seen.state.holding())
                    }),
                    false => Some(Holding::Kept),
                };
                let ports = &self.rules.config.ports;
                let ports = class.iter().filter(|port| ports.contains(port)).count();
                let crowd = Crowd::new(class.len(), (suitable.len() / 2).max(1), ports, holding);
                crowds.insert(way, crowd);
                crowds.get_mut(&way)?
            }
            None => return None,
        };
        let rank = match supply {
            Supply::Free => suitable.choose(&crowd.free, rng),
            Supply::Waiting => {
                crowd.waiting.oldest_of_largest(inner.0, |rank| suitable.contains(rank))
            }
            Supply::Spent => self.spent(&suitable, &crowd.spent, rng, |rank| {
                match self.seen(flows, &key(class[rank])) {
                    Some(seen) => self.proof(&seen, request),
                    None => Proof::Given,
                }
            }),
        }?;
        let port = class[rank];
        let former = self.seen(flows, &key(port));
        if let Some(former) = &former {
            crowd.let_go(rank, former.state.translated.map_or(inner.0, |t| t.ends.inner.0));
        }
        crowd.hold(rank, Holding::Waiting(inner.0));
        if let Some(Seen { state, .. }) = &former
            && let Some(Translated { ends, .. }) = state.translated
        {
            self.end_own(shard, protocol, &ends, state.stage, now);
            shard.displaced = Some(ends);
        }
        Nat::count_supply(shard, supply);
        Some(((address, port), former.map(|seen| seen.id)))
    }

    /// Whether flows may get an external endpoint: the configuration has not given it away.
    fn is_dynamic(&self, protocol: u8, external: Endpoint) -> bool {
        self.rules.forwards.internal(protocol, external).is_none()
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
            Filtering::AddressDependent => shard.permissions.has(id, remote.0),
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

    /// A flow that waited has been answered, is over, or is not over after all.
    #[cold]
    pub(super) fn turn(&self, shard: &mut NatShard, zone: u32, state: &mut FlowState, to: Stage) {
        let from = std::mem::replace(&mut state.stage, to);
        let Some(Translated { ends, binding, mapping, .. }) = state.translated else { return };
        match binding {
            Binding::Fixed | Binding::Asked => {}
            Binding::Mapping => self.change(shard, mapping, |mapping| {
                if from != Stage::Firm {
                    mapping.firm_up();
                }
                if to != Stage::Firm {
                    mapping.loosen();
                }
            }),
            Binding::Own => {
                match (from, to) {
                    (_, Stage::Closed) => self.give_back_to_quota(ends.inner.0),
                    (Stage::Closed, _) => self.take_anyway(ends.inner.0),
                    _ => {}
                }
                let way = Way::of(&ends, state.protocol, zone);
                let rank = shard.classes.of(state.protocol).rank(ends.external.1);
                if let Some(crowd) = shard.crowds.get_mut(&way) {
                    crowd.unmark(rank, ends.inner.0);
                    crowd.mark(rank, state.holding());
                }
            }
        }
    }

    /// Whether another mapping has got the port of a flow's.
    pub(super) fn has_lost_port(&self, shard: &NatShard, translated: &Translated) -> bool {
        let has_mapping = matches!(translated.binding, Binding::Mapping | Binding::Asked);
        has_mapping && shard.mappings.get(translated.mapping).usage() == Use::Lost
    }

    /// Whether a mapping is kept by any flow that inside has sent on.
    pub(super) fn is_kept(&self, shard: &NatShard, id: MappingId) -> bool {
        let mapping = shard.mappings.get(id);
        mapping.is_kept() && mapping.usage() != Use::Lost
    }

    /// Takes back what a flow that ends had. `has_rested` says that the flow's connection was over, and that
    /// its time has passed since: its port need not rest.
    pub(super) fn release(
        &self,
        shard: &mut NatShard,
        (protocol, zone): (u8, u32),
        (translated, stage): (Translated, Stage),
        now: Time,
        has_rested: bool,
    ) {
        let Translated { ends, binding, mapping: id, .. } = translated;
        match binding {
            Binding::Fixed => return,
            Binding::Own => {
                // Another flow has the endpoint already, and its end is noted.
                if shard.displaced.take_if(|displaced| *displaced == ends).is_none() {
                    let rank = shard.classes.of(protocol).rank(ends.external.1);
                    shard.crowds.release(&Way::of(&ends, protocol, zone), rank, ends.inner.0);
                    self.end_own(shard, protocol, &ends, stage, now);
                }
                return;
            }
            Binding::Asked => shard.mappings.get_mut(id).unanswered -= 1,
            Binding::Mapping => {
                if self.rules.config.filtering == Filtering::AddressDependent {
                    shard.permissions.revoke(id, ends.remote.0);
                }
                self.change(shard, id, |mapping| mapping.leave(stage == Stage::Firm));
            }
        }
        if shard.mappings.get(id).is_unused() {
            self.unmap(shard, id, now, has_rested);
            shard.mappings.remove(id);
        }
    }

    /// An endpoint that a flow had for itself is taken back.
    fn end_own(&self, shard: &mut NatShard, protocol: u8, ends: &Ends, stage: Stage, now: Time) {
        if stage != Stage::Closed {
            self.give_back_to_quota(ends.inner.0);
        }
        shard.counts.ended += 1;
        let event = self.event(MappingChange::Ended, protocol, ends, true, now);
        shard.note(event);
    }

    /// Takes a port away from a mapping, for another to have it at once. The mapping's flows end on their own.
    fn dispossess(&self, shard: &mut NatShard, id: MappingId, now: Time) {
        self.end_mapping(shard, id, now);
        let rank = self.rank_of(shard, id);
        let mapping = shard.mappings.get_mut(id);
        let (external, protocol) = (mapping.external, mapping.inner().protocol);
        mapping.lose();
        shard.mappings.unlink(id);
        if let Some(set) = shard.sets.get_mut(external.address, protocol) {
            set.vacate(rank);
        }
    }

    /// The last flow of a mapping ends: its port rests, if it still has it.
    fn unmap(&self, shard: &mut NatShard, id: MappingId, now: Time, has_rested: bool) {
        if shard.mappings.get(id).usage() == Use::Lost {
            return;
        }
        self.end_mapping(shard, id, now);
        let rank = self.rank_of(shard, id);
        let mapping = shard.mappings.get(id);
        let (external, protocol) = (mapping.external, mapping.inner().protocol);
        let rest = if has_rested { std::time::Duration::ZERO } else { self.rules.config.rest };
        if let Some(set) = shard.sets.get_mut(external.address, protocol) {
            set.release(rank, now, rest, protocol == super::TCP);
        }
    }

    /// The endpoint of a mapping that has its port is taken back: counted, noted, and no longer anything to
    /// others.
    fn end_mapping(&self, shard: &mut NatShard, id: MappingId, now: Time) {
        let ends = self.ends_of(shard, id);
        let mapping = shard.mappings.get(id);
        let (usage, protocol) = (mapping.usage(), mapping.inner().protocol);
        self.use_changes(shard, id, usage, Use::Held);
        self.give_back_to_quota(ends.inner.0);
        shard.counts.ended += 1;
        let event = self.event(MappingChange::Ended, protocol, &ends, false, now);
        shard.note(event);
    }

    /// Changes a mapping, and what its port is for others with it.
    fn change(
        &self,
        shard: &mut NatShard,
        id: MappingId,
        change: impl FnOnce(&mut super::mapping::Mapping),
    ) {
        let mapping = shard.mappings.get_mut(id);
        let before = mapping.usage();
        change(mapping);
        let after = mapping.usage();
        if before != after {
            self.use_changes(shard, id, before, after);
        }
    }

    fn use_changes(&self, shard: &mut NatShard, id: MappingId, before: Use, after: Use) {
        let rank = self.rank_of(shard, id);
        let mapping = shard.mappings.get(id);
        let (host, protocol) = (mapping.inner().address, mapping.inner().protocol);
        let Some(set) = shard.sets.get_mut(mapping.external.address, protocol) else { return };
        match before {
            Use::Waiting => set.waiting.remove(host, rank),
            Use::Closed => {
                set.spent.remove(rank);
                set.in_use += 1;
                self.take_anyway(host);
            }
            Use::Held | Use::Lost => {}
        }
        match after {
            Use::Waiting => set.waiting.add(host, rank),
            Use::Closed => {
                set.spent.insert(rank);
                set.in_use -= 1;
                self.give_back_to_quota(host);
            }
            Use::Held | Use::Lost => {}
        }
    }

    /// The rank of a mapping's port in its class.
    fn rank_of(&self, shard: &NatShard, id: MappingId) -> usize {
        let mapping = shard.mappings.get(id);
        shard.classes.of(mapping.inner().protocol).rank(mapping.external.port)
    }

    /// The endpoints of a mapping, without a remote one.
    fn ends_of(&self, shard: &NatShard, id: MappingId) -> Ends {
        let mapping = shard.mappings.get(id);
        let (External { address, port }, inner) = (mapping.external, mapping.inner());
        Ends {
            inner: (inner.address, inner.port),
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

    /// Takes one, whatever the host has: a connection that was over goes on.
    fn take_anyway(&self, host: Ipv4Addr) {
        if let Some(quota) = &self.quota {
            quota.take_anyway(host.into());
        }
    }

    /// Whether a host may have no more ports.
    pub(super) fn is_quota_used_up(&self, host: Ipv4Addr) -> bool {
        self.quota.as_ref().is_some_and(|quota| quota.is_used_up(host.into()))
    }

    fn give_back_to_quota(&self, host: Ipv4Addr) {
        if let Some(quota) = &self.quota {
            quota.give_back(host.into());
        }
    }
}

/// Whether a port can serve a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    /// Nobody takes the connection for the one that the port has served.
    Given,
    /// Nothing shows it, but nobody has used the port since then.
    UnusedSince(Time),
}

/// The time so much earlier.
fn before(time: Time, by: std::time::Duration) -> Time {
    Time::from_nanos(time.as_nanos().saturating_sub(by.as_nanos() as u64))
}
