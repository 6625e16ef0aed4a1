//! From the endpoints in a packet to a service or a backend.

use std::collections::HashMap;
use std::net::IpAddr;

use super::config::{Mode, ServiceConfig};
use super::numbering::{NumberedService, Numbering};
use super::quic::ServerId;
use crate::firewall::PortRange;

/// A backend of a service, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Seat {
    pub(super) service: u16,
    pub(super) backend: u16,
}

/// A range of ports and the service there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ports {
    low: u16,
    high: u16,
    service: u16,
}

/// The services, by address, protocol and port.
#[derive(Debug)]
pub(super) struct ServiceMap {
    /// The services of an address and protocol: ranges of ports that do not overlap, in order.
    services: HashMap<(IpAddr, u8), Vec<Ports>>,
    /// The backend that answers from an endpoint, where it is the only one: `None` where several services
    /// share it, so that its packets do not tell which one they are of.
    endpoints: HashMap<(IpAddr, u16, u8), Option<Seat>>,
    /// Backends by service and server ID.
    servers: HashMap<(u16, ServerId), u16>,
}

impl ServiceMap {
    pub(super) fn new(numbering: &Numbering) -> ServiceMap {
        let mut map = ServiceMap {
            services: HashMap::new(),
            endpoints: HashMap::new(),
            servers: HashMap::new(),
        };
        for (named, service) in numbering.services() {
            map.add(named, service);
        }
        for ranges in map.services.values_mut() {
            ranges.sort_unstable();
        }
        map
    }

    fn add(&mut self, named: &NumberedService, service: &ServiceConfig) {
        let number = named.service;
        let ranges = self.services.entry((service.vip, service.protocol)).or_default();
        if service.ports.is_empty() {
            ranges.push(Ports { low: 0, high: u16::MAX, service: number });
        }
        let of = |range: &PortRange| Ports { low: range.low, high: range.high, service: number };
        ranges.extend(service.ports.iter().map(of));
        for &place in &named.backends {
            let backend = &service.backends[usize::from(place)];
            let seat = Seat { service: number, backend: place };
            if let Some(id) = backend.server_id {
                self.servers.insert((number, id), place);
            }
            // Without a port of its own, a backend answers from the one it was asked at.
            let single = match service.ports[..] {
                [range] if range.low == range.high => Some(range.low),
                _ => None,
            };
            let (Mode::Nat, Some(port)) = (service.mode, backend.port.or(single)) else { continue };
            self.endpoints
                .entry((backend.address, port, service.protocol))
                .and_modify(|known| *known = None)
                .or_insert(Some(seat));
        }
    }

    /// The service at a virtual address and port.
    pub(super) fn service(&self, vip: IpAddr, port: u16, protocol: u8) -> Option<u16> {
        let ranges = self.services.get(&(vip, protocol))?;
        let at = ranges.partition_point(|range| range.low <= port).checked_sub(1)?;
        (port <= ranges[at].high).then_some(ranges[at].service)
    }

    /// Whether an address is that of a service.
    pub(super) fn is_vip(&self, address: IpAddr) -> bool {
        [6, 17].iter().any(|protocol| self.services.contains_key(&(address, *protocol)))
    }

    /// The backend that answers from this endpoint, if it serves a single service there and the service
    /// has a single port.
    pub(super) fn backend_at(&self, address: IpAddr, port: u16, protocol: u8) -> Option<Seat> {
        *self.endpoints.get(&(address, port, protocol))?
    }

    /// The backend of a service that connection IDs call so.
    pub(super) fn server(&self, service: u16, id: ServerId) -> Option<u16> {
        self.servers.get(&(service, id)).copied()
    }
}
