//! What all lanes share of the network layer.

mod error;
mod update;

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use rheostat_base::{DeviceId, Time};
use rheostat_packet::wire::MacAddress;
use rheostat_steer::PrefixList;

pub use self::error::NetworkError;
pub use self::update::NetworkUpdate;
use crate::interface::Interface;
use crate::local_service::{LocalPacket, LocalService, Outbox};
use crate::neighbour::{
    KnownNeighbour, NeighbourKey, NeighbourLimits, NeighbourState, Neighbours, Solicitation,
};
use crate::path_mtu::{PathMtuConfig, PathMtus, TooBig};
use crate::resolver::Resolver;
use crate::route::{Hop, Route, RouteError, Routes};
use crate::run_limit::RunLimit;

/// The least MTU of a link for IPv4 (RFC 791, section 3.2) and for IPv6 (RFC 8200, section 5).
pub(crate) const LEAST_MTU: [u16; 2] = [68, 1_280];
/// How often interfaces announce their addresses at the start, and how long apart (RFC 5227, section 1.1:
/// ANNOUNCE_NUM and ANNOUNCE_INTERVAL).
const ANNOUNCEMENTS: u8 = 2;
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(2);
/// How long it may go unnoticed that a local service has changed its next deadline.
const SERVICE_POLL: Duration = Duration::from_millis(100);

/// How the network layer behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// ICMP errors and resets per second, all lanes together, unless the network is given a limit
    /// ([`Network::with_error_limit`]) (RFC 1812, section 4.3.2.8; RFC 4443, section
    /// 2.4 (f)). Zero: none.
    pub errors_per_second: u32,
    /// How many of them at once.
    pub errors_at_once: u32,
    /// Packets that wait for one neighbour at most, per lane (RFC 4861, section 7.2.2: at least one); the
    /// oldest goes first.
    pub waiting_per_neighbour: usize,
    /// Packets that wait for neighbours at most, per lane.
    pub waiting: usize,
    /// Whether interfaces announce their addresses at the start.
    pub announce: bool,
    /// Bounds of the table of neighbours.
    pub neighbours: NeighbourLimits,
    /// Bounds of what is known of paths.
    pub path_mtus: PathMtuConfig,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            errors_per_second: 1_000,
            errors_at_once: 50,
            waiting_per_neighbour: 3,
            waiting: 256,
            announce: true,
            neighbours: NeighbourLimits::default(),
            path_mtus: PathMtuConfig::default(),
        }
    }
}

/// Interfaces, routes, neighbours and local services of a run. Lanes see it through a [`Stack`](crate::Stack)
/// each.
pub struct Network {
    interfaces: Vec<Interface>,
    /// By interface, what it answers for besides its own addresses now.
    proxied: Mutex<Arc<[PrefixList]>>,
    policy: Mutex<Policy>,
    /// The MTUs of the interfaces' links now, in their order.
    mtus: Mutex<Box<[u16]>>,
    routes: Mutex<Arc<Routes>>,
    neighbours: Mutex<Neighbours>,
    path_mtus: Mutex<PathMtus>,
    resolver: Option<Arc<dyn Resolver>>,
    local_services: RwLock<Vec<Arc<dyn LocalService>>>,
    errors: RunLimit,
    /// Held by the lane that calls the local services.
    services_lock: Mutex<()>,
    /// How many announcements are left.
    announcements: Mutex<u8>,
    // Hints. They publish nothing: what they point to is read under a lock, and being late with it does no
    // harm, so all accesses are relaxed.
    /// Grows when routes, neighbours, MTUs of links and paths, or the policy change.
    changes: AtomicU64,
    /// When neighbours, paths, local services and announcements next have something to do, in nanoseconds.
    neighbours_due: AtomicU64,
    /// Never while nothing is known of paths.
    path_mtus_due: AtomicU64,
    services_due: AtomicU64,
    announcements_due: AtomicU64,
}

impl Network {
    /// A network of `interfaces`, at most one per device, with the routes that follow from them and
    /// `routes`.
    ///
    /// # Errors
    /// [`NetworkError`] when they contradict each other.
    pub fn new(
        interfaces: Vec<Interface>,
        routes: &[Route],
        policy: Policy,
    ) -> Result<Network, NetworkError> {
        check(&interfaces)?;
        let routes = Routes::new(&interfaces, routes)?;
        let mut neighbours = Neighbours::new(policy.neighbours);
        neighbours.set_gateways(gateways(&routes));
        let announcements_due = if policy.announce { 0 } else { u64::MAX };
        let mtus = interfaces.iter().map(|interface| interface.mtu).collect();
        let proxied = interfaces.iter().map(|interface| interface.proxied.clone()).collect();
        Ok(Network {
            interfaces,
            proxied: Mutex::new(proxied),
            policy: Mutex::new(policy),
            mtus: Mutex::new(mtus),
            routes: Mutex::new(Arc::new(routes)),
            neighbours: Mutex::new(neighbours),
            path_mtus: Mutex::new(PathMtus::new(policy.path_mtus)),
            local_services: RwLock::default(),
            errors: RunLimit::new(policy.errors_per_second, policy.errors_at_once),
            resolver: None,
            services_lock: Mutex::new(()),
            announcements: Mutex::new(ANNOUNCEMENTS),
            changes: AtomicU64::new(1),
            neighbours_due: AtomicU64::new(u64::MAX),
            path_mtus_due: AtomicU64::new(u64::MAX),
            services_due: AtomicU64::new(u64::MAX),
            announcements_due: AtomicU64::new(announcements_due),
        })
    }

    /// The same with a local service, which gets packets after those before it.
    #[must_use]
    pub fn with_local_service(self, service: Arc<dyn LocalService>) -> Network {
        self.local_services.write().unwrap_or_else(PoisonError::into_inner).push(service);
        self.services_due.store(0, Ordering::Relaxed);
        self
    }

    /// The same with the limit of errors that the run has for its chain, too. Without it, the network has one of its own, as
    /// its policy states.
    #[must_use]
    pub fn with_error_limit(mut self, errors: RunLimit) -> Network {
        self.errors = errors;
        self
    }

    pub(crate) fn errors(&self) -> &RunLimit {
        &self.errors
    }

    /// The same with link addresses that `resolver` finds: the stack sends no question of its own.
    #[must_use]
    pub fn with_resolver(mut self, resolver: Arc<dyn Resolver>) -> Network {
        self.resolver = Some(resolver);
        self
    }

    /// Who finds link addresses in the stack's place.
    pub(crate) fn resolver(&self) -> Option<&dyn Resolver> {
        self.resolver.as_deref()
    }

    /// The interfaces.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// The interface of a device.
    pub fn interface(&self, device: DeviceId) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.device == device)
    }

    /// How the network layer behaves now.
    pub fn policy(&self) -> Policy {
        *lock(&self.policy)
    }

    /// The routes in force.
    pub fn routes(&self) -> Arc<Routes> {
        lock(&self.routes).clone()
    }

    /// Puts other routes in the place of those that were given; those that follow from the interfaces
    /// stay. Every lane goes by them from its next poll on.
    ///
    /// # Errors
    /// [`RouteError`] when one of them is wrong; then the old ones stay.
    pub fn set_routes(&self, routes: &[Route]) -> Result<(), RouteError> {
        let routes = self.table_of(&lock(&self.proxied), routes)?;
        self.with_neighbours(|table| table.set_gateways(gateways(&routes)));
        *lock(&self.routes) = Arc::new(routes);
        self.changes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The MTU of a device's link now: that of its interface until [`Network::set_mtu`] is called.
    pub fn mtu(&self, device: DeviceId) -> Option<u16> {
        let number = self.interfaces.iter().position(|interface| interface.device == device)?;
        lock(&self.mtus).get(number).copied()
    }

    /// Follows a device's link that carries packets of another length from now on. Every lane goes by it
    /// from its next poll on: longer packets are fragmented, or their senders told. Below 1,280 bytes the
    /// interface carries no IPv6 (RFC 8200, section 5) until the MTU is large enough again; less than 68
    /// counts as 68 (RFC 791, section 3.2). Nothing comes of a device without an interface.
    pub fn set_mtu(&self, device: DeviceId, mtu: u16) {
        let mut mtus = lock(&self.mtus);
        let number = self.interfaces.iter().position(|interface| interface.device == device);
        if let Some(known) = number.and_then(|number| mtus.get_mut(number)) {
            *known = mtu.max(LEAST_MTU[0]);
            // Under the lock: a lane that sees the number waits for it and finds the MTU.
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The MTU of each interface's link now.
    pub(crate) fn mtus(&self) -> Box<[u16]> {
        lock(&self.mtus).clone()
    }

    /// Notes a report that a packet was too big for its path, which is believed: the transport knows the packet (RFC 5927,
    /// section 7). Every lane goes by it from its next poll on. Returns whether the path carries less than was known.
    pub fn note_too_big(&self, report: &TooBig, now: Time) -> bool {
        self.with_path_mtus(|paths| paths.note(report, now).is_some())
    }

    /// What the path to a destination carries, if it is known to be less than the first link. No lock is taken while nothing is
    /// known of any path.
    pub fn path_mtu(&self, destination: IpAddr, now: Time) -> Option<u16> {
        if self.path_mtus_due.load(Ordering::Relaxed) == u64::MAX {
            return None;
        }
        lock(&self.path_mtus).get(destination, now)
    }

    /// Works on what is known of paths; `work` returns whether it has changed something.
    fn with_path_mtus(&self, work: impl FnOnce(&mut PathMtus) -> bool) -> bool {
        let mut paths = lock(&self.path_mtus);
        let has_changed = work(&mut paths);
        let due = paths.next_deadline().unwrap_or(Time::NEVER);
        self.path_mtus_due.store(due.as_nanos(), Ordering::Relaxed);
        if has_changed {
            // Under the lock: a lane that sees the number waits for it and finds what has changed.
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
        has_changed
    }

    /// Enters the link address of a neighbour, which is never asked for it then.
    pub fn set_neighbour(&self, device: DeviceId, address: IpAddr, mac: MacAddress) {
        let key = NeighbourKey::new(device, address);
        self.with_neighbours(|table| table.set_permanent(key, mac));
    }

    /// Takes back what [`Network::set_neighbour`] has entered: the neighbour's link address is looked for when a packet needs it.
    pub fn unset_neighbour(&self, device: DeviceId, address: IpAddr) {
        let key = NeighbourKey::new(device, address);
        self.with_neighbours(|table| table.unset_permanent(key));
    }

    /// The link of a device is another one, as after its interface was deleted and made anew: neighbours are asked
    /// for their link addresses again, and all addresses are announced again.
    pub fn renew_link(&self, device: DeviceId) {
        self.with_neighbours(|table| table.forget(device));
        self.announce_again();
    }

    fn announce_again(&self) {
        if self.policy().announce {
            *lock(&self.announcements) = ANNOUNCEMENTS;
            self.announcements_due.store(0, Ordering::Relaxed);
        }
    }

    /// All neighbours, with their link addresses where they are known.
    pub fn neighbours(&self) -> Vec<(NeighbourKey, NeighbourState, Option<MacAddress>)> {
        let known = |(key, state, mac)| {
            (key, state, Some(mac).filter(|_| state != NeighbourState::Incomplete))
        };
        let mut all: Vec<_> = lock(&self.neighbours).iter().map(known).collect();
        all.sort_by_key(|(key, ..)| *key);
        all
    }

    /// All neighbours as listings show them, by device and address.
    pub fn known_neighbours(&self) -> Vec<KnownNeighbour> {
        let mut all: Vec<_> = lock(&self.neighbours).known().collect();
        all.sort_by_key(|known| (known.device, known.address));
        all
    }

    /// A number that is another one after routes, neighbours or MTUs of links and paths have changed.
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// When [`Network::advance`] has something to do.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Time {
        let due = |due: &AtomicU64| due.load(Ordering::Relaxed);
        let tables = due(&self.neighbours_due).min(due(&self.path_mtus_due));
        let speaking = due(&self.services_due).min(due(&self.announcements_due));
        Time::from_nanos(tables.min(speaking))
    }

    /// Works on the table of neighbours.
    pub(crate) fn with_neighbours<T>(&self, work: impl FnOnce(&mut Neighbours) -> T) -> T {
        let mut table = lock(&self.neighbours);
        let before = table.version();
        let result = work(&mut table);
        let due = table.next_deadline().unwrap_or(Time::NEVER);
        self.neighbours_due.store(due.as_nanos(), Ordering::Relaxed);
        if table.version() != before {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    /// Does what is due, unless another lane is at it. Returns whether it is time to announce the
    /// interfaces' addresses.
    pub(crate) fn advance(
        &self,
        now: Time,
        questions: &mut Vec<Solicitation>,
        outbox: &mut Outbox,
    ) -> bool {
        if self.neighbours_due.load(Ordering::Relaxed) <= now.as_nanos() {
            self.with_neighbours(|table| table.advance(now, questions));
        }
        if self.path_mtus_due.load(Ordering::Relaxed) <= now.as_nanos() {
            self.with_path_mtus(|paths| paths.expire(now));
        }
        if self.services_due.load(Ordering::Relaxed) <= now.as_nanos()
            && let Ok(_turn) = self.services_lock.try_lock()
        {
            for service in &*self.services() {
                if service.next_deadline().is_some_and(|due| due <= now) {
                    service.tick(now, outbox);
                }
            }
            self.update_services_due(now);
        }
        self.announcements_due.load(Ordering::Relaxed) <= now.as_nanos()
            && self.take_announcement(now)
    }

    /// Offers a packet to the local services in turn; `false` when none takes it.
    pub(crate) fn deliver(&self, packet: &LocalPacket<'_>, now: Time, outbox: &mut Outbox) -> bool {
        let taken = self.services().iter().any(|service| service.receive(packet, now, outbox));
        if taken {
            self.update_services_due(now);
        }
        taken
    }

    fn services(&self) -> RwLockReadGuard<'_, Vec<Arc<dyn LocalService>>> {
        self.local_services.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn update_services_due(&self, now: Time) {
        let services = self.services();
        let deadlines = services.iter().filter_map(|service| service.next_deadline());
        let due = deadlines.min().unwrap_or(Time::NEVER).min(now + SERVICE_POLL);
        self.services_due.store(due.as_nanos(), Ordering::Relaxed);
    }

    fn take_announcement(&self, now: Time) -> bool {
        let mut left = lock(&self.announcements);
        // Another lane may have been faster.
        if self.announcements_due.load(Ordering::Relaxed) > now.as_nanos() || *left == 0 {
            return false;
        }
        *left -= 1;
        let next = if *left == 0 { Time::NEVER } else { now + ANNOUNCE_INTERVAL };
        self.announcements_due.store(next.as_nanos(), Ordering::Relaxed);
        true
    }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let local_services = self.services().len();
        f.debug_struct("Network")
            .field("interfaces", &self.interfaces)
            .field("local_services", &local_services)
            .finish()
    }
}

/// Takes a lock even after a thread panicked with it: what it guards is whole at every step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The routers among the hops.
fn gateways(routes: &Routes) -> impl Iterator<Item = NeighbourKey> + '_ {
    routes.hops().iter().filter_map(|hop| match *hop {
        Hop::Gateway(device, gateway) => Some(NeighbourKey::new(device, gateway)),
        _ => None,
    })
}

fn check(interfaces: &[Interface]) -> Result<(), NetworkError> {
    let (mut devices, mut addresses) = (HashSet::new(), HashSet::new());
    for interface in interfaces {
        let name = || interface.name.clone();
        if !devices.insert(interface.device) {
            return Err(NetworkError::SameDevice { device: interface.device, name: name() });
        }
        if interface.mac[0] & 1 != 0 || interface.mac == [0; 6] {
            return Err(NetworkError::Mac { name: name() });
        }
        for own in &interface.addresses {
            let address = own.address;
            let is_host = match address {
                IpAddr::V4(v4) => crate::interface::may_be_source_v4(v4),
                IpAddr::V6(v6) => crate::interface::may_be_source_v6(v6),
            };
            if !is_host {
                return Err(NetworkError::Address { name: name(), address });
            }
            if !addresses.insert(address) {
                return Err(NetworkError::SameAddress { name: name(), address });
            }
        }
        let has_v6 = interface.addresses.iter().any(|own| own.address.is_ipv6());
        let (mtu, least) = (interface.mtu, LEAST_MTU[usize::from(has_v6)]);
        if mtu < least {
            return Err(NetworkError::Mtu { name: name(), mtu, least });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lan(address: &str) -> Interface {
        let mut lan = Interface::new(DeviceId(0), "lan", [2, 0, 0, 0, 0, 1]);
        lan.addresses = vec![address.parse().unwrap()];
        lan
    }

    #[test]
    fn interfaces_that_cannot_be_are_named() {
        let fault = |interfaces: Vec<Interface>| {
            Network::new(interfaces, &[], Policy::default()).unwrap_err().to_string()
        };
        let good = lan("10.0.0.1/8");
        assert!(fault(vec![good.clone(), good.clone()]).contains("two interfaces"));
        let other = Interface { device: DeviceId(1), name: "wan".into(), ..good.clone() };
        assert!(fault(vec![good.clone(), other]).contains("`wan` has the address 10.0.0.1"));
        assert!(fault(vec![lan("224.0.0.1/8")]).contains("not that of one host"));
        let group = Interface { mac: [1; 6], ..good.clone() };
        assert!(fault(vec![group]).contains("link address of a group"));
        let narrow = Interface { mtu: 1_279, ..lan("fd00::1/64") };
        assert!(fault(vec![narrow]).contains("less than 1280"));
        assert!(Network::new(vec![Interface { mtu: 68, ..good }], &[], Policy::default()).is_ok());
    }

    #[test]
    fn other_routes_take_the_place_of_those_that_were_given() {
        let network = Network::new(vec![lan("10.0.0.1/8")], &[], Policy::default()).unwrap();
        let to = |address: &str| {
            let routes = network.routes();
            routes.hop(routes.lookup(address.parse().unwrap()))
        };
        let before = network.changes();
        assert_eq!(to("192.0.2.1"), Hop::None);
        let default = Route::via("0.0.0.0/0".parse().unwrap(), "10.0.0.9".parse().unwrap());
        network.set_routes(&[default]).unwrap();
        assert_eq!(to("192.0.2.1"), Hop::Gateway(DeviceId(0), "10.0.0.9".parse().unwrap()));
        assert_eq!(to("10.2.0.1"), Hop::OnLink(DeviceId(0)));
        assert!(network.changes() > before);
        let wrong = Route { gateway: None, ..default };
        assert!(network.set_routes(&[wrong]).is_err());
        assert!(matches!(to("192.0.2.1"), Hop::Gateway(..)));
    }
}
