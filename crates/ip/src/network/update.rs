//! What of a network can change while lanes use it.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use rheostat_base::DeviceId;
use rheostat_steer::PrefixList;

use super::{Network, Policy, gateways, lock};
use crate::interface::Interface;
use crate::local_service::LocalService;
use crate::route::{Route, RouteError, Routes};

/// Another configuration of a network with the same interfaces.
#[derive(Clone)]
pub struct NetworkUpdate {
    /// The routes that are given, in place of those before.
    pub routes: Vec<Route>,
    /// By interface, in their order, what it answers for besides its own addresses.
    pub proxied: Vec<PrefixList>,
    /// How the network layer behaves. The limit of errors is that of the run, and stays ([`RunLimit::set`](crate::RunLimit::set)).
    pub policy: Policy,
    /// The local services in place of those before, if these are to go.
    pub local_services: Option<Vec<Arc<dyn LocalService>>>,
}

impl Network {
    /// Whether [`Network::update`] would take these routes.
    ///
    /// # Errors
    /// [`RouteError`] when one of them is wrong.
    pub fn check_update(&self, update: &NetworkUpdate) -> Result<(), RouteError> {
        self.table_of(&update.proxied, &update.routes).map(drop)
    }

    /// Puts another configuration in force: every lane goes by it from its next poll on. Addresses that interfaces answer for from
    /// now on are announced, as all are at the start. Neighbours beyond a lower limit are forgotten as they become stale.
    ///
    /// # Errors
    /// [`RouteError`] when a route is wrong; then nothing has changed.
    pub fn update(&self, update: NetworkUpdate) -> Result<(), RouteError> {
        let NetworkUpdate { routes, proxied, policy, local_services } = update;
        let routes = self.table_of(&proxied, &routes)?;
        let proxied: Arc<[PrefixList]> = proxied.into();
        let before = std::mem::replace(&mut *lock(&self.proxied), proxied.clone());
        *lock(&self.policy) = policy;
        if let Some(services) = local_services {
            *self.local_services.write().unwrap_or_else(PoisonError::into_inner) = services;
            self.services_due.store(0, Ordering::Relaxed);
        }
        self.with_neighbours(|table| {
            table.set_limits(policy.neighbours);
            table.set_gateways(gateways(&routes));
        });
        *lock(&self.routes) = Arc::new(routes);
        if before != proxied {
            self.announce_again();
        }
        self.changes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// What the interface of a device answers for besides its own addresses now.
    pub(crate) fn proxied(&self, device: DeviceId) -> PrefixList {
        let number = self.interfaces.iter().position(|interface| interface.device == device);
        number.and_then(|number| lock(&self.proxied).get(number).cloned()).unwrap_or_default()
    }

    /// Whether an interface answers for the address when it is looked for on the link.
    pub(crate) fn answers_for(&self, interface: &Interface, address: IpAddr) -> bool {
        interface.owns(address) || self.proxied(interface.device).contains(address)
    }

    /// The table of these routes, where interfaces answer for these addresses.
    pub(super) fn table_of(
        &self,
        proxied: &[PrefixList],
        routes: &[Route],
    ) -> Result<Routes, RouteError> {
        let with = |(interface, proxied): (&Interface, &PrefixList)| Interface {
            proxied: proxied.clone(),
            ..interface.clone()
        };
        let interfaces: Vec<_> = self.interfaces.iter().zip(proxied).map(with).collect();
        Routes::after(Some(&self.routes()), &interfaces, routes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Hop;

    fn network() -> Network {
        let mut lan = Interface::new(DeviceId(0), "lan", [2, 0, 0, 0, 0, 1]);
        lan.addresses = vec!["10.0.0.1/8".parse().unwrap(), "fd00::1/64".parse().unwrap()];
        lan.proxied = ["192.0.2.7/32".parse().unwrap()].into_iter().collect();
        Network::new(vec![lan], &[], Policy::default()).unwrap()
    }

    fn update(proxied: &[&str], routes: Vec<Route>) -> NetworkUpdate {
        let proxied = proxied.iter().map(|prefix| prefix.parse().unwrap()).collect();
        let (policy, local_services) = (Policy { waiting: 7, ..Policy::default() }, None);
        NetworkUpdate { routes, proxied: vec![proxied], policy, local_services }
    }

    #[test]
    fn what_an_interface_answers_for_changes_with_its_routes_and_the_policy() {
        let network = network();
        let hop = |address: &str| {
            let routes = network.routes();
            routes.hop(routes.lookup(address.parse().unwrap()))
        };
        let answers =
            |address: &str| network.answers_for(&network.interfaces()[0], address.parse().unwrap());
        assert!(answers("192.0.2.7") && hop("192.0.2.7") == Hop::Proxied);
        let before = network.changes();
        let route = Route::via("2001:db8::/32".parse().unwrap(), "fd00::9".parse().unwrap());
        network.update(update(&["192.0.2.8/32", "2001:db9::8/128"], vec![route])).unwrap();
        assert!(network.changes() > before);
        assert!(!answers("192.0.2.7") && hop("192.0.2.7") == Hop::None);
        for address in ["192.0.2.8", "2001:db9::8"] {
            assert!(answers(address) && hop(address) == Hop::Proxied, "{address}");
        }
        assert!(answers("10.0.0.1"), "its own address stays");
        assert!(matches!(hop("2001:db8::1"), Hop::Gateway(..)));
        assert_eq!(network.policy().waiting, 7);
    }

    #[test]
    fn a_wrong_route_changes_nothing() {
        let network = network();
        let wrong = Route::via("198.51.100.0/24".parse().unwrap(), "203.0.113.1".parse().unwrap());
        let update = update(&["192.0.2.8/32"], vec![wrong]);
        assert!(network.check_update(&update).is_err());
        let before = network.changes();
        assert!(network.update(update).is_err());
        assert_eq!(network.changes(), before);
        assert!(network.answers_for(&network.interfaces()[0], "192.0.2.7".parse().unwrap()));
        assert_eq!(network.policy().waiting, Policy::default().waiting);
    }
}
