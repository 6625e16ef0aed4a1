//! Giving out external endpoints, and taking them back.

use std::net::Ipv4Addr;

use rheostat_base::DropReason;
use rheostat_packet::FlowKey;
use rheostat_state::txn::Transactional;

use super::SharedNat;
use super::record::{Flow, Inner, KEPT, MAPPED, Mapping, OWN, Place};
use crate::nat::bind::UNANSWERED;
use crate::nat::config::Filtering;
use crate::nat::flow::{Endpoint, Ends};
use crate::nat::ports::are_choosable;
use rheostat_nf::Outcome;

impl SharedNat {
    /// Makes a flow that inside opens, with an external endpoint for it.
    pub(super) fn bind(
        &self,
        cx: &mut impl Transactional,
        key: &FlowKey,
        (inner, remote): (Endpoint, Endpoint),
    ) -> Outcome<Result<Flow, DropReason>> {
        let protocol = key.protocol();
        if let Some(external) = self.rules.forwards.external(protocol, inner) {
            return Ok(Ok(Flow::new(Ends { inner, external, remote }, key, 0)));
        }
        if !are_choosable(protocol) {
            return self.bind_address(cx, key, (inner, remote));
        }
        let end = Inner::new(inner, protocol, key.zone());
        let known = match self.mappings.get(cx, &end)? {
            Some(place) => self.endpoints.get(cx, place)?.map(|mapping| (place, mapping)),
            None => None,
        };
        // One that rests may be used again by the endpoint that had it.
        let place = match known {
            Some((place, mapping)) if mapping.flows() > 0 => place,
            _ => match self.map(cx, end)? {
                Ok(place) => place,
                Err(reason) => return Ok(Err(reason)),
            },
        };
        let external = self.endpoints.endpoint(place);
        let mut flow = Flow::new(Ends { inner, external, remote }, key, MAPPED | KEPT);
        flow.place = place;
        Ok(Ok(flow))
    }

    /// For a protocol without ports to choose: an external address that has no such flow to the remote host.
    fn bind_address(
        &self,
        cx: &mut impl Transactional,
        key: &FlowKey,
        (inner, remote): (Endpoint, Endpoint),
    ) -> Outcome<Result<Flow, DropReason>> {
        if !self.take_from_quota(cx, inner.0)? {
            return Ok(Err(DropReason::QuotaExceeded));
        }
        for part in self.rules.pool.parts_of(inner.0) {
            let external = (self.rules.pool.address(part.address), inner.1);
            let ends = Ends { inner, external, remote };
            if self.flows.find(cx, &ends.external_key(key.protocol(), key.zone()))?.is_none() {
                self.count(cx, |counts| counts.created += 1)?;
                return Ok(Ok(Flow::new(ends, key, OWN)));
            }
        }
        self.give_back_to_quota(cx, inner.0)?;
        Ok(Err(DropReason::PortsExhausted))
    }

    /// Makes a mapping for an endpoint inside that has none.
    fn map(&self, cx: &mut impl Transactional, inner: Inner) -> Outcome<Result<Place, DropReason>> {
        let (host, port) = inner.end();
        if !self.take_from_quota(cx, host)? {
            return Ok(Err(DropReason::QuotaExceeded));
        }
        let mapping = Mapping::new(inner);
        for part in self.rules.pool.parts_of(host) {
            let Some(place) = self.endpoints.allocate(cx, part.address, mapping)? else { continue };
            if self.mappings.set(cx, inner, place)?.is_err() {
                self.endpoints.free(cx, place)?;
                self.give_back_to_quota(cx, host)?;
                return Ok(Err(DropReason::TableFull));
            }
            let preserved = u64::from(self.endpoints.endpoint(place).1 == port);
            self.count(cx, |counts| {
                counts.created += 1;
                counts.preserved += preserved;
            })?;
            return Ok(Ok(place));
        }
        self.give_back_to_quota(cx, host)?;
        Ok(Err(DropReason::PortsExhausted))
    }

    /// Makes a flow that outside opens, if it may come in.
    pub(super) fn admit(
        &self,
        cx: &mut impl Transactional,
        key: &FlowKey,
        (external, remote): (Endpoint, Endpoint),
    ) -> Outcome<Option<Flow>> {
        let protocol = key.protocol();
        if let Some(inner) = self.rules.forwards.internal(protocol, external) {
            return Ok(Some(Flow::new(Ends { inner, external, remote }, key, 0)));
        }
        let Some(address) = self.rules.pool.place(external.0) else { return Ok(None) };
        let held = self.endpoints.holder(cx, address, protocol, external.1)?;
        let Some((place, mapping)) = held else { return Ok(None) };
        let is_it = mapping.inner.zone() == key.zone();
        if !is_it || !mapping.is_kept(cx) || mapping.unanswered >= UNANSWERED.into() {
            return Ok(None);
        }
        let lets_in = match self.rules.config.filtering {
            Filtering::EndpointIndependent => true,
            Filtering::AddressDependent => self.permissions.has(cx, mapping.inner, remote.0)?,
            Filtering::AddressAndPortDependent => false,
        };
        if !lets_in {
            return Ok(None);
        }
        let inner = mapping.inner.end();
        let mut flow = Flow::new(Ends { inner, external, remote }, key, MAPPED);
        flow.place = place;
        Ok(Some(flow))
    }

    /// A flow begins: it counts where it belongs.
    pub(super) fn count_in(&self, cx: &mut impl Transactional, flow: &Flow) -> Outcome<()> {
        if !flow.has(MAPPED) {
            return Ok(());
        }
        let until = self.flows.until(cx, flow);
        self.change(cx, flow.place, |mapping| match flow.has(KEPT) {
            true => {
                mapping.kept_by += 1;
                mapping.until = mapping.until.max(until);
            }
            false => mapping.unanswered += 1,
        })?;
        self.grant(cx, flow, until)
    }

    /// Inside has answered a flow that outside has opened: from now on it keeps its mapping.
    pub(super) fn keep(&self, cx: &mut impl Transactional, flow: &mut Flow) -> Outcome<()> {
        flow.flags |= KEPT;
        let until = self.flows.until(cx, flow);
        self.change(cx, flow.place, |mapping| {
            mapping.unanswered -= 1;
            mapping.kept_by += 1;
            mapping.until = mapping.until.max(until);
        })?;
        self.grant(cx, flow, until)
    }

    /// Whether the mapping of a flow is kept by any flow that inside has sent on.
    pub(super) fn is_kept(&self, cx: &mut impl Transactional, flow: &Flow) -> Outcome<bool> {
        Ok(self.endpoints.get(cx, flow.place)?.is_some_and(|mapping| mapping.is_kept(cx)))
    }

    /// A flow's time has begun anew: its mapping and its permission last as long.
    pub(super) fn prolong(&self, cx: &mut impl Transactional, flow: &Flow) -> Outcome<()> {
        if !flow.has(KEPT) {
            return Ok(());
        }
        let until = self.flows.until(cx, flow);
        let known = self.endpoints.get(cx, flow.place)?;
        if known.is_some_and(|mapping| mapping.until < until) {
            self.change(cx, flow.place, |mapping| mapping.until = until)?;
        }
        if self.rules.config.filtering == Filtering::AddressDependent {
            self.permissions.extend(cx, flow.inner(), flow.ends().remote.0, until)?;
        }
        Ok(())
    }

    /// A flow is over: what it had is taken back.
    pub(super) fn release(&self, cx: &mut impl Transactional, flow: &Flow) -> Outcome<()> {
        let host = flow.ends().inner.0;
        if flow.has(OWN) {
            self.count(cx, |counts| counts.ended += 1)?;
            return self.give_back_to_quota(cx, host);
        }
        if !flow.has(MAPPED) {
            return Ok(());
        }
        if flow.has(KEPT) && self.rules.config.filtering == Filtering::AddressDependent {
            self.permissions.revoke(cx, flow.inner(), flow.ends().remote.0)?;
        }
        let left = self.change(cx, flow.place, |mapping| {
            let counted =
                if flow.has(KEPT) { &mut mapping.kept_by } else { &mut mapping.unanswered };
            *counted -= 1;
            if mapping.kept_by == 0 {
                mapping.until = 0;
            }
        })?;
        if left.is_some_and(|mapping| mapping.flows() == 0) {
            self.unmap(cx, flow.inner(), flow.place)?;
        }
        Ok(())
    }

    /// A mapping has no flow left.
    fn unmap(&self, cx: &mut impl Transactional, inner: Inner, place: Place) -> Outcome<()> {
        self.mappings.remove(cx, &inner)?;
        self.endpoints.release(cx, place)?;
        self.count(cx, |counts| counts.ended += 1)?;
        self.give_back_to_quota(cx, inner.end().0)
    }

    fn change(
        &self,
        cx: &mut impl Transactional,
        place: Place,
        change: impl FnOnce(&mut Mapping),
    ) -> Outcome<Option<Mapping>> {
        let Some(mut mapping) = self.endpoints.get(cx, place)? else { return Ok(None) };
        change(&mut mapping);
        self.endpoints.set(cx, place, mapping)?;
        Ok(Some(mapping))
    }

    fn grant(&self, cx: &mut impl Transactional, flow: &Flow, until: u64) -> Outcome<()> {
        if flow.has(KEPT) && self.rules.config.filtering == Filtering::AddressDependent {
            self.permissions.grant(cx, flow.inner(), flow.ends().remote.0, until)?;
        }
        Ok(())
    }

    fn take_from_quota(&self, cx: &mut impl Transactional, host: Ipv4Addr) -> Outcome<bool> {
        let Some((most, hosts)) = &self.quota else { return Ok(true) };
        let used = hosts.get(cx, &host.to_bits())?.unwrap_or(0);
        Ok(used < *most && hosts.set(cx, host.to_bits(), used + 1)?.is_ok())
    }

    fn give_back_to_quota(&self, cx: &mut impl Transactional, host: Ipv4Addr) -> Outcome<()> {
        let Some((_, hosts)) = &self.quota else { return Ok(()) };
        match hosts.get(cx, &host.to_bits())? {
            None => {}
            Some(0 | 1) => {
                hosts.remove(cx, &host.to_bits())?;
            }
            Some(used) => {
                let _known = hosts.set(cx, host.to_bits(), used - 1)?;
            }
        }
        Ok(())
    }
}
