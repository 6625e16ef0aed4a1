//! `[[function.lb.service]]`: an address and ports that clients know.

use std::net::IpAddr;

use crate::firewall::{PortList, PortRange};
use crate::lb::quic::LONGEST_CID;
use crate::lb::{BackendConfig, CheckConfig, CheckKind, Mode, OnDown, QuicRouting, ServiceConfig};
use rheostat_packet::wire::protocol::{TCP, UDP};

use super::backend::{self, Terms};
use super::check;
use rheostat_settings::declared::kind::{Kind, choice, integer, name};
use rheostat_settings::declared::{Form, Setting};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::number::integer as read_integer;
use rheostat_settings::reader::convert::parsed;
use rheostat_settings::reader::{Table, Value};

const MODES: [(&str, Mode); 3] =
    [("dsr-ipip", Mode::DsrIpip), ("dsr-gue", Mode::DsrGue), ("nat", Mode::Nat)];
const PROTOCOLS: [(&str, u8); 2] = [("tcp", TCP), ("udp", UDP)];
const ON_DOWN: [(&str, OnDown); 2] = [("move", OnDown::Move), ("reset", OnDown::Reset)];

/// Reads a service; `None` when something that it cannot do without could not be read.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> Option<ServiceConfig> {
    let keys = Keys::new();
    let name = keys.name.read(table, findings);
    let vip = keys.vip.read(table, findings);
    let protocol = keys.protocol.read(table, findings);
    let ports = keys.port.read(table, findings);
    let mode = keys.mode.read(table, findings);
    let on_down = keys.on_down.read_or_default(table, findings);
    let quic = match protocol {
        Some(TCP) => {
            table.refuse(&["quic"], "protocol = \"udp\"", findings);
            None
        }
        _ => table.section("quic", findings, quic).flatten(),
    };
    let check = table.section("check", findings, check::read).flatten();
    let terms = Terms { vip, mode, quic };
    let backends = table
        .sections("backend", findings, |table, findings| backend::read(table, terms, findings));
    if backends.is_empty() && findings.clean(&table.key_of("backend")) {
        let finding = table.mistake("the service has no backend", "this service");
        findings.push(finding.help("add a `[[function.lb.service.backend]]` with `address` to it"));
    }
    let backends: Vec<_> = backends.into_iter().flatten().collect();
    if findings.clean(table.key()) {
        twins(&backends, table, findings);
    }
    let service = ServiceConfig {
        name: name?,
        vip: vip?,
        protocol: protocol?,
        ports: ports.unwrap_or_default(),
        mode: mode?,
        on_down,
        quic,
        check,
        backends,
    };
    check_ports(&service, table, findings);
    Some(service)
}

rheostat_settings::keys! {
    struct Keys {
        /// Its name in reports and commands.
        name: String = name(), required("name = \"web\"");
        /// The address that clients know.
        vip: IpAddr = Kind::new(Form::Text, vip, IpAddr::to_string).noun("address"), required("vip = \"198.51.100.10\"");
        /// The protocol.
        protocol: u8 = choice(PROTOCOLS), required("protocol = \"tcp\"");
        /// The ports that clients know; all without it.
        port: Vec<PortRange> = Kind::unshown(Form::Number, ports).noun("port, or ports and ranges of them").such_as("443");
        /// How packets reach backends: dsr-ipip and dsr-gue in a tunnel, so that backends answer clients directly, or nat.
        mode: Mode = choice(MODES), required("mode = \"dsr-ipip\"");
        /// What becomes of the flows of a backend that is down: they move to another, or are reset.
        on_down: OnDown = choice(ON_DOWN), default(OnDown::default());
    }
}

rheostat_settings::keys! {
    /// Of `quic`.
    struct QuicKeys {
        /// The byte of the connection ID at which the server ID begins.
        cid_offset: u64 = integer(0..=LONGEST_CID as u64 - 1), default(1);
        /// The bytes of the server ID.
        cid_length: u64 = integer(1..=LONGEST_CID as u64), required("cid_length = 2");
    }
}

/// The keys of a service.
pub(super) fn keys() -> Vec<Setting> {
    let mut keys = Keys::new().settings();
    let help = "Where connection IDs of QUIC have the ID of a backend, so that flows stay with it when clients move.";
    let quic = Setting::table("quic", help, QuicKeys::new().settings());
    keys.push(quic.with("protocol = \"udp\""));
    let help = "How backends are asked whether they are well.";
    keys.push(Setting::table("check", help, check::keys()));
    keys.push(Setting::tables("backend", "A backend of the service.", backend::keys()));
    keys
}

/// Reports backends without a port to check: neither backend nor service names one.
fn check_ports(service: &ServiceConfig, table: &Table<'_>, findings: &mut Findings) {
    let Some(CheckConfig { kind: CheckKind::Tcp | CheckKind::Http(_), port, .. }) = &service.check
    else {
        return;
    };
    let key = table.key_of("check");
    let unknown = (0..service.backends.len()).any(|place| service.checked_port(place).is_none());
    if unknown {
        let finding = Finding::mistake(&key, "the check has no port")
            .at(findings.place(&key), "the service has all ports")
            .help("add `port = 80`, or the port on which the backends answer");
        findings.push(finding);
    } else if service.protocol == UDP && port.is_none() {
        let finding = Finding::mistake(&key, "a service of UDP is checked by TCP without a port")
            .at(findings.place(&key), "this check")
            .help("add the `port` on which the backends take TCP, or write `kind = \"icmp\"`");
        findings.push(finding);
    }
}

/// A conversion to an address that one host can have.
fn vip(value: &Value<'_>, findings: &mut Findings) -> Option<IpAddr> {
    let example = "an address, such as \"198.51.100.10\" or \"2001:db8::10\"";
    let vip = parsed::<IpAddr>(example)(value, findings)?;
    let is_many = match vip {
        IpAddr::V4(v4) => v4.is_multicast() || v4.is_broadcast() || v4.is_unspecified(),
        IpAddr::V6(v6) => v6.is_multicast() || v6.is_unspecified(),
    };
    if is_many {
        findings.push(
            value.mistake(format!("{vip} is no host's address")).help(format!("write {example}")),
        );
        return None;
    }
    Some(vip)
}

fn ports(value: &Value<'_>, findings: &mut Findings) -> Option<Vec<PortRange>> {
    if value.is_integer() {
        let port = read_integer(1..=65_535)(value, findings)? as u16;
        return Some(vec![PortRange { low: port, high: port }]);
    }
    parsed("ports and ranges of them, such as \"80,443\"")(value, findings)
        .map(|PortList(ranges)| ranges)
}

/// `quic = { cid_offset, cid_length }`.
fn quic(table: &mut Table<'_>, findings: &mut Findings) -> Option<QuicRouting> {
    let keys = QuicKeys::new();
    // The first byte is not the server's ID (draft-ietf-quic-load-balancers, "First CID octet").
    let offset = keys.cid_offset.read_or_default(table, findings) as usize;
    let length = keys.cid_length.read(table, findings)? as usize;
    if offset + length > LONGEST_CID {
        let message = format!("a connection ID has {LONGEST_CID} bytes at most");
        let finding = table.mistake(message, &format!("these are {}", offset + length));
        findings.push(finding.help("write less for `cid_offset` or `cid_length`"));
        return None;
    }
    Some(QuicRouting { cid_offset: offset, cid_length: length })
}

/// Notes backends that are named twice, by endpoint or by server ID.
fn twins(backends: &[BackendConfig], table: &Table<'_>, findings: &mut Findings) {
    for (index, backend) in backends.iter().enumerate() {
        let same = |other: &BackendConfig| {
            let ends = (other.address, other.port) == (backend.address, backend.port);
            let ids = backend.server_id.is_some() && other.server_id == backend.server_id;
            ends.then_some("address").or(ids.then_some("server_id"))
        };
        let twin = backends[..index].iter().enumerate().find_map(|(n, b)| Some((n, same(b)?)));
        let Some((first, what)) = twin else { continue };
        let key = |index: usize| format!("{}.backend[{index}].{what}", table.key());
        let finding = Finding::mistake(key(index), "two backends of the service are the same")
            .at(findings.place(&key(first)), "first here")
            .at(findings.place(&key(index)), "and again here")
            .help("remove one of them, or give it `weight = 2`");
        findings.push(finding);
    }
}
