//! All the routes of a run: those to what is on the interfaces' links, those to the machine itself, and
//! those that were given.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rheostat_base::DeviceId;
use rheostat_steer::Prefix;
use thiserror::Error;

use super::{DirectTable, Lpm, Route};
use crate::interface::Interface;

/// What is to become of packets to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hop {
    /// Nothing leads there.
    None,
    /// It is an address of the machine itself; whether the chain sees its packets first.
    Local {
        /// Whether an interface also answers for it on behalf of the chain.
        proxied: bool,
    },
    /// An interface answers for it on behalf of the chain.
    Proxied,
    /// It is all hosts on a link (RFC 1812, section 5.3.5), and goes no further.
    Broadcast,
    /// Its host is on this device's link.
    OnLink(DeviceId),
    /// It is reached through a router on this device's link.
    Gateway(DeviceId, IpAddr),
}

/// Places for hops that nothing leads to any more, in a table that has few others.
const SPARE_HOPS: usize = 64;

/// The place of a [`Hop`] in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HopId(pub u16);

impl HopId {
    /// [`Hop::None`].
    pub const NONE: HopId = HopId(0);
}

/// Why routes do not make a table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RouteError {
    /// The route states neither through which router nor on which device.
    #[error("the route to {0} leads nowhere: give it a gateway or a device")]
    Nowhere(Prefix),
    /// Prefix and gateway are of different versions of IP.
    #[error(
        "the route to {prefix} cannot lead through {gateway}, which is of the other IP version"
    )]
    Family {
        /// The prefix.
        prefix: Prefix,
        /// The gateway.
        gateway: IpAddr,
    },
    /// No interface has the gateway on its link.
    #[error(
        "the gateway {gateway} of the route to {prefix} is on no interface's link: give an interface an \
         address in its network, or name the device"
    )]
    OffLink {
        /// The prefix.
        prefix: Prefix,
        /// The gateway.
        gateway: IpAddr,
    },
    /// The gateway is the machine itself.
    #[error("the gateway {gateway} of the route to {prefix} is an address of this machine")]
    Own {
        /// The prefix.
        prefix: Prefix,
        /// The gateway.
        gateway: IpAddr,
    },
    /// The device has no addresses.
    #[error("the route to {prefix} names {device}, which has no address")]
    Device {
        /// The prefix.
        prefix: Prefix,
        /// The device.
        device: DeviceId,
    },
    /// Two routes have the same prefix.
    #[error("there are two routes to {0}: keep one")]
    Twice(Prefix),
    /// More next hops than a table has room for.
    #[error("more than 65534 different next hops")]
    TooManyHops,
}

/// A table of routes for IPv4 and IPv6. It does not change: other routes make another table.
#[derive(Clone, Debug)]
pub struct Routes {
    hops: Vec<Hop>,
    /// The prefixes in order, for listings.
    ways: Box<[(Prefix, HopId)]>,
    v4: DirectTable,
    v6: Lpm<u128>,
}

impl Routes {
    /// The table of `routes`, together with what follows from the interfaces.
    ///
    /// # Errors
    /// [`RouteError`] when a route leads nowhere, or two have the same prefix.
    pub fn new(interfaces: &[Interface], routes: &[Route]) -> Result<Routes, RouteError> {
        Routes::after(None, interfaces, routes)
    }

    /// The same, where another table was before: hops keep their places, and what is the same in the tables is shared.
    ///
    /// # Errors
    /// As [`Routes::new`].
    pub fn after(
        before: Option<&Routes>,
        interfaces: &[Interface],
        routes: &[Route],
    ) -> Result<Routes, RouteError> {
        let mut ways: BTreeMap<(IpAddr, u8), Hop> = BTreeMap::new();
        for interface in interfaces {
            for own in &interface.addresses {
                let (prefix, device) = (own.prefix(), interface.device);
                ways.insert((prefix.address(), prefix.length()), Hop::OnLink(device));
            }
        }
        let mut given = BTreeMap::new();
        for route in routes {
            let hop = resolve(interfaces, route)?;
            let place = (route.prefix.address(), route.prefix.length());
            if given.insert(place, hop).is_some() {
                return Err(RouteError::Twice(route.prefix));
            }
        }
        ways.append(&mut given);
        // What the machine itself has to do with goes before all that.
        for interface in interfaces {
            for own in &interface.addresses {
                if let Some(addresses) = broadcasts(own.prefix()) {
                    ways.extend(addresses.map(|address| ((address, 32), Hop::Broadcast)));
                }
            }
        }
        for prefix in interfaces.iter().flat_map(|interface| interface.proxied.iter()) {
            ways.insert((prefix.address(), prefix.length()), Hop::Proxied);
        }
        for interface in interfaces {
            for own in &interface.addresses {
                let proxied = interfaces.iter().any(|other| other.proxied.contains(own.address));
                let length = if own.address.is_ipv4() { 32 } else { 128 };
                ways.insert((own.address, length), Hop::Local { proxied });
            }
        }
        let hops: HashSet<Hop> = ways.values().copied().collect();
        // Places of hops that nothing leads to any more are given back when they are the most.
        let before = before.filter(|before| before.hops.len() <= 2 * hops.len() + SPARE_HOPS);
        Routes::of(&ways, before)
    }

    fn of(
        ways: &BTreeMap<(IpAddr, u8), Hop>,
        before: Option<&Routes>,
    ) -> Result<Routes, RouteError> {
        let mut hops = before.map_or_else(|| vec![Hop::None], |before| before.hops.clone());
        let mut known: HashMap<Hop, u16> = hops.iter().copied().zip(0..).collect();
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        let mut listed = Vec::with_capacity(ways.len());
        for ((address, length), hop) in ways {
            let id = match known.get(hop) {
                Some(id) => *id,
                None => {
                    let id = u16::try_from(hops.len()).map_err(|_| RouteError::TooManyHops)?;
                    hops.push(*hop);
                    known.insert(*hop, id);
                    id
                }
            };
            listed.push((Prefix::containing(*address, *length), HopId(id)));
            match address {
                IpAddr::V4(address) => v4.push((address.to_bits(), *length, id)),
                IpAddr::V6(address) => v6.push((address.to_bits(), *length, id)),
            }
        }
        let v4 = DirectTable::new(v4, before.map(|before| &before.v4));
        Ok(Routes { hops, ways: listed.into(), v4, v6: Lpm::new(v6) })
    }

    /// The prefixes that lead somewhere with their hops, those of IPv4 first: given routes, links, and addresses of the machine.
    pub fn ways(&self) -> impl Iterator<Item = (Prefix, Hop)> {
        self.ways.iter().map(|(prefix, id)| (*prefix, self.hop(*id)))
    }

    /// The hop to an address of IPv4.
    #[inline(always)]
    pub fn lookup_v4(&self, address: Ipv4Addr) -> HopId {
        HopId(self.v4.lookup(address.to_bits()))
    }

    /// The hop to an address of IPv6. Link-local addresses are not in the table: they mean something
    /// else on each link.
    #[inline(always)]
    pub fn lookup_v6(&self, address: Ipv6Addr) -> HopId {
        HopId(self.v6.lookup(address.to_bits()))
    }

    /// The hop to an address.
    pub fn lookup(&self, address: IpAddr) -> HopId {
        match address {
            IpAddr::V4(v4) => self.lookup_v4(v4),
            IpAddr::V6(v6) => self.lookup_v6(v6),
        }
    }

    /// What a lookup has found. Nothing, for what was found in a table before that had more hops.
    #[inline(always)]
    pub fn hop(&self, id: HopId) -> Hop {
        self.hops.get(usize::from(id.0)).copied().unwrap_or(Hop::None)
    }

    /// All hops, in the order of their places.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }
}

/// Where a route leads.
fn resolve(interfaces: &[Interface], route: &Route) -> Result<Hop, RouteError> {
    let prefix = route.prefix;
    if let Some(device) = route.device
        && interfaces.iter().all(|interface| interface.device != device)
    {
        return Err(RouteError::Device { prefix, device });
    }
    let Some(gateway) = route.gateway else {
        return route.device.map(Hop::OnLink).ok_or(RouteError::Nowhere(prefix));
    };
    if gateway.is_ipv4() != prefix.address().is_ipv4() {
        return Err(RouteError::Family { prefix, gateway });
    }
    if interfaces.iter().any(|interface| interface.owns(gateway)) {
        return Err(RouteError::Own { prefix, gateway });
    }
    let device = route.device.or_else(|| {
        // Every link has link-local addresses: those need a device to be named.
        let has = |interface: &&Interface| {
            interface.addresses.iter().any(|own| own.prefix().contains(gateway))
        };
        interfaces.iter().find(has).map(|interface| interface.device)
    });
    let device = device.ok_or(RouteError::OffLink { prefix, gateway })?;
    Ok(Hop::Gateway(device, gateway))
}

/// The addresses of all hosts in a network (RFC 1812, section 5.3.5): its last, and its first, which is obsolete. Networks of
/// one or two hosts have none (RFC 3021), nor has IPv6.
fn broadcasts(prefix: Prefix) -> Option<[IpAddr; 2]> {
    let IpAddr::V4(first) = prefix.address() else { return None };
    if prefix.length() > 30 {
        return None;
    }
    let last = first.to_bits() | u32::MAX >> prefix.length();
    Some([first.into(), Ipv4Addr::from_bits(last).into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interfaces() -> Vec<Interface> {
        let mut lan = Interface::new(DeviceId(0), "lan", [2, 0, 0, 0, 0, 1]);
        lan.addresses = vec!["192.168.77.1/24".parse().unwrap(), "fd00::1/64".parse().unwrap()];
        let mut wan = Interface::new(DeviceId(1), "wan", [2, 0, 0, 0, 0, 2]);
        wan.addresses = vec!["203.0.113.1/24".parse().unwrap()];
        wan.proxied =
            ["203.0.113.1", "203.0.113.100"].map(|p| p.parse().unwrap()).into_iter().collect();
        vec![lan, wan]
    }

    fn route(prefix: &str, gateway: &str) -> Route {
        Route::via(prefix.parse().unwrap(), gateway.parse().unwrap())
    }

    #[test]
    fn links_the_machine_itself_and_the_rest() {
        let routes = [route("0.0.0.0/0", "203.0.113.254"), route("10.0.0.0/8", "192.168.77.9")];
        let routes = Routes::new(&interfaces(), &routes).unwrap();
        let hop = |address: &str| routes.hop(routes.lookup(address.parse().unwrap()));
        let (lan, wan) = (DeviceId(0), DeviceId(1));
        for (address, expected) in [
            ("192.168.77.1", Hop::Local { proxied: false }),
            ("192.168.77.2", Hop::OnLink(lan)),
            ("192.168.77.255", Hop::Broadcast),
            ("192.168.77.0", Hop::Broadcast),
            ("203.0.113.1", Hop::Local { proxied: true }),
            ("203.0.113.100", Hop::Proxied),
            ("203.0.113.9", Hop::OnLink(wan)),
            ("10.1.2.3", Hop::Gateway(lan, "192.168.77.9".parse().unwrap())),
            ("8.8.8.8", Hop::Gateway(wan, "203.0.113.254".parse().unwrap())),
            ("fd00::2", Hop::OnLink(lan)),
            ("2001:db8::1", Hop::None),
        ] {
            assert_eq!(hop(address), expected, "{address}");
        }
    }

    #[test]
    fn hops_keep_their_places_while_routes_come_and_go() {
        let gateway = |number: u32| format!("192.168.77.{}", number % 200 + 2);
        let table = |before: Option<&Routes>, numbers: std::ops::Range<u32>| {
            let routes: Vec<_> = numbers
                .map(|number| route(&format!("10.{number}.0.0/16"), &gateway(number)))
                .collect();
            Routes::after(before, &interfaces(), &routes).unwrap()
        };
        let first = table(None, 10..20);
        let second = table(Some(&first), 5..15);
        for number in 5..20 {
            let address = format!("10.{number}.0.1").parse().unwrap();
            let hops = [&first, &second].map(|routes| routes.hop(routes.lookup(address)));
            let leads = Hop::Gateway(DeviceId(0), gateway(number).parse().unwrap());
            assert_eq!(hops[0], if number < 10 { Hop::None } else { leads }, "{number}");
            assert_eq!(hops[1], if number < 15 { leads } else { Hop::None }, "{number}");
            if (10..15).contains(&number) {
                assert_eq!(first.lookup(address), second.lookup(address));
            }
        }
        // Those that nothing leads to are forgotten in the end.
        let mut last = second;
        for start in 0..180 {
            last = table(Some(&last), start..start + 3);
        }
        assert!(last.hops().len() < 100, "{}", last.hops().len());
    }

    #[test]
    fn routes_that_lead_nowhere_are_named() {
        let fault = |route: Route| Routes::new(&interfaces(), &[route]).unwrap_err().to_string();
        let bare = Route { prefix: "10.0.0.0/8".parse().unwrap(), gateway: None, device: None };
        assert!(fault(bare).contains("10.0.0.0/8 leads nowhere"));
        assert!(fault(Route { device: Some(DeviceId(7)), ..bare }).contains("device 7"));
        assert!(fault(route("10.0.0.0/8", "198.51.100.1")).contains("on no interface's link"));
        assert!(fault(route("10.0.0.0/8", "fd00::9")).contains("other IP version"));
        assert!(fault(route("10.0.0.0/8", "192.168.77.1")).contains("an address of this machine"));
        assert!(fault(route("2001:db8::/32", "fe80::1")).contains("or name the device"));
        let twice = [route("10.0.0.0/8", "192.168.77.2"), route("10.0.0.0/8", "192.168.77.3")];
        let error = Routes::new(&interfaces(), &twice).unwrap_err();
        assert_eq!(error, RouteError::Twice("10.0.0.0/8".parse().unwrap()));
    }

    #[test]
    fn a_network_of_two_has_no_broadcast() {
        let mut lan = Interface::new(DeviceId(0), "lan", [2, 0, 0, 0, 0, 1]);
        lan.addresses = vec!["192.0.2.0/31".parse().unwrap()];
        let routes = Routes::new(&[lan], &[]).unwrap();
        let hop = |address: &str| routes.hop(routes.lookup(address.parse().unwrap()));
        assert_eq!(hop("192.0.2.0"), Hop::Local { proxied: false });
        assert_eq!(hop("192.0.2.1"), Hop::OnLink(DeviceId(0)));
    }
}
