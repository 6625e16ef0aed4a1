//! `[function.bridge]`: what a bridge remembers, and which VLANs its ports carry.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::bridge::{BridgeConfig, Membership};
use rheostat_base::DeviceId;
use rheostat_nf::DeviceSet;

use rheostat_settings::declared::kind::{Kind, count, device, duration, list};
use rheostat_settings::declared::{Form, Setting};
use rheostat_settings::device::Device;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::YEAR;
use rheostat_settings::quantity::{Count, Span};
use rheostat_settings::reader::convert::number::integer;
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
    let keys = Keys::new();
    let stations = keys.stations.read_or_default(table, findings);
    let ageing = keys.ageing.read_or_default(table, findings);
    let refresh = keys.refresh.read_or_default(table, findings);
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
        let keys = PortKeys::new(devices);
        let device = keys.device.read(table, findings);
        let vlans = keys.vlans.read(table, findings);
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
    BridgeConfig { membership, stations, ageing, refresh }
}

/// The settings that do not depend on the ports.
fn defaults() -> BridgeConfig {
    BridgeConfig::new(DeviceSet::EMPTY)
}

rheostat_settings::keys! {
    struct Keys {
        /// Stations that are remembered at most.
        stations: usize = count(16..=100_000_000), default(defaults().stations);
        /// A station is forgotten so long after its last frame.
        ageing: Duration = duration(Duration::from_secs(1)..=YEAR), default(defaults().ageing);
        /// How old the time of a station's last frame may be that is remembered: much less than `ageing`.
        refresh: Duration = duration(Duration::ZERO..=YEAR), default(defaults().refresh);
    }
}

rheostat_settings::keys! {
    struct PortKeys(devices: &[Device]) {
        /// The device that is the port.
        device: DeviceId = device(devices), required("device = \"lan\"");
        /// The VLANs it carries: numbers, ranges of them, and `untagged`.
        vlans: Vec<RangeInclusive<u16>> = list(Kind::unshown(Form::Number, vlans).noun("VLAN").within("1 to 4094, untagged")),
            required("vlans = [\"untagged\", 7, \"100-199\"]");
    }
}

/// The keys of `[function.bridge]`.
pub(super) fn keys() -> Vec<Setting> {
    let help = "A port that carries some VLANs only; any other carries all.";
    let port = Setting::tables("port", help, PortKeys::new(&[]).settings());
    Keys::new().settings().into_iter().chain([port]).collect()
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
