//! Addresses, routes and neighbours that contradict each other.

use crate::config::{DeviceConfig, Sections};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;

/// Notes devices with and without addresses side by side, addresses that two devices have, routes
/// without any address, and routes by an address of a device.
pub(super) fn check(config: &Sections, findings: &mut Findings) {
    addresses(&config.devices, findings);
    if findings.clean("route") {
        routes(config, findings);
    }
}

fn addresses(devices: &[DeviceConfig], findings: &mut Findings) {
    let (with, without): (Vec<_>, Vec<_>) =
        devices.iter().enumerate().partition(|(_, device)| !device.addresses.is_empty());
    if let (Some((has, one)), Some((has_none, other))) = (with.first(), without.first()) {
        let message = "some devices have addresses and some have none";
        let finding = Finding::mistake(format!("device[{has_none}].address"), message)
            .at(findings.place(&format!("device[{has}].address")), format!("`{}` has", one.name))
            .at(
                findings.place(&format!("device[{has_none}].name")),
                format!("`{}` has not", other.name),
            )
            .help("packets are routed between devices with addresses, and bridged between others");
        findings.push(finding);
    }
    for (index, device) in &with {
        let key = format!("device[{index}].address");
        for own in &device.addresses {
            let has = |other: &&(usize, _)| other.0 < *index;
            let twice = with.iter().filter(has).find(|(_, other)| {
                other.addresses.iter().any(|address| address.address == own.address)
            });
            if let Some((earlier, other)) = twice {
                let message = format!("two devices have the address {}", own.address);
                let finding = Finding::mistake(&key, message)
                    .at(findings.place(&format!("device[{earlier}].address")), other.name.clone())
                    .at(findings.place(&key), device.name.clone());
                findings.push(finding.help("give each device addresses of its own"));
            }
        }
    }
}

fn routes(config: &Sections, findings: &mut Findings) {
    let devices = &config.devices;
    let needs_addresses = config.chain.iter().any(|function| function.facts().needs_addresses);
    if needs_addresses && devices.iter().all(|device| device.addresses.is_empty()) {
        let finding = Finding::mistake("chain", "a router needs devices with addresses")
            .at(findings.place("chain.functions"), "the chain is a router")
            .help("give each device its `address`, such as \"192.0.2.1/24\"");
        findings.push(finding);
    }
    if devices.iter().all(|device| device.addresses.is_empty()) && !config.network.routes.is_empty()
    {
        let finding = Finding::mistake("route", "there are routes, but no device has an address")
            .at(findings.place("route"), "")
            .help("give each device its `address`, such as \"192.0.2.1/24\"");
        findings.push(finding);
    }
    for (index, route) in config.network.routes.iter().enumerate() {
        let key = format!("route[{index}].via");
        let own = |via| devices.iter().flat_map(|d| &d.addresses).any(|own| own.address == via);
        if let Some(via) = route.via.filter(|via| own(*via)) {
            let message = format!("the route leads by {via}, which is a device of this file");
            let finding = Finding::mistake(&key, message).at(findings.place(&key), "");
            findings.push(finding.help("name the router on the link that takes these packets"));
        }
        if let Some(via) = route.via.filter(|via| via.is_ipv4() != route.to.address().is_ipv4()) {
            let message = format!("packets to {} cannot go by {via}", route.to);
            let finding = Finding::mistake(&key, message).at(findings.place(&key), "");
            findings.push(finding.help("name a router of the same version of IP"));
        }
    }
}
