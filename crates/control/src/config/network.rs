//! `[network]`, `[[route]]` and `[[neighbour]]`: where packets go that are addressed to no device.

use std::net::IpAddr;

use rheostat_base::DeviceId;
use rheostat_ip::{NeighbourLimits, Policy};
use rheostat_steer::Prefix;

use super::DeviceConfig;
use super::device::{MacAddress, mac};
use rheostat_settings::declared::kind::{boolean, device, integer, parsed, prefix};
use rheostat_settings::declared::{DeclaredSettings, Setting};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;

/// What is known of the network beyond the devices' own links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkConfig {
    /// Where packets go; links of devices need no route.
    pub routes: Vec<RouteConfig>,
    /// Neighbours that are configured and not resolved.
    pub neighbours: Vec<NeighbourConfig>,
    /// How many ICMP errors are sent, and how long packets wait.
    pub policy: Policy,
    /// Whether the kernel's routes for the devices' interfaces are used besides those given here.
    pub follow_kernel: bool,
}

/// Where packets to some destinations go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteConfig {
    /// The destinations.
    pub to: Prefix,
    /// The router that takes them; without it, the destinations are on the link.
    pub via: Option<IpAddr>,
    /// The device that leads there.
    pub device: DeviceId,
}

/// A neighbour on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourConfig {
    /// Its address.
    pub address: IpAddr,
    /// Its address on the link.
    pub mac: MacAddress,
    /// The device on that link.
    pub device: DeviceId,
}

impl RouteConfig {
    /// The route in words.
    pub(super) fn describe(&self, devices: &[DeviceConfig]) -> String {
        let device = &devices[self.device.index()].name;
        match self.via {
            Some(via) => format!("{} by {via} on {device}", self.to),
            None => format!("{} on {device}", self.to),
        }
    }
}

impl NeighbourConfig {
    /// Whether `other` is the same neighbour, with this link address or another one.
    pub fn is_at(&self, other: &NeighbourConfig) -> bool {
        (self.device, self.address) == (other.device, other.address)
    }
}

impl NetworkConfig {
    /// Lets one device lead everywhere. There is no interface of the kernel's to follow then.
    pub(crate) fn join(&mut self, device: DeviceId) {
        self.routes.iter_mut().for_each(|route| route.device = device);
        self.neighbours.iter_mut().for_each(|neighbour| neighbour.device = device);
        self.follow_kernel = false;
    }

    /// The settings of `[network]` that differ from their defaults, each as `key value`.
    pub(super) fn differences(&self) -> Vec<String> {
        Network::of(self).differences()
    }

    /// Reads both lists. Routes and neighbours without a device belong to the one on whose link their
    /// address is.
    pub(super) fn read(
        root: &mut Table<'_>,
        devices: &[DeviceConfig],
        findings: &mut Findings,
    ) -> NetworkConfig {
        let routes = root.sections("route", findings, |table, findings| {
            let keys = RouteKeys::new(devices);
            let to = keys.to.read(table, findings);
            let via = keys.via.read(table, findings);
            let device = keys.device.read(table, findings);
            if !table.has("via") && !table.has("device") {
                let help = "add the router that takes these packets, `via = \"192.0.2.1\"`, or the \
                            device on whose link they are, `device = \"wan\"`";
                findings.push(table.mistake("the route leads nowhere", "this route").help(help));
                return None;
            }
            let device = device.or_else(|| on_link(table, "via", via?, devices, findings))?;
            Some(RouteConfig { to: to?, via, device })
        });
        let neighbours = root.sections("neighbour", findings, |table, findings| {
            let keys = NeighbourKeys::new(devices);
            let address = keys.address.read(table, findings);
            let mac = keys.mac.read(table, findings);
            let device = keys.device.read(table, findings);
            let device =
                device.or_else(|| on_link(table, "address", address?, devices, findings))?;
            Some(NeighbourConfig { address: address?, mac: mac?, device })
        });
        let network = root.section("network", findings, Network::read).flatten();
        let (policy, follow_kernel) =
            network.map_or_else(Default::default, |read| (read.policy(), read.follow_kernel));
        NetworkConfig {
            policy,
            follow_kernel,
            routes: routes.into_iter().flatten().collect(),
            neighbours: neighbours.into_iter().flatten().collect(),
        }
    }
}

rheostat_settings::keys! {
    struct RouteKeys(devices: &[DeviceConfig]) {
        /// The destinations.
        to: Prefix = prefix(), required("to = \"0.0.0.0/0\"");
        /// The router that takes their packets; without it, they are on the link.
        via: IpAddr = parsed(ADDRESS);
        /// The device that leads there; without it, the one on whose link `via` is.
        device: DeviceId = device(devices);
    }
}

rheostat_settings::keys! {
    struct NeighbourKeys(devices: &[DeviceConfig]) {
        /// Its address.
        address: IpAddr = parsed(ADDRESS), required("address = \"192.0.2.1\"");
        /// Its address on the link.
        mac: MacAddress = mac(), required("mac = \"02:00:00:00:00:01\"");
        /// The device on that link; without it, the one on whose link `address` is.
        device: DeviceId = device(devices);
    }
}

rheostat_settings::settings! {
    /// `[network]`.
    struct Network {
        /// Whether the kernel's routes for the devices' interfaces are used besides those given here.
        follow_kernel: bool = boolean(), default(false);
        /// ICMP errors that a lane sends per second at most.
        errors_per_second: u32 = integer(0..=1_000_000), default(Policy::default().errors_per_second);
        /// ICMP errors that a lane sends at once at most.
        errors_at_once: u32 = integer(1..=1_000_000), default(Policy::default().errors_at_once);
        /// Packets that wait for the link address of one neighbour at most.
        waiting_per_neighbour: usize = integer(1..=64), default(Policy::default().waiting_per_neighbour);
        /// Packets that wait for link addresses at most, in each lane.
        waiting: usize = integer(1..=65_536), default(Policy::default().waiting);
        /// Neighbours that are remembered at most.
        neighbours: usize = integer(16..=1 << 20), default(Policy::default().neighbours.entries);
        /// Whether devices announce their addresses at the start.
        announce: bool = boolean(), default(Policy::default().announce);
    }
}

impl Network {
    fn of(config: &NetworkConfig) -> Network {
        let policy = &config.policy;
        Network {
            follow_kernel: config.follow_kernel,
            errors_per_second: policy.errors_per_second,
            errors_at_once: policy.errors_at_once,
            waiting_per_neighbour: policy.waiting_per_neighbour,
            waiting: policy.waiting,
            neighbours: policy.neighbours.entries,
            announce: policy.announce,
        }
    }

    fn policy(&self) -> Policy {
        let default = Policy::default();
        Policy {
            errors_per_second: self.errors_per_second,
            errors_at_once: self.errors_at_once,
            waiting_per_neighbour: self.waiting_per_neighbour,
            waiting: self.waiting,
            announce: self.announce,
            neighbours: NeighbourLimits { entries: self.neighbours, ..default.neighbours },
            path_mtus: default.path_mtus,
        }
    }
}

/// `[network]`, `[[route]]` and `[[neighbour]]`.
pub(crate) fn sections() -> [Setting; 3] {
    [
        Setting::tables(
            "route",
            "Where packets to some destinations go; links of devices need no route.",
            RouteKeys::new(&[]).settings(),
        ),
        Setting::tables(
            "neighbour",
            "Neighbours that are configured and not resolved.",
            NeighbourKeys::new(&[]).settings(),
        ),
        Setting::table(
            "network",
            "How many ICMP errors are sent, and how long packets wait.",
            Network::declarations(),
        ),
    ]
}

const ADDRESS: &str = "an address, such as \"192.0.2.1\"";

/// The device on whose link `address`, the value of `key`, is.
fn on_link(
    table: &Table<'_>,
    key: &str,
    address: IpAddr,
    devices: &[DeviceConfig],
    findings: &mut Findings,
) -> Option<DeviceId> {
    let on_link =
        |device: &DeviceConfig| device.addresses.iter().any(|own| own.link().contains(address));
    if let Some(index) = devices.iter().position(on_link) {
        return Some(DeviceId(index as u8));
    }
    if findings.clean("device") {
        let key = table.key_of(key);
        let message = format!("{address} is on no device's link");
        let finding = Finding::mistake(&key, message).at(findings.place(&key), "");
        findings.push(finding.help(
            "give the device on that link an `address` with the length of the link, or name it \
             with `device`",
        ));
    }
    None
}
