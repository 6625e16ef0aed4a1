//! The kernel's routes and neighbours as reported over rtnetlink, and the routes of rheostat's devices that they amount to.
//! Sends and receives nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use rheostat_base::DeviceId;
use rheostat_kernel::routing::{KernelEvent, KernelRoute, Request};
use rheostat_packet::wire::MacAddress;
use rheostat_steer::Prefix;

use crate::route::Route;

/// The kernel's main table.
const MAIN: u32 = 254;
/// `errno` of a request while another one is being answered on the socket (netlink(7)).
const EBUSY: i32 = 16;

/// What is to be done after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing.
    Wait,
    /// This is to be sent, with this number.
    Ask(Request, u32),
    /// Everything is known, and something has changed.
    Changed,
}

/// Which of the kernel's neighbours count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownNeighbours {
    /// Those that an administrator has entered. Others are found by asking.
    Permanent,
    /// Those that the kernel has found, too, while it knows them.
    All,
}

/// The kernel's tables, first as it reports them whole, then as they change.
#[derive(Debug)]
pub struct KernelTables {
    /// Rheostat's devices by the names of their interfaces.
    names: HashMap<String, DeviceId>,
    devices: HashMap<u32, DeviceId>,
    /// Which of their interfaces are up.
    up: BTreeSet<u32>,
    addresses: BTreeSet<(u32, (IpAddr, u8))>,
    routes: BTreeSet<KernelRoute>,
    neighbours: BTreeMap<(u32, IpAddr), (MacAddress, bool)>,
    /// The request that is being answered, by its place in [`Request::ALL`].
    asking: Option<usize>,
    sequence: u32,
    /// Whether what is being told holds together.
    is_consistent: bool,
}

impl KernelTables {
    /// Tables for the devices on interfaces of these names.
    pub fn new(devices: impl IntoIterator<Item = (String, DeviceId)>) -> KernelTables {
        KernelTables {
            names: devices.into_iter().collect(),
            devices: HashMap::new(),
            up: BTreeSet::new(),
            addresses: BTreeSet::new(),
            routes: BTreeSet::new(),
            neighbours: BTreeMap::new(),
            asking: None,
            sequence: 0,
            is_consistent: true,
        }
    }

    /// Forgets everything: the kernel is to report it anew. At first, and when messages were lost.
    pub fn restart(&mut self) -> Progress {
        self.devices.clear();
        self.up.clear();
        self.addresses.clear();
        self.routes.clear();
        self.neighbours.clear();
        self.is_consistent = true;
        self.ask(0)
    }

    fn ask(&mut self, place: usize) -> Progress {
        self.asking = Some(place);
        self.sequence = self.sequence.wrapping_add(1);
        Progress::Ask(Request::ALL[place], self.sequence)
    }

    /// Whether everything is known.
    pub fn is_complete(&self) -> bool {
        self.sequence > 0 && self.asking.is_none()
    }

    /// Takes in what the kernel states. With an interface or an address, routes of IPv4 go of which it states
    /// nothing: then everything is requested anew, and what was known stays in force until all is reported.
    pub fn take(&mut self, event: KernelEvent) -> Progress {
        let has_changed = match event {
            KernelEvent::Overrun => return self.restart(),
            KernelEvent::Done { sequence, is_consistent } if sequence == self.sequence => {
                self.is_consistent &= is_consistent;
                return self.next_request();
            }
            // It still answers a question from before something was lost. Until that is over, this one is
            // asked again; each answer is one step nearer.
            KernelEvent::Failed { sequence, error: EBUSY } if sequence == self.sequence => {
                let place = self.asking.unwrap_or_default();
                return self.ask(place);
            }
            // Not to be told now: the next ones may be, and what is missing stays so.
            KernelEvent::Failed { sequence, .. } if sequence == self.sequence => {
                return self.next_request();
            }
            KernelEvent::Done { .. } | KernelEvent::Failed { .. } => return Progress::Wait,
            KernelEvent::Link { interface, name, is_up } => {
                let device = self.names.get(&name).copied();
                let was_up = match is_up {
                    true => !self.up.insert(interface),
                    false => self.up.remove(&interface),
                };
                let was = match device {
                    Some(device) => self.devices.insert(interface, device),
                    // If it was ours, then by another name.
                    None => self.devices.remove(&interface),
                };
                if was_up && !is_up && was.is_some() {
                    return self.restart();
                }
                was != device
            }
            KernelEvent::LinkGone(interface) if self.devices.contains_key(&interface) => {
                return self.restart();
            }
            KernelEvent::LinkGone(_) => false,
            KernelEvent::Address { interface, address, is_there: true } => {
                self.addresses.insert((interface, address))
            }
            KernelEvent::Address { interface, address, is_there: false } => {
                if self.addresses.remove(&(interface, address))
                    && self.devices.contains_key(&interface)
                {
                    return self.restart();
                }
                false
            }
            KernelEvent::Route { route, .. } if route.table != MAIN => false,
            KernelEvent::Route { route, is_there: true } => {
                // The kernel replaces a route in place, and reports only the new one.
                let same = |other: &KernelRoute| {
                    (other.prefix, other.metric) == (route.prefix, route.metric)
                        && route.prefix.0.is_ipv4()
                };
                let before = self.routes.len();
                self.routes.retain(|other| other == &route || !same(other));
                let has_gone = self.routes.len() != before;
                self.routes.insert(route) || has_gone
            }
            KernelEvent::Route { route, is_there: false } => self.routes.remove(&route),
            KernelEvent::Neighbour { interface, address, mac, is_permanent } => {
                let place = (interface, address);
                match mac {
                    Some(mac) => {
                        let known = (mac, is_permanent);
                        self.neighbours.insert(place, known) != Some(known)
                    }
                    None => self.neighbours.remove(&place).is_some(),
                }
            }
        };
        if has_changed && self.is_complete() { Progress::Changed } else { Progress::Wait }
    }

    fn next_request(&mut self) -> Progress {
        let Some(place) = self.asking else { return Progress::Wait };
        if place + 1 < Request::ALL.len() {
            return self.ask(place + 1);
        }
        if !self.is_consistent {
            return self.restart();
        }
        self.asking = None;
        Progress::Changed
    }

    /// The routes that lead out of rheostat's devices, of several to one prefix the one with the least
    /// metric. Those that the interfaces' own addresses imply are among them.
    pub fn routes(&self) -> Vec<Route> {
        let mut best: BTreeMap<(IpAddr, u8), (u32, Route)> = BTreeMap::new();
        for route in &self.routes {
            let Some(&device) = self.devices.get(&route.interface) else { continue };
            let (address, length) = route.prefix;
            let prefix = Prefix::containing(address, length);
            // Those of a link mean something else on each.
            let is_link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
            if is_link_local || address.is_multicast() {
                continue;
            }
            let route_here = Route { prefix, gateway: route.gateway, device: Some(device) };
            let known = best.entry(route.prefix).or_insert((route.metric, route_here));
            if route.metric < known.0 {
                *known = (route.metric, route_here);
            }
        }
        best.into_values().map(|(_, route)| route).collect()
    }

    /// The neighbours of these on rheostat's devices.
    pub fn neighbours(&self, which: KnownNeighbours) -> Vec<(DeviceId, IpAddr, MacAddress)> {
        let ours = self.neighbours.iter().filter_map(|((interface, address), (mac, permanent))| {
            let device = *self.devices.get(interface)?;
            let counts = *permanent || which == KnownNeighbours::All;
            counts.then_some((device, *address, *mac))
        });
        ours.collect()
    }

    /// The addresses of the interfaces of rheostat's devices.
    pub fn addresses(&self) -> Vec<(DeviceId, (IpAddr, u8))> {
        let ours = self
            .addresses
            .iter()
            .filter_map(|(interface, address)| Some((*self.devices.get(interface)?, *address)));
        ours.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> KernelTables {
        KernelTables::new([("lan".to_owned(), DeviceId(0)), ("wan".to_owned(), DeviceId(1))])
    }

    fn link(interface: u32, name: &str) -> KernelEvent {
        KernelEvent::Link { interface, name: name.to_owned(), is_up: true }
    }

    fn done(tables: &mut KernelTables) -> Progress {
        let sequence = tables.sequence;
        tables.take(KernelEvent::Done { sequence, is_consistent: true })
    }

    fn route(prefix: ([u8; 4], u8), gateway: [u8; 4], interface: u32, metric: u32) -> KernelEvent {
        let prefix = (prefix.0.into(), prefix.1);
        let gateway = Some(gateway.into());
        let route = KernelRoute { prefix, metric, table: MAIN, gateway, interface };
        KernelEvent::Route { route, is_there: true }
    }

    fn gone(event: KernelEvent) -> KernelEvent {
        match event {
            KernelEvent::Route { route, .. } => KernelEvent::Route { route, is_there: false },
            other => other,
        }
    }

    /// Tables that are complete: lan is 5, wan is 6.
    fn complete() -> KernelTables {
        let mut tables = tables();
        assert_eq!(tables.restart(), Progress::Ask(Request::Links, 1));
        for (interface, name) in [(1, "lo"), (5, "lan"), (6, "wan")] {
            assert_eq!(tables.take(link(interface, name)), Progress::Wait);
        }
        assert_eq!(done(&mut tables), Progress::Ask(Request::Addresses, 2));
        assert_eq!(done(&mut tables), Progress::Ask(Request::Routes, 3));
        assert_eq!(tables.take(route(([0; 4], 0), [192, 0, 2, 1], 6, 100)), Progress::Wait);
        assert_eq!(done(&mut tables), Progress::Ask(Request::Neighbours, 4));
        assert!(!tables.is_complete());
        assert_eq!(done(&mut tables), Progress::Changed);
        assert!(tables.is_complete());
        tables
    }

    fn told(tables: &KernelTables) -> Vec<String> {
        tables.routes().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn tables_are_asked_for_one_after_the_other_and_then_followed() {
        let mut tables = complete();
        assert_eq!(told(&tables), ["0.0.0.0/0 via 192.0.2.1 on device 1"]);
        let ten = route(([10, 0, 0, 0], 8), [192, 168, 77, 9], 5, 0);
        assert_eq!(tables.take(ten.clone()), Progress::Changed);
        assert_eq!(tables.take(ten.clone()), Progress::Wait, "told twice");
        assert_eq!(told(&tables).len(), 2);
        assert_eq!(tables.take(gone(ten.clone())), Progress::Changed);
        assert_eq!(tables.take(gone(ten)), Progress::Wait);
        // Not through a device of rheostat's.
        tables.take(route(([172, 16, 0, 0], 12), [127, 0, 0, 9], 1, 0));
        assert_eq!(told(&tables).len(), 1);
    }

    #[test]
    fn the_least_metric_counts_and_the_next_one_takes_over() {
        let mut tables = complete();
        let better = route(([0; 4], 0), [192, 168, 77, 9], 5, 10);
        tables.take(better);
        assert_eq!(told(&tables), ["0.0.0.0/0 via 192.168.77.9 on device 0"]);
        // Replaced in place: the kernel reports the new one only.
        tables.take(route(([0; 4], 0), [192, 168, 77, 8], 5, 10));
        assert_eq!(told(&tables), ["0.0.0.0/0 via 192.168.77.8 on device 0"]);
    }

    #[test]
    fn what_goes_with_an_interface_or_an_address_is_asked_for_again() {
        let address = ([192, 0, 2, 1].into(), 24);
        let down = KernelEvent::Link { interface: 5, name: "lan".to_owned(), is_up: false };
        let gone = KernelEvent::Address { interface: 6, address, is_there: false };
        for event in [KernelEvent::LinkGone(6), down, gone] {
            let mut tables = complete();
            tables.take(KernelEvent::Address { interface: 6, address, is_there: true });
            assert_eq!(tables.take(event), Progress::Ask(Request::Links, 5));
        }
        // Others' are no matter, nor is one that was down before.
        let mut tables = complete();
        let other = KernelEvent::Link { interface: 1, name: "lo".to_owned(), is_up: false };
        for event in [KernelEvent::LinkGone(9), other, link(5, "lan")] {
            assert_eq!(tables.take(event), Progress::Wait);
        }
    }

    #[test]
    fn what_was_lost_is_asked_for_again() {
        let mut tables = complete();
        assert_eq!(tables.take(KernelEvent::Overrun), Progress::Ask(Request::Links, 5));
        // The end of an answer that no request waits for.
        let stale = KernelEvent::Done { sequence: 4, is_consistent: true };
        assert_eq!(tables.take(stale), Progress::Wait);
        for _ in 0..3 {
            done(&mut tables);
        }
        // The tables have changed while they were told: once more.
        let sequence = tables.sequence;
        let torn = tables.take(KernelEvent::Done { sequence, is_consistent: false });
        assert_eq!(torn, Progress::Ask(Request::Links, 9));
        assert!(!tables.is_complete());
        for _ in 0..3 {
            done(&mut tables);
        }
        assert_eq!(done(&mut tables), Progress::Changed);
    }

    #[test]
    fn a_question_is_asked_again_while_the_kernel_still_answers_another() {
        let mut tables = tables();
        assert_eq!(tables.restart(), Progress::Ask(Request::Links, 1));
        assert_eq!(tables.take(KernelEvent::Overrun), Progress::Ask(Request::Links, 2));
        let busy = |sequence| KernelEvent::Failed { sequence, error: EBUSY };
        assert_eq!(tables.take(busy(2)), Progress::Ask(Request::Links, 3));
        assert_eq!(tables.take(busy(2)), Progress::Wait);
        assert_eq!(done(&mut tables), Progress::Ask(Request::Addresses, 4));
        assert_eq!(tables.take(busy(4)), Progress::Ask(Request::Addresses, 5));
    }

    #[test]
    fn neighbours_that_were_entered_by_hand_count() {
        let mut tables = complete();
        let mac = Some([2, 0, 0, 0, 0, 9]);
        let neighbour = |interface, mac, is_permanent| {
            let address = [192, 0, 2, 9].into();
            KernelEvent::Neighbour { interface, address, mac, is_permanent }
        };
        assert_eq!(tables.take(neighbour(6, mac, false)), Progress::Changed);
        let expected = (DeviceId(1), [192, 0, 2, 9].into(), [2, 0, 0, 0, 0, 9]);
        assert_eq!(tables.neighbours(KnownNeighbours::Permanent), []);
        assert_eq!(tables.neighbours(KnownNeighbours::All), [expected]);
        tables.take(neighbour(6, mac, true));
        tables.take(neighbour(1, mac, true));
        assert_eq!(tables.neighbours(KnownNeighbours::Permanent), [expected]);
        assert_eq!(tables.take(neighbour(6, None, false)), Progress::Changed);
        assert_eq!(tables.neighbours(KnownNeighbours::All), []);
    }
}
