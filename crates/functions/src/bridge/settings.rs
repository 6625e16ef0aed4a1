//! `[function.bridge]`: what a bridge remembers, and which VLANs its ports carry.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::bridge::{BridgeConfig, Membership};
use rheostat_nf::DeviceSet;

use rheostat_settings::device::Device;
use rheostat_settings::device::named;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::YEAR;
use rheostat_settings::quantity::{Count, Span};
use rheostat_settings::reader::convert::list;
use rheostat_settings::reader::convert::number::{count, duration, integer};
use rheostat_settings::reader::{Table, Value};

/// VLANs that a frame can have: 4,095 is reserved (IEEE 802.1Q, table 9-2).
const LAST_VLAN: u16 = 4_094;

/// The ports of a bridge between `devices`: those that fit; more are refused elsewhere.
pub(super) fn ports(devices: &[Device]) -> DeviceSet {
    DeviceSet::first(devices.len().min(DeviceSet::MOST))
}

/// Reads the settings of the bridge, whose ports are `devices`.
pub(super) fn read(
    table: &mut Table<'_>,
    devices: &[Device],
    findings: &mut Findings,
) -> BridgeConfig {
    let default = BridgeConfig::new(ports(devices));
    let stations = table.read("stations", findings, count(16..=100_000_000));
    let ageing = table.read("ageing", findings, duration(Duration::from_secs(1)..=YEAR));
    let refresh = table.read("refresh", findings, duration(Duration::ZERO..=YEAR));
    let (ageing, refresh) = (ageing.unwrap_or(default.ageing), refresh.unwrap_or(default.refresh));
    if refresh >= ageing {
        let message = "stations would be forgotten before they are refreshed";
        let finding = Finding::mistake(table.key_of("refresh"), message)
            .at(
                findings.place(&table.key_of("ageing")),
                format!("forgotten after {}", Span(ageing)),
            )
            .at(
                findings.place(&table.key_of("refresh")),
                format!("refreshed every {}", Span(refresh)),
            )
            .help("make `refresh` much shorter than `ageing`");
        findings.push(finding);
    }
    let restricted = table.sections("port", findings, |table, findings| {
        let device = table.require("device", "device = \"lan\"", findings, named(devices));
        let example = "vlans = [\"untagged\", 7, \"100-199\"]";
        let vlans = table.require("vlans", example, findings, list(vlans));
        Some((device?, vlans?, table.key_of("device")))
    });
    let mut membership: Membership = default.membership;
    let mut seen = DeviceSet::EMPTY;
    for (device, vlans, key) in restricted.into_iter().flatten() {
        if !membership.ports().contains(device) {
            continue;
        }
        if seen.contains(device) {
            let finding = Finding::mistake(&key, "the port has its VLANs already");
            findings.push(finding.at(findings.place(&key), "").help("name them in one table"));
        }
        seen = seen.with(device);
        membership.restrict(device, vlans.into_iter().flatten());
    }
    BridgeConfig {
        membership,
        stations: stations.map_or(default.stations, |stations| stations as usize),
        ageing,
        refresh,
    }
}

/// A conversion to VLANs: a number, a range of them, or those without a tag.
fn vlans(value: &Value<'_>, findings: &mut Findings) -> Option<RangeInclusive<u16>> {
    let Some(text) = value.text() else {
        let vlan = integer(1..=u64::from(LAST_VLAN))(value, findings)? as u16;
        return Some(vlan..=vlan);
    };
    if text == "untagged" {
        return Some(0..=0);
    }
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (low.trim().parse(), high.trim().parse()) {
        (Ok(low @ 1..), Ok(high @ ..=LAST_VLAN)) if low <= high => Some(low..=high),
        _ => {
            let message = format!("`{text}` is no VLAN");
            let help = format!(
                "write a number between 1 and {LAST_VLAN}, a range such as \"100-199\", or \"untagged\""
            );
            findings.push(value.mistake(message).help(help));
            None
        }
    }
}

/// Writes what the bridge remembers.
pub(super) fn describe(config: &BridgeConfig, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let ports = config.membership.ports().len();
    write!(f, "{ports} ports, {} stations, ", Count(config.stations as u64))?;
    write!(
        f,
        "forgotten after {} and refreshed every {}",
        Span(config.ageing),
        Span(config.refresh)
    )?;
    writeln!(
        f,
        "{}",
        if config.membership.is_restricted() { "; some VLANs on some ports" } else { "" }
    )
}
