//! Ports that a flow has for itself towards its remote endpoint; towards others, other flows may have them.

use rheostat_state::FlowId;

use super::Nat;
use super::bind::Request;
use super::crowd::{Crowd, Holding, Way};
use super::flow::{Endpoint, Ends, Translated};
use super::pool::Part;
use super::ports::are_choosable;
use super::shard::NatShard;
use super::supply::{Proof, Supply};
use rheostat_nf::{Flows, Seen};

/// Ports that are tried before those of a remote endpoint are kept in sets.
const TRIES: usize = 16;

impl Nat {
    /// An external endpoint of `part` from this supply that leads home and that no other flow to the same
    /// remote endpoint has; and the flow that has had it.
    pub(super) fn unshared(
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
        let NatShard { id, place, steering, classes, rng, crowds, .. } = shard;
        let class = classes.of(protocol).leading_to(*id, &key(0), steering);
        let suitable = self.suitable(class, inner.1, part);
        let way = Way::new(address, remote, protocol, zone);
        let usable = |port| self.is_dynamic(protocol, (address, port)) && flows.is_free(&key(port));
        let crowd = match crowds.get_mut(&way) {
            Some(crowd) => crowd,
            None if supply == Supply::Free && suitable.len() > 0 => {
                let tried = suitable.try_some(rng, TRIES, |rank| usable(class.ports[rank]));
                if let Some(rank) = tried {
                    return Some(((address, class.ports[rank]), None));
                }
                let holding =
                    |rank: usize| match self.is_dynamic(protocol, (address, class.ports[rank])) {
                        true => flows.find(&key(class.ports[rank])).map(|_| {
                            let seen = flows.look_at(&key(class.ports[rank]), *place);
                            seen.map_or(Holding::Kept, |seen| seen.state.holding())
                        }),
                        false => Some(Holding::Kept),
                    };
                let ports = &self.rules.config.ports;
                let ports = class.ports.iter().filter(|port| ports.contains(port)).count();
                let crowd =
                    Crowd::new(class.ports.len(), (suitable.len() / 2).max(1), ports, holding);
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
                match flows.look_at(&key(class.ports[rank]), *place) {
                    Some(seen) => self.proof(&seen, request),
                    None => Proof::Given,
                }
            }),
        }?;
        let port = class.ports[rank];
        let former = flows.look_at(&key(port), *place);
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
}
