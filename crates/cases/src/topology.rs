//! The network around the devices of a case: addresses, routes and neighbours.

use std::net::IpAddr;
use std::sync::Arc;

use rheostat_base::DeviceId;
use rheostat_control::Config;
use rheostat_control::config::DeviceConfig;
use rheostat_control::config::device::LinkAddress;
use rheostat_control::config::network::{NeighbourConfig, RouteConfig};
use rheostat_ip::{Interface, InterfaceAddress, Network, Policy, Route};
use rheostat_packet::wire::MacAddress;
use rheostat_steer::{Orientation, Prefix};

use crate::link;
use crate::port::CasePort;

/// The link addresses of `lan` and `wan`.
pub(crate) const MACS: [MacAddress; 2] = [[4, 4, 4, 4, 4, 4], [4, 4, 4, 4, 4, 5]];

/// What a case says about its network.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    interfaces: [Interface; 2],
    routes: Vec<Route>,
    neighbours: Vec<(CasePort, IpAddr, MacAddress)>,
}

impl Default for Topology {
    fn default() -> Topology {
        let interface =
            |port: CasePort| Interface::new(DeviceId(port as u8), port.name(), MACS[port as usize]);
        let interfaces = [CasePort::Lan, CasePort::Wan].map(interface);
        Topology { interfaces, routes: Vec::new(), neighbours: Vec::new() }
    }
}

impl Topology {
    /// Reads a line that starts with `address`, `proxied`, `mtu`, `vlan`, `route` or `neighbour`.
    pub(crate) fn line(&mut self, words: &[&str]) -> Result<(), String> {
        let port =
            |word: &str| CasePort::parse(word).ok_or_else(|| format!("`{word}` is no device"));
        fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
            word.parse().map_err(|_| format!("`{word}` is not what belongs here"))
        }
        match words {
            ["address", device, address] => {
                let interface = &mut self.interfaces[port(device)? as usize];
                interface.addresses.push(number(address)?);
            }
            ["proxied", device, prefix] => {
                let interface = &mut self.interfaces[port(device)? as usize];
                let prefix = number(prefix)?;
                interface.proxied = interface.proxied.iter().copied().chain([prefix]).collect();
            }
            ["mtu", device, mtu] => self.interfaces[port(device)? as usize].mtu = number(mtu)?,
            ["vlan", device, id] => {
                self.interfaces[port(device)? as usize].vlan = Some(number(id)?);
            }
            ["route", prefix, "via", gateway] => {
                self.routes.push(Route::via(number(prefix)?, number(gateway)?));
            }
            ["route", prefix, "on", device] => {
                let device = Some(DeviceId(port(device)? as u8));
                self.routes.push(Route { prefix: number(prefix)?, gateway: None, device });
            }
            ["neighbour", device, address, mac] => {
                self.neighbours.push((port(device)?, number(address)?, link::mac(mac)?));
            }
            _ => return Err(format!("`{}` is no line about the network", words.join(" "))),
        }
        Ok(())
    }

    /// The network of a configuration whose devices have addresses; `None` where they have none.
    ///
    /// # Errors
    /// When its devices are not one inside and one outside, which are the devices of a case.
    pub(crate) fn of(config: &Config) -> Result<Option<Topology>, String> {
        if config.devices.iter().all(|device| device.addresses.is_empty()) {
            return Ok(None);
        }
        let port_of = |device: &DeviceConfig| match device.orientation {
            Orientation::Inside => Some(CasePort::Lan),
            Orientation::Outside => Some(CasePort::Wan),
            Orientation::ByPrefix(_) => None,
        };
        let ports: Option<Vec<_>> = config.devices.iter().map(port_of).collect();
        let ports = ports.filter(|ports| matches!(ports[..], [a, b] if a != b)).ok_or(
            "the configuration has other devices than one inside and one outside: state the network in the case",
        )?;
        let mut topology = Topology::default();
        let served: Vec<_> =
            config.chain.iter().flat_map(|function| function.facts().served).collect();
        for (device, port) in config.devices.iter().zip(&ports) {
            let interface = &mut topology.interfaces[*port as usize];
            let own =
                |own: &LinkAddress| InterfaceAddress { address: own.address, length: own.length };
            interface.addresses = device.addresses.iter().map(own).collect();
            interface.mtu = device.mtu.unwrap_or(interface.mtu);
            let theirs =
                |address: &&IpAddr| interface.is_on_link(**address) || *port == CasePort::Wan;
            let host = |address: &IpAddr| {
                Prefix::containing(*address, if address.is_ipv4() { 32 } else { 128 })
            };
            interface.proxied = served.iter().filter(theirs).map(host).collect();
        }
        let device = |device: DeviceId| DeviceId(ports[device.index()] as u8);
        let route = |route: &RouteConfig| Route {
            prefix: route.to,
            gateway: route.via,
            device: Some(device(route.device)),
        };
        topology.routes = config.network.routes.iter().map(route).collect();
        let neighbours = config.network.neighbours.iter();
        let neighbour = |neighbour: &NeighbourConfig| {
            (ports[neighbour.device.index()], neighbour.address, neighbour.mac.0)
        };
        topology.neighbours = neighbours.map(neighbour).collect();
        Ok(Some(topology))
    }

    /// The network. It announces nothing: that would come of the first packet of every case.
    pub(crate) fn build(&self) -> Result<Arc<Network>, String> {
        let policy = Policy { announce: false, ..Policy::default() };
        let network = Network::new(self.interfaces.to_vec(), &self.routes, policy)
            .map_err(|error| error.to_string())?;
        for (port, address, mac) in &self.neighbours {
            network.set_neighbour(DeviceId(*port as u8), *address, *mac);
        }
        Ok(Arc::new(network))
    }
}
