//! The external endpoints: sets of ports that lanes lease, for each external address and protocol. What is written
//! on a lease is the mapping that the endpoint stands for.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::time::Duration;

use rand::Rng;
use rand::seq::SliceRandom;
use rheostat_state::object::{Allocator, Recipe};
use rheostat_state::txn::{Objects, Transactional};

use super::record::{Mapping, Place};
use crate::nat::choice::UNPRIVILEGED;
use crate::nat::flow::Endpoint;
use crate::nat::ports::PROTOCOLS;
use crate::nat::rules::Rules;
use rheostat_nf::Outcome;

/// What people call the protocols whose ports can be chosen, in the order of [`PROTOCOLS`].
const NAMES: [&str; 4] = ["TCP", "UDP", "ICMP", "UDP-Lite"];

/// The lifetimes of leases: while a mapping has flows, they know how long it lasts; then the endpoint rests.
const HELD: usize = 0;
const RESTING: usize = 1;
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Sets for each address and protocol: privileged ports and others, even ones and odd ones.
const SETS: usize = 4;

/// Resting endpoints that are taken back at a time.
const RECLAIMED: usize = 4;

/// The external endpoints of a NAT.
#[derive(Clone, Debug)]
pub(super) struct Endpoints {
    /// By address, protocol, privilege, parity.
    sets: Vec<Option<PortSet>>,
    lanes: usize,
    rest: Duration,
}

/// Ports of one external address and protocol, all even or all odd, in an unpredictable order (RFC 6056).
#[derive(Clone, Debug)]
struct PortSet {
    leases: Allocator<Mapping>,
    external: Endpoint,
    /// By the number of the resource.
    ports: Box<[u16]>,
    /// The number of the resource, by half of the port's distance from the first; `NONE` for a forwarded one.
    resources: Box<[u16]>,
}

/// No resource: there are half as many ports at most.
const NONE: u16 = u16::MAX;

impl Endpoints {
    /// All of them free.
    pub(super) fn new(objects: &Objects, rules: &Rules, rng: &mut impl Rng) -> Endpoints {
        let mut sets = Vec::new();
        for &address in &rules.config.external {
            for (protocol, name) in PROTOCOLS.into_iter().zip(NAMES) {
                let high = rules.config.ports.clone();
                // Only where ports below are privileged (RFC 4787, REQ-3).
                let low = matches!(protocol, 6 | 17)
                    .then(|| 1..=high.start().saturating_sub(1).min(UNPRIVILEGED - 1));
                for (ports, word) in [(low, " privileged"), (Some(high), "")] {
                    for (parity, side) in [(0, "even"), (1, "odd")] {
                        let name = format!("{name} ports of {address},{word} {side}");
                        let set = |ports| {
                            let ports = free_ports(rules, (address, protocol), ports, parity);
                            PortSet::new(objects, &name, address, ports, rules.config.rest, rng)
                        };
                        sets.push(ports.clone().and_then(set));
                    }
                }
            }
        }
        Endpoints { sets, lanes: objects.lanes(), rest: rules.config.rest }
    }

    /// Leases a port of the external address in this place of the pool to a mapping. The inner port itself, if the
    /// lane has it; else one that is privileged if that is, and never otherwise (RFC 4787, REQ-3), and of the same
    /// parity (REQ-4) while there are such.
    pub(super) fn allocate(
        &self,
        cx: &mut impl Transactional,
        address: u16,
        mapping: Mapping,
    ) -> Outcome<Option<Place>> {
        let (protocol, port) = (mapping.inner.protocol(), mapping.inner.end().1);
        let Some(first) = first_set(address, protocol) else { return Ok(None) };
        let privileged = if port < UNPRIVILEGED { 0 } else { 1 };
        let parity = usize::from(port % 2);
        for number in (privileged..2).map(|part| first + 2 * part + parity) {
            let Some(set) = &self.sets[number] else { continue };
            let lane = cx.txn().lane().index();
            // The ports that another lane began with are likely to be in its pool still: better not touched.
            let own = set.resource(port).filter(|own| *own as usize % self.lanes == lane);
            if let Some(resource) = own
                && let Some(lease) = set.leases.take(cx, resource, mapping, HELD)?
            {
                return Ok(Some(Place { lease, set: number as u32 }));
            }
        }
        for parity in [parity, 1 - parity] {
            for number in (privileged..2).map(|part| first + 2 * part + parity) {
                let Some(set) = &self.sets[number] else { continue };
                for _ in 0..RECLAIMED {
                    if set.leases.expired(cx)?.is_none() {
                        break;
                    }
                }
                if let Some(lease) = set.leases.allocate(cx, mapping, HELD)? {
                    return Ok(Some(Place { lease, set: number as u32 }));
                }
            }
        }
        Ok(None)
    }

    /// The inner endpoint that has an external endpoint, of an address in this place of the pool.
    pub(super) fn holder(
        &self,
        cx: &mut impl Transactional,
        address: u16,
        protocol: u8,
        port: u16,
    ) -> Outcome<Option<(Place, Mapping)>> {
        let Some(first) = first_set(address, protocol) else { return Ok(None) };
        let numbers = [0, 1].map(|part| first + 2 * part + usize::from(port % 2));
        for number in numbers {
            let Some(set) = &self.sets[number] else { continue };
            let Some(resource) = set.resource(port) else { continue };
            let held = set.leases.holder(cx, resource)?;
            return Ok(held.map(|(lease, mapping)| (Place { lease, set: number as u32 }, mapping)));
        }
        Ok(None)
    }

    /// The mapping of a lease.
    pub(super) fn get(
        &self,
        cx: &mut impl Transactional,
        place: Place,
    ) -> Outcome<Option<Mapping>> {
        self.set_of(place).leases.get(cx, place.lease)
    }

    /// Changes the mapping of a lease.
    pub(super) fn set(
        &self,
        cx: &mut impl Transactional,
        place: Place,
        mapping: Mapping,
    ) -> Outcome<()> {
        self.set_of(place).leases.set(cx, place.lease, mapping).map(|_| ())
    }

    /// A mapping has no flow left: its endpoint rests before another host gets it (RFC 6888, REQ-8).
    pub(super) fn release(&self, cx: &mut impl Transactional, place: Place) -> Outcome<()> {
        let leases = &self.set_of(place).leases;
        match self.rest.is_zero() {
            true => leases.free(cx, place.lease).map(|_| ()),
            false => leases.refresh(cx, place.lease, RESTING).map(|_| ()),
        }
    }

    /// Gives an unused endpoint back.
    pub(super) fn free(&self, cx: &mut impl Transactional, place: Place) -> Outcome<()> {
        self.set_of(place).leases.free(cx, place.lease).map(|_| ())
    }

    /// Takes back what has rested enough, of all sets in turn: of `part` of `parts` of them now.
    pub(super) fn reclaim(
        &self,
        cx: &mut impl Transactional,
        part: usize,
        parts: usize,
    ) -> Outcome<()> {
        for set in self.sets.iter().skip(part).step_by(parts).flatten() {
            for _ in 0..RECLAIMED {
                if set.leases.expired(cx)?.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The external endpoint of a lease.
    pub(super) fn endpoint(&self, place: Place) -> Endpoint {
        let set = self.set_of(place);
        (set.external.0, set.ports[place.lease.resource as usize])
    }

    fn set_of(&self, place: Place) -> &PortSet {
        self.sets[place.set as usize].as_ref().expect("leases come from sets there are")
    }
}

/// The first set of an external address, by its place in the pool, and a protocol, if its ports can be chosen.
fn first_set(address: u16, protocol: u8) -> Option<usize> {
    let protocol = PROTOCOLS.iter().position(|known| *known == protocol)?;
    Some((usize::from(address) * PROTOCOLS.len() + protocol) * SETS)
}

/// The ports of a range with this parity that are not forwarded.
fn free_ports(
    rules: &Rules,
    (address, protocol): (Ipv4Addr, u8),
    range: RangeInclusive<u16>,
    parity: u16,
) -> Vec<u16> {
    let is_free = |port: &u16| {
        port % 2 == parity && rules.forwards.internal(protocol, (address, *port)).is_none()
    };
    range.filter(is_free).collect()
}

impl PortSet {
    /// The ports of an address, in ascending order, which rest for a while when they are given back; `None` when there
    /// are none.
    fn new(
        objects: &Objects,
        name: &str,
        address: Ipv4Addr,
        mut ports: Vec<u16>,
        rest: Duration,
        rng: &mut impl Rng,
    ) -> Option<PortSet> {
        let (&first, &last) = (ports.first()?, ports.last()?);
        ports.shuffle(rng);
        let mut resources = vec![NONE; usize::from((last - first) / 2) + 1];
        for (resource, port) in ports.iter().enumerate() {
            resources[usize::from((port - first) / 2)] = resource as u16;
        }
        let leases = Allocator::new(objects, name, ports.len(), &[FOR_EVER, rest], Duration::ZERO);
        objects.set_by(leases.id(), Recipe::ProvisionMore, "[function.nat] external");
        let (ports, resources) = (ports.into(), resources.into());
        Some(PortSet { leases, external: (address, first), ports, resources })
    }

    /// The number of a port, if the set has it.
    fn resource(&self, port: u16) -> Option<u32> {
        let distance = port.checked_sub(self.external.1).filter(|distance| distance % 2 == 0)?;
        let resource = *self.resources.get(usize::from(distance / 2))?;
        (resource != NONE).then_some(resource.into())
    }
}
