//! `[[class]]`: traffic that is measured apart, and served first where it is of the priority class.

use std::fmt;

use rheostat_base::DeviceId;
use rheostat_functions::firewall::{PortRange, Protocol};
use rheostat_functions::policer::Dscp;
use rheostat_packet::Family;
use rheostat_steer::policy::Class;
use rheostat_steer::{ClassRule, ClassRules, MAX_CLASSES, Prefix, has_ports};

use super::DeviceConfig;
use rheostat_functions::firewall::settings::{ports, protocol};
use rheostat_functions::policer::settings::code_point;
use rheostat_settings::declared::Setting;
use rheostat_settings::declared::kind::{choice, device, filled, integer, name, prefix};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;

rheostat_settings::keys! {
    struct Keys(devices: &[DeviceConfig]) {
        /// The name that reports use.
        name: String = name(), required("name = \"voice\"");
        /// Whether its packets are served first.
        kind: Class = choice(KINDS), required("kind = \"priority\"");
        /// Packets from or to these addresses.
        prefix: Vec<Prefix> = filled(prefix());
        /// Packets from or to these ports.
        port: Vec<Vec<PortRange>> = filled(ports());
        /// Packets of these protocols.
        protocol: Vec<Protocol> = filled(protocol());
        /// Packets with these code points (RFC 2474).
        dscp: Vec<Dscp> = filled(code_point());
        /// Packets with these VLAN tags.
        vlan: Vec<u16> = filled(integer(1..=4_094));
        /// Packets that arrive on these devices.
        device: Vec<DeviceId> = filled(device(devices));
    }
}

/// The keys of a class.
pub(crate) fn keys() -> Vec<Setting> {
    Keys::new(&[]).settings()
}

/// What `kind` may say.
const KINDS: [(&str, Class); 2] = [("priority", Class::Priority), ("regular", Class::Regular)];
/// What a class may go by.
const CONDITIONS: [&str; 6] = ["prefix", "port", "protocol", "dscp", "vlan", "device"];

/// Reads all classes, in the order in which they are tried.
pub(super) fn read(
    root: &mut Table<'_>,
    devices: &[DeviceConfig],
    findings: &mut Findings,
) -> ClassRules {
    let rules = root.sections("class", findings, |table, findings| one(table, devices, findings));
    let mut rules: Vec<ClassRule> = rules.into_iter().flatten().collect();
    if rules.len() > MAX_CLASSES {
        let message = format!("{} classes are more than {MAX_CLASSES}", rules.len());
        let place = findings.place(&format!("class[{MAX_CLASSES}]"));
        let help = "have several prefixes or ports in one class";
        findings.push(Finding::mistake("class", message).at(place, "one too many").help(help));
        rules.truncate(MAX_CLASSES);
    }
    ClassRules::new(rules)
}

/// Reads one class; `None` when a part that narrows it could not be read.
fn one(
    table: &mut Table<'_>,
    devices: &[DeviceConfig],
    findings: &mut Findings,
) -> Option<ClassRule> {
    let keys = Keys::new(devices);
    let name = keys.name.read(table, findings);
    let class = keys.kind.read(table, findings);
    let prefixes = keys.prefix.read(table, findings);
    let ports = keys.port.read(table, findings);
    let protocols = keys.protocol.read(table, findings);
    let dscps = keys.dscp.read(table, findings);
    let vlans = keys.vlan.read(table, findings);
    let by_device = keys.device.read(table, findings);
    let has = CONDITIONS.map(|key| table.has(key));
    let read = [
        prefixes.is_some(),
        ports.is_some(),
        protocols.is_some(),
        dscps.is_some(),
        vlans.is_some(),
        by_device.is_some(),
    ];
    if has != read {
        return None;
    }
    if !has.contains(&true) {
        let message = "the class goes by nothing, so all packets would be of it";
        let help = "add `prefix`, `port`, `protocol`, `dscp`, `vlan` or `device`; what no class \
                    matches is regular anyway";
        findings.push(table.mistake(message, "this class").help(help));
        return None;
    }
    let number = |Protocol(number): &Protocol| *number;
    let protocols: Vec<u8> = protocols.iter().flatten().map(number).collect();
    let ported = |number: &u8| has_ports(*number, Family::V4) && ![1, 58].contains(number);
    if ports.is_some() && !protocols.is_empty() && !protocols.iter().any(ported) {
        let finding =
            Finding::mistake(table.key(), "the class names ports of protocols without any")
                .at(findings.place(&table.key_of("protocol")), "")
                .at(findings.place(&table.key_of("port")), "")
                .help("leave the ports out, or name a protocol with ports, such as \"udp\"");
        findings.push(finding);
    }
    let range = |&PortRange { low, high }: &PortRange| low..=high;
    Some(ClassRule {
        name: name?,
        class: class?,
        prefixes: prefixes.into_iter().flatten().collect(),
        ports: ports.iter().flatten().flatten().map(range).collect(),
        protocols,
        dscps: dscps.iter().flatten().map(|dscp: &Dscp| dscp.number()).collect(),
        vlans: vlans.unwrap_or_default(),
        devices: by_device.unwrap_or_default(),
    })
}

/// One line per class.
pub(super) fn describe(
    rules: &ClassRules,
    devices: &[DeviceConfig],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    for rule in rules.rules() {
        write!(f, "class     {}: {}", rule.name, rule.class)?;
        let list = |items: Vec<String>| items.join(", ");
        let parts = [
            ("address in", list(rule.prefixes.iter().map(ToString::to_string).collect())),
            (
                "port",
                list(
                    rule.ports
                        .iter()
                        .map(|range| match range.start() == range.end() {
                            true => range.start().to_string(),
                            false => format!("{}-{}", range.start(), range.end()),
                        })
                        .collect(),
                ),
            ),
            ("protocol", list(rule.protocols.iter().map(ToString::to_string).collect())),
            (
                "code point",
                list(
                    rule.dscps
                        .iter()
                        .map(|dscp| {
                            Dscp::new(*dscp)
                                .map_or_else(|| dscp.to_string(), |dscp| dscp.to_string())
                        })
                        .collect(),
                ),
            ),
            ("VLAN", list(rule.vlans.iter().map(ToString::to_string).collect())),
            (
                "device",
                list(
                    rule.devices
                        .iter()
                        .filter_map(|id| devices.get(id.index()))
                        .map(|device| device.name.clone())
                        .collect(),
                ),
            ),
        ];
        for (what, items) in parts.iter().filter(|(_, items)| !items.is_empty()) {
            write!(f, "; {what} {items}")?;
        }
        writeln!(f)?;
    }
    Ok(())
}
