//! The network that routers are measured on: clients behind routers on one link, servers behind routers on
//! the other.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rheostat_base::DeviceId;
use rheostat_ip::{Interface, Network, Policy, Route};
use rheostat_packet::wire::MacAddress;
use rheostat_steer::Prefix;

use crate::memory::{LAN, WAN, widened};

/// The link address that the source's frames are for.
const MAC: MacAddress = [2, 0, 0, 0, 0, 1];
/// Routers on each link.
const ROUTERS: u8 = 16;
/// Where clients and servers are.
const NETWORKS: [(DeviceId, Ipv4Addr, u8); 2] =
    [(LAN, Ipv4Addr::new(10, 0, 0, 0), 8), (WAN, Ipv4Addr::new(198, 18, 0, 0), 15)];

/// A network with a route to all clients and one to all servers, and `more` to some of either, all with
/// known next hops.
pub(super) fn network(more: usize) -> Arc<Network> {
    let mut routes = Vec::new();
    for (device, address, length) in NETWORKS {
        let prefix = Prefix::containing(address.into(), length);
        routes.push(Route::via(prefix, router(device, 0).into()));
        let prefix = Prefix::containing(widened(address).into(), 96 + length);
        routes.push(Route::via(prefix, widened(router(device, 0)).into()));
    }
    let mut known = HashSet::new();
    for number in 0_u32.. {
        if known.len() == more {
            break;
        }
        // Lengths and places that say nothing about each other.
        let drawn = number.wrapping_mul(0x9e37_79b1).rotate_left(13).wrapping_mul(0x85eb_ca6b);
        let (device, base, length) = NETWORKS[(number % 2) as usize];
        let address = base.to_bits() | drawn & u32::MAX >> length;
        let prefix =
            Prefix::containing(Ipv4Addr::from_bits(address).into(), 20 + (drawn % 9) as u8);
        if known.insert(prefix) {
            let router = router(device, (drawn >> 8) as u8 % ROUTERS);
            routes.push(Route::via(prefix, router.into()));
        }
    }
    let interfaces = [LAN, WAN].map(|device| {
        let own = Ipv4Addr::new(192, 0, 2 + device.0, 1);
        let mut interface = Interface::new(device, format!("{device}"), MAC);
        let addresses = [format!("{own}/24"), format!("{}/120", widened(own))];
        interface.addresses =
            addresses.map(|address| address.parse().expect("an address")).to_vec();
        interface
    });
    let policy = Policy { announce: false, ..Policy::default() };
    let network = Network::new(interfaces.to_vec(), &routes, policy).expect("a sound network");
    for device in [LAN, WAN] {
        for number in 0..ROUTERS {
            let address = router(device, number);
            let mac = [2, 0, 0, 0, 1 + device.0, number];
            network.set_neighbour(device, address.into(), mac);
            network.set_neighbour(device, IpAddr::V6(widened(address)), mac);
        }
    }
    Arc::new(network)
}

/// A router on the link of a device.
fn router(device: DeviceId, number: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2 + device.0, 10 + number)
}
