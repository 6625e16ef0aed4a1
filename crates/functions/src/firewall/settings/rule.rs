//! `[[function.firewall.rule]]`: which new flows a rule matches, and what becomes of them.

use crate::firewall::{Action, PortList, PortRange, Protocol, Rule};
use rheostat_base::DeviceId;
use rheostat_packet::Family;
use rheostat_steer::{Orientation, Prefix, PrefixList, Side, has_ports};

use super::ACTIONS;
use rheostat_settings::declared::kind::{Kind, choice, device, filled, prefix, side, text};
use rheostat_settings::declared::{Form, Setting};
use rheostat_settings::device::Device;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::number::integer as read_integer;
use rheostat_settings::reader::convert::{choice as read_choice, parsed as read_parsed};
use rheostat_settings::reader::{Table, Value};

const ICMP: Protocol = Protocol(1);
const ICMPV6: Protocol = Protocol(58);

/// Names of ICMP types with their numbers in ICMP (RFC 792) and ICMPv6 (RFC 4443). A number of one
/// of them means nothing harmful in the other: all four are unassigned there.
const ICMP_TYPES: [(&str, [u8; 2]); 2] = [("echo-request", [8, 128]), ("echo-reply", [0, 129])];

/// Reads a rule; `None` when a part that narrows it could not be read.
pub(super) fn read(
    table: &mut Table<'_>,
    devices: &[Device],
    findings: &mut Findings,
) -> Option<Rule> {
    let keys = Keys::new(devices);
    let name = keys.name.read(table, findings);
    let action = keys.action.read(table, findings);
    let from = keys.from.read(table, findings);
    let device = keys.device.read(table, findings);
    let source = keys.source.read(table, findings);
    let destination = keys.destination.read(table, findings);
    let protocols = keys.protocol.read(table, findings);
    let source_ports = keys.source_port.read(table, findings);
    let destination_ports = keys.destination_port.read(table, findings);
    let icmp_types = keys.icmp_type.read(table, findings);
    let rule = Rule {
        name,
        action,
        from,
        device,
        source: source.into_iter().flatten().collect(),
        destination: destination.into_iter().flatten().collect(),
        protocols: protocols.unwrap_or_default(),
        source_ports: PortList(source_ports.into_iter().flatten().flatten().collect()),
        destination_ports: PortList(destination_ports.into_iter().flatten().flatten().collect()),
        icmp_types: icmp_types.into_iter().flatten().flatten().collect(),
    };
    if !findings.clean(table.key()) {
        return None;
    }
    for contradiction in contradictions(&rule, table, devices, findings) {
        findings.push(contradiction);
    }
    Some(rule)
}

rheostat_settings::keys! {
    struct Keys(devices: &[Device]) {
        /// Its name in messages.
        name: String = text(), example("\"web\"");
        /// What becomes of the flows that it matches.
        action: Action = choice(ACTIONS), required("action = \"allow\"");
        /// The side that flows come from.
        from: Side = side(), example("\"outside\"");
        /// The device that flows come from.
        device: DeviceId = device(devices);
        /// Where flows come from.
        source: Vec<Prefix> = filled(prefix());
        /// Where flows go.
        destination: Vec<Prefix> = filled(prefix());
        /// The protocol.
        protocol: Vec<Protocol> = filled(protocol());
        /// The ports that flows come from.
        source_port: Vec<Vec<PortRange>> = filled(ports());
        /// The ports that flows go to.
        destination_port: Vec<Vec<PortRange>> = filled(ports());
        /// Types of ICMP and ICMPv6.
        icmp_type: Vec<Vec<u8>> = filled(icmp_type());
    }
}

/// The keys of a rule.
pub(super) fn keys() -> Vec<Setting> {
    Keys::new(&[]).settings()
}

/// What in a rule keeps it from ever matching.
fn contradictions(
    rule: &Rule,
    table: &Table<'_>,
    devices: &[Device],
    findings: &Findings,
) -> Vec<Finding> {
    let clash = |message: &str, (a, b): (&str, &str), help: &str| {
        Finding::mistake(table.key(), message)
            .at(findings.place(&table.key_of(a)), "")
            .at(findings.place(&table.key_of(b)), "")
            .help(help)
    };
    let mut found = Vec::new();
    let ported = |Protocol(number): &Protocol| {
        has_ports(*number, Family::V4) && !matches!(Protocol(*number), ICMP | ICMPV6)
    };
    let named = !rule.protocols.is_empty();
    for (key, list) in
        [("source_port", &rule.source_ports), ("destination_port", &rule.destination_ports)]
    {
        if named && !list.is_any() && !rule.protocols.iter().any(ported) {
            let message = "the rule names ports of protocols that have none";
            let help = "leave the ports out, or name a protocol with ports, such as \"tcp\"";
            found.push(clash(message, ("protocol", key), help));
        }
    }
    let icmp = |protocol: &Protocol| matches!(*protocol, ICMP | ICMPV6);
    if named && !rule.icmp_types.is_empty() && !rule.protocols.iter().any(icmp) {
        let message = "the rule names ICMP types, but no ICMP protocol";
        let help = "write `protocol = [\"icmp\", \"icmpv6\"]`, or leave one of them out";
        found.push(clash(message, ("protocol", "icmp_type"), help));
    }
    if disjoint(&rule.source, &rule.destination) {
        let message = "source and destination have no version of IP in common";
        let help = "write two rules, one for each version";
        found.push(clash(message, ("source", "destination"), help));
    }
    let side = rule.device.and_then(|id| match devices.get(id.index())?.orientation {
        Orientation::Inside => Some(Side::Inside),
        Orientation::Outside => Some(Side::Outside),
        Orientation::ByPrefix(_) => None,
    });
    if side.is_some_and(|side| rule.from.is_some_and(|from| from != side)) {
        let message = "nothing comes from that side on that device";
        found.push(clash(message, ("from", "device"), "`device` says enough: remove `from`"));
    }
    found
}

/// Whether both lists name addresses, but none of the same version of IP.
fn disjoint(source: &PrefixList, destination: &PrefixList) -> bool {
    let has = |list: &PrefixList, v4| list.iter().any(|prefix| prefix.address().is_ipv4() == v4);
    let common = |v4| has(source, v4) && has(destination, v4);
    !source.is_empty() && !destination.is_empty() && !common(true) && !common(false)
}

/// A protocol, by name or number.
pub fn protocol() -> Kind<Protocol> {
    let read = |value: &Value<'_>, findings: &mut Findings| {
        if value.is_integer() {
            return read_integer(0..=255)(value, findings).map(|number| Protocol(number as u8));
        }
        read_parsed("a name such as \"tcp\", or a number")(value, findings)
    };
    Kind::unshown(Form::Number, read).noun("protocol, by name or number").such_as("\"tcp\"")
}

/// Ports: one as a number, or ports and ranges of them as text.
pub fn ports() -> Kind<Vec<PortRange>> {
    let read = |value: &Value<'_>, findings: &mut Findings| {
        if value.is_integer() {
            let port = read_integer(0..=65_535)(value, findings)? as u16;
            return Some(vec![PortRange { low: port, high: port }]);
        }
        read_parsed("ports and ranges of them, such as \"22,80-90\"")(value, findings)
            .map(|PortList(ranges)| ranges)
    };
    Kind::unshown(Form::Number, read)
        .noun("port, or ports and ranges of them")
        .such_as("\"22,80-90\"")
}

fn icmp_type() -> Kind<Vec<u8>> {
    let read = |value: &Value<'_>, findings: &mut Findings| {
        if value.is_integer() {
            return read_integer(0..=255)(value, findings).map(|number| vec![number as u8]);
        }
        read_choice(&ICMP_TYPES)(value, findings).map(Vec::from)
    };
    Kind::unshown(Form::Number, read)
        .noun("ICMP type, by name or number")
        .such_as("\"echo-request\"")
}
