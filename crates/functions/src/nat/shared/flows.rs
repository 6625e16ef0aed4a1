//! The flows, each found under the name its packets have inside and the one they have outside. A flow is a
//! lease: it is there until its time is up, whenever a lane comes round to it.

use std::time::Duration;

use rheostat_packet::FlowKey;
use rheostat_state::object::{Allocator, Lease, Map, Recipe};
use rheostat_state::txn::{Objects, Transactional};

use super::record::{Flow, Name, name_of};
use crate::nat::config::NatTimeouts;
use crate::nat::lifetime::Lifetime;
use rheostat_nf::Ahead;
use rheostat_nf::Outcome;

/// The flows of all lanes.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    records: Allocator<Flow>,
    names: Map<Name, Lease>,
    timeouts: NatTimeouts,
    interval: Duration,
}

impl Flows {
    /// Room for `most` flows. A flow's time begins anew with a packet, but not more often than once in `interval`,
    /// by which all live longer for it.
    pub(super) fn new(
        objects: &Objects,
        most: usize,
        timeouts: &NatTimeouts,
        interval: Duration,
    ) -> Flows {
        let lifetimes = Lifetime::ALL.map(|lifetime| timeouts.of(lifetime) + interval);
        let records = Allocator::new(objects, "flows", most, &lifetimes, interval);
        let names = Map::new(objects, "flow names", 2 * most);
        let refresh_interval = "[function.nat] refresh_interval";
        objects.set_by(records.id(), Recipe::RaiseRefreshInterval, refresh_interval);
        objects.set_by(records.id(), Recipe::ProvisionMore, "[function.nat] flows");
        objects.set_by(names.id(), Recipe::EnlargeMap, "[function.nat] flows");
        Flows { records, names, timeouts: timeouts.clone(), interval }
    }

    /// The same flows with other lifetimes, from their next packets on.
    pub(super) fn timed_by(&self, timeouts: &NatTimeouts, interval: Duration) -> Flows {
        let lifetimes = Lifetime::ALL.map(|lifetime| timeouts.of(lifetime) + interval);
        let records = self.records.clone().with_lifetimes(&lifetimes, interval);
        Flows { records, names: self.names.clone(), timeouts: timeouts.clone(), interval }
    }

    /// Asks the processor to fetch what will be needed for packets with this key.
    #[inline]
    pub(super) fn prefetch(&self, key: &FlowKey, what: Ahead) {
        let name = name_of(key);
        match what {
            Ahead::Keys => self.names.prefetch(&name),
            Ahead::Values => {
                if let Some(lease) = self.names.guess(&name) {
                    self.records.prefetch(lease.resource);
                }
            }
        }
    }

    /// The flow of packets with this key.
    pub(super) fn find(
        &self,
        cx: &mut impl Transactional,
        key: &FlowKey,
    ) -> Outcome<Option<(Lease, Flow)>> {
        let Some(lease) = self.names.get(cx, &name_of(key))? else { return Ok(None) };
        Ok(self.records.get(cx, lease)?.map(|flow| (lease, flow)))
    }

    /// Adds a flow whose time begins now. Says whether there was room.
    pub(super) fn open(&self, cx: &mut impl Transactional, flow: &Flow) -> Outcome<bool> {
        let mut flow = *flow;
        let lifetime = Lifetime::of(flow.protocol, flow.session);
        flow.lifetime = lifetime as u8;
        flow.since = cx.txn().now().as_nanos();
        let Some(lease) = self.records.allocate(cx, flow, lifetime as usize)? else {
            return Ok(false);
        };
        for name in flow.names() {
            if self.names.set(cx, name, lease)?.is_err() {
                self.end(cx, lease, &flow)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Changes what is known of a flow.
    pub(super) fn set(
        &self,
        cx: &mut impl Transactional,
        lease: Lease,
        flow: &Flow,
    ) -> Outcome<()> {
        self.records.set(cx, lease, *flow).map(|_| ())
    }

    /// Lets a flow's time begin anew with a packet, unless it did so just now; says whether.
    pub(super) fn refresh(
        &self,
        cx: &mut impl Transactional,
        lease: Lease,
        flow: &mut Flow,
    ) -> Outcome<bool> {
        let lifetime = Lifetime::of(flow.protocol, flow.session);
        let now = cx.txn().now().as_nanos();
        let is_young = now < flow.since.saturating_add(self.interval.as_nanos() as u64);
        if is_young && flow.lifetime == lifetime as u8 {
            return Ok(false);
        }
        flow.since = now;
        flow.lifetime = lifetime as u8;
        self.records.refresh(cx, lease, lifetime as usize)?;
        Ok(true)
    }

    /// When the time of a flow that begins now is up, in nanoseconds.
    pub(super) fn until(&self, cx: &mut impl Transactional, flow: &Flow) -> u64 {
        let lifetime = self.timeouts.of(Lifetime::of(flow.protocol, flow.session));
        (cx.txn().now() + lifetime + self.interval).as_nanos()
    }

    /// Ends a flow.
    pub(super) fn end(
        &self,
        cx: &mut impl Transactional,
        lease: Lease,
        flow: &Flow,
    ) -> Outcome<()> {
        self.records.free(cx, lease)?;
        self.forget(cx, lease, flow)
    }

    /// Ends a flow of this lane's whose time is up.
    pub(super) fn expired(&self, cx: &mut impl Transactional) -> Outcome<Option<Flow>> {
        let Some((lease, flow)) = self.records.expired(cx)? else { return Ok(None) };
        self.forget(cx, lease, &flow)?;
        Ok(Some(flow))
    }

    /// How many have names; outside transactions.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.names.count() / 2
    }

    /// Another flow may have its names by now.
    fn forget(&self, cx: &mut impl Transactional, lease: Lease, flow: &Flow) -> Outcome<()> {
        for name in flow.names() {
            if self.names.get(cx, &name)? == Some(lease) {
                self.names.remove(cx, &name)?;
            }
        }
        Ok(())
    }
}
