//! The numbers by which flows name services and backends. A load balancer that takes the place of another gives each service and
//! backend that goes on the number that it had; those that its settings do not name any more keep theirs as well, for the flows that
//! they have, and get no new ones.

use std::net::IpAddr;
use std::sync::Arc;

use thiserror::Error;

use super::config::{BackendConfig, LbConfig, Mode, ServiceConfig};
use super::maglev::MAX_BACKENDS;

/// What makes a service the same one with other settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceIdentity {
    name: String,
    vip: IpAddr,
    protocol: u8,
    mode: Mode,
}

impl ServiceIdentity {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn of(service: &ServiceConfig) -> ServiceIdentity {
        let ServiceConfig { name, vip, protocol, mode, .. } = service;
        ServiceIdentity { name: name.clone(), vip: *vip, protocol: *protocol, mode: *mode }
    }
}

/// A service and its backends, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NumberedService {
    pub(super) service: u16,
    /// In the order of the settings.
    pub(super) backends: Vec<u16>,
}

/// There are no numbers left: reloads have named too many services, or backends of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "reloads have named more than {MAX_BACKENDS} services, or backends of one; a restart forgets those that are gone"
)]
pub struct NoNumbers;

/// The services and backends of a load balancer by number.
#[derive(Clone, Debug)]
pub(super) struct Numbering {
    /// The settings as they were given.
    pub(super) stated: Arc<LbConfig>,
    /// The settings, with services and backends in the order of their numbers: those that are gone as they were.
    pub(super) config: Arc<LbConfig>,
    /// The services that the settings name, in their order there.
    pub(super) named: Vec<NumberedService>,
}

impl Numbering {
    /// Numbers in the order of the settings.
    pub(super) fn first(config: LbConfig) -> Numbering {
        let number = |(service, config): (u16, &ServiceConfig)| NumberedService {
            service,
            backends: (0..config.backends.len() as u16).collect(),
        };
        let named = (0..).zip(&config.services).map(number).collect();
        let config = Arc::new(config);
        Numbering { stated: config.clone(), config, named }
    }

    /// The numbers of a load balancer with these settings that takes the place of the one with this numbering.
    ///
    /// # Errors
    /// [`NoNumbers`].
    pub(super) fn next(&self, config: LbConfig) -> Result<Numbering, NoNumbers> {
        let stated = Arc::new(config.clone());
        let mut services = self.config.services.clone();
        let mut named = Vec::new();
        for mut service in config.services {
            let identity = ServiceIdentity::of(&service);
            let known = services.iter().position(|known| ServiceIdentity::of(known) == identity);
            let number = known.unwrap_or(services.len());
            let mut all = known.map_or_else(Vec::new, |known| services[known].backends.clone());
            let mut backends = Vec::new();
            for backend in std::mem::take(&mut service.backends) {
                let is_same = |known: &BackendConfig| {
                    (known.address, known.port) == (backend.address, backend.port)
                };
                let place = all.iter().position(is_same).unwrap_or(all.len());
                backends.push(u16::try_from(place).map_err(|_| NoNumbers)?);
                match all.get_mut(place) {
                    Some(known) => *known = backend,
                    None => all.push(backend),
                }
            }
            if all.len() > MAX_BACKENDS {
                return Err(NoNumbers);
            }
            service.backends = all;
            match services.get_mut(number) {
                Some(known) => *known = service,
                None => services.push(service),
            }
            named.push(NumberedService {
                service: u16::try_from(number).map_err(|_| NoNumbers)?,
                backends,
            });
        }
        let config = Arc::new(LbConfig { services, ..config });
        Ok(Numbering { stated, config, named })
    }

    /// Whether the settings name a backend, by its numbers.
    pub(super) fn names(&self, service: usize, backend: usize) -> bool {
        let named = self.named.iter().find(|named| usize::from(named.service) == service);
        named.is_some_and(|named| {
            named.backends.iter().any(|number| usize::from(*number) == backend)
        })
    }

    /// The services that the settings name, with their numbers.
    pub(super) fn services(&self) -> impl Iterator<Item = (&NumberedService, &ServiceConfig)> {
        self.named.iter().map(|named| (named, &self.config.services[usize::from(named.service)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lb::config::OnDown;
    use crate::lb::health::Health;

    fn service(name: &str, backends: &[u8]) -> ServiceConfig {
        let backend = |last: &u8| BackendConfig {
            address: [10, 0, 0, *last].into(),
            port: None,
            weight: u32::from(*last),
            health: Health::Up,
            server_id: None,
        };
        ServiceConfig {
            name: name.into(),
            vip: [203, 0, 113, 10].into(),
            protocol: 6,
            ports: Vec::new(),
            mode: Mode::DsrIpip,
            on_down: OnDown::Move,
            quic: None,
            check: None,
            backends: backends.iter().map(backend).collect(),
        }
    }

    fn config(services: Vec<ServiceConfig>) -> LbConfig {
        LbConfig { services, ..LbConfig::default() }
    }

    fn named(numbering: &Numbering) -> Vec<(u16, Vec<u16>)> {
        numbering.named.iter().map(|named| (named.service, named.backends.clone())).collect()
    }

    #[test]
    fn services_and_backends_keep_their_numbers_whatever_becomes_of_others() {
        let first = Numbering::first(config(vec![service("web", &[1, 2]), service("mail", &[3])]));
        let next = config(vec![service("dns", &[9]), service("web", &[4, 2])]);
        let next = first.next(next).unwrap();
        assert_eq!(named(&next), [(2, vec![0]), (0, vec![2, 1])]);
        assert!(next.names(0, 1) && next.names(0, 2) && !next.names(0, 0) && !next.names(1, 0));
        // A service of another address is another one.
        let mut moved = service("web", &[1]);
        moved.vip = [203, 0, 113, 11].into();
        let moved = next.next(config(vec![moved, service("mail", &[3, 5])])).unwrap();
        assert_eq!(named(&moved), [(3, vec![0]), (1, vec![0, 1])]);
        // One that comes back has its number again.
        let back = moved.next(config(vec![service("web", &[2, 1])])).unwrap();
        assert_eq!(named(&back), [(0, vec![1, 0])]);
        assert_eq!(back.config.services[0].backends.len(), 3);
    }

    #[test]
    fn more_backends_than_there_are_numbers_are_refused() {
        let mut numbering = Numbering::first(config(vec![service("web", &[1])]));
        let mut many = service("web", &[]);
        many.backends = (0..40_000_u32)
            .map(|number| BackendConfig {
                address: std::net::Ipv4Addr::from_bits(number).into(),
                port: None,
                weight: 1,
                health: Health::Up,
                server_id: None,
            })
            .collect();
        numbering = numbering.next(config(vec![many.clone()])).unwrap();
        many.backends.iter_mut().for_each(|backend| backend.port = Some(80));
        assert_eq!(numbering.next(config(vec![many])).unwrap_err(), NoNumbers);
    }
}
