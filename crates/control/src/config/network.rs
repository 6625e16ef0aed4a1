//! `[network]`, `[[route]]` and `[[neighbour]]`: where packets go that are addressed to no device.

use std::net::IpAddr;

use rheostat_base::DeviceId;
use rheostat_ip::{NeighbourLimits, Policy};
use rheostat_steer::Prefix;

use super::DeviceConfig;
use super::device::MacAddress;
use rheostat_settings::device::named;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::number::integer;
use rheostat_settings::reader::convert::{boolean, parsed, prefix};

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

impl NetworkConfig {
    /// Lets one device lead everywhere. There is no interface of the kernel's to follow then.
    pub(crate) fn join(&mut self, device: DeviceId) {
        self.routes.iter_mut().for_each(|route| route.device = device);
        self.neighbours.iter_mut().for_each(|neighbour| neighbour.device = device);
        self.follow_kernel = false;
    }

    /// Reads both lists. Routes and neighbours without a device belong to the one on whose link their
    /// address is.
    pub(super) fn read(
        root: &mut Table<'_>,
        devices: &[DeviceConfig],
        findings: &mut Findings,
    ) -> NetworkConfig {
        let routes = root.sections("route", findings, |table, findings| {
            let to = table.require("to", "to = \"0.0.0.0/0\"", findings, prefix);
            let via = table.read("via", findings, parsed::<IpAddr>(ADDRESS));
            let device = table.read("device", findings, named(devices));
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
            let example = "address = \"192.0.2.1\"";
            let address = table.require("address", example, findings, parsed::<IpAddr>(ADDRESS));
            let example = "it as text, such as \"02:00:00:00:00:01\"";
            let mac = parsed::<MacAddress>(example);
            let mac = table.require("mac", "mac = \"02:00:00:00:00:01\"", findings, mac);
            let device = table.read("device", findings, named(devices));
            let device =
                device.or_else(|| on_link(table, "address", address?, devices, findings))?;
            Some(NeighbourConfig { address: address?, mac: mac?, device })
        });
        let network = root.section("network", findings, |table, findings| {
            let follow_kernel = table.read("follow_kernel", findings, boolean);
            (read_policy(table, findings), follow_kernel.unwrap_or(false))
        });
        let (policy, follow_kernel) = network.unwrap_or_default();
        NetworkConfig {
            policy,
            follow_kernel,
            routes: routes.into_iter().flatten().collect(),
            neighbours: neighbours.into_iter().flatten().collect(),
        }
    }
}

fn read_policy(table: &mut Table<'_>, findings: &mut Findings) -> Policy {
    let default = Policy::default();
    let mut number = |key: &'static str, default: usize, least: u64, most: u64| {
        let read = table.read(key, findings, integer(least..=most));
        read.map_or(default, |count| count as usize)
    };
    let errors = number("errors_per_second", default.errors_per_second as usize, 0, 1_000_000);
    let at_once = number("errors_at_once", default.errors_at_once as usize, 1, 1_000_000);
    let each = number("waiting_per_neighbour", default.waiting_per_neighbour, 1, 64);
    let waiting = number("waiting", default.waiting, 1, 65_536);
    let neighbours = number("neighbours", default.neighbours.entries, 16, 1 << 20);
    Policy {
        errors_per_second: errors as u32,
        errors_at_once: at_once as u32,
        waiting_per_neighbour: each,
        waiting,
        announce: table.read("announce", findings, boolean).unwrap_or(default.announce),
        neighbours: NeighbourLimits { entries: neighbours, ..default.neighbours },
        path_mtus: default.path_mtus,
    }
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
