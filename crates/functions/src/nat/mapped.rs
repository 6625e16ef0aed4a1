//! Ports of mappings, which flows of one endpoint inside share whatever their remote endpoints.

use std::net::Ipv4Addr;

use rheostat_base::DropReason;
use rheostat_packet::FlowKey;

use super::Nat;
use super::bind::Request;
use super::flow::Ends;
use super::log::MappingChange;
use super::mapping::{External, InnerEndpoint, MappingId};
use super::pool::Part;
use super::ports::PortSet;
use super::shard::NatShard;
use super::supply::{Proof, SUPPLIES, Supply};
use rheostat_nf::Flows;

impl Nat {
    /// Makes a mapping for an endpoint inside that has none.
    pub(super) fn map(
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
        let External { address, port } = external;
        let outside = (self.rules.pool.address(address), port);
        let ends = Ends { inner: request.inner, external: outside, remote: request.remote };
        // Whether a flow has it, is asked once the mapping is made.
        flows.prefetch(&ends.external_key(inner.protocol, inner.zone));
        // Of a free port, nothing else has to be looked at.
        let set = shard.sets.get(address, inner.protocol);
        let former = set.filter(|set| !set.free.contains(rank)).and_then(|set| set.mapping(rank));
        if let Some(former) = former {
            self.dispossess(shard, former, request.now);
        }
        let id = shard.mappings.insert(inner, external);
        shard.sets.occupy(external.address, inner.protocol, rank, id);
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
        let any = (Ipv4Addr::UNSPECIFIED, 0);
        let key = FlowKey::v4((address, 0), any, protocol, inner.zone);
        let NatShard { place, id, steering, classes, rng, sets, mappings, .. } = shard;
        let class = classes.of(protocol).leading_to(*id, &key, steering);
        sets.get_or_make(part.address, protocol, || {
            PortSet::new(class.ports.len(), |rank| {
                self.is_dynamic(protocol, (address, class.ports[rank]))
            })
        })?;
        sets.wake(part.address, protocol, request.now);
        let suitable = self.suitable(class, inner.port, part);
        if supply != Supply::Free {
            sets.note_shortage(part.address, protocol, mappings);
        }
        let set = sets.get_mut(part.address, protocol)?;
        let rank = match supply {
            Supply::Free => suitable.choose(&set.free, rng),
            Supply::Waiting => {
                let waiting = &mut set.shortage_mut()?.waiting;
                waiting.oldest_of_largest(inner.address, |rank| suitable.contains(rank))
            }
            Supply::Spent => self.spent(&suitable, &set.shortage()?.spent, rng, |rank| {
                let external = (address, class.ports[rank]);
                let ends = Ends { inner: request.inner, external, remote: request.remote };
                match flows.look_at(&ends.external_key(protocol, inner.zone), *place) {
                    Some(seen) => self.proof(&seen, request),
                    // To this remote endpoint, the port was not used of late, if it is known for what it was.
                    None => match set.rests_until(rank) {
                        Some(until) => Proof::UnusedSince(until - self.rules.config.rest),
                        None => Proof::Given,
                    },
                }
            }),
        }?;
        let port = class.ports[rank];
        Nat::count_supply(shard, supply);
        Some((External { address: part.address, port }, rank))
    }
}
