//! The network around the devices of a case: addresses, routes and neighbours.

use std::net::IpAddr;
use std::sync::Arc;

use rheostat_base::DeviceId;
use rheostat_ip::{Interface, Network, Policy, Route};
use rheostat_packet::wire::MacAddress;

use crate::cases::link;
use crate::cases::script::Port;

/// The link addresses of `lan` and `wan`.
pub(crate) const MACS: [MacAddress; 2] = [[4, 4, 4, 4, 4, 4], [4, 4, 4, 4, 4, 5]];

/// What a case says about its network.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    interfaces: [Interface; 2],
    routes: Vec<Route>,
    neighbours: Vec<(Port, IpAddr, MacAddress)>,
}

impl Default for Topology {
    fn default() -> Topology {
        let interface =
            |port: Port| Interface::new(DeviceId(port as u8), port.name(), MACS[port as usize]);
        let interfaces = [Port::Lan, Port::Wan].map(interface);
        Topology { interfaces, routes: Vec::new(), neighbours: Vec::new() }
    }
}

impl Topology {
    /// Reads a line that starts with `address`, `proxied`, `mtu`, `vlan`, `route` or `neighbour`.
    pub(crate) fn line(&mut self, words: &[&str]) -> Result<(), String> {
        let port = |word: &str| Port::parse(word).ok_or_else(|| format!("`{word}` is no device"));
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
