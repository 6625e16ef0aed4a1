//! `[[function.lb.service.backend]]`: a backend of a service.

use std::net::IpAddr;

use crate::lb::{BackendConfig, Health, Mode, QuicRouting, ServerId};

use rheostat_settings::declared::kind::{Kind, choice, integer};
use rheostat_settings::declared::{Form, Setting};
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::parsed;
use rheostat_settings::reader::{Table, Value};

const HEALTHS: [(&str, Health); 3] =
    [("up", Health::Up), ("drain", Health::Drain), ("down", Health::Down)];

/// What a service has on its backends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) vip: Option<IpAddr>,
    pub(super) mode: Option<Mode>,
    pub(super) quic: Option<QuicRouting>,
}

/// Reads a backend; `None` when what names it could not be read.
pub(super) fn read(
    table: &mut Table<'_>,
    terms: Terms,
    findings: &mut Findings,
) -> Option<BackendConfig> {
    let keys = Keys::new(terms.vip);
    let address = keys.address.read(table, findings);
    let port = match terms.mode {
        Some(Mode::DsrIpip | Mode::DsrGue) => {
            keys.port.refuse(table, findings);
            None
        }
        Some(Mode::Nat) | None => keys.port.read(table, findings),
    };
    let weight = keys.weight.read_or_default(table, findings);
    let health = keys.health.read_or_default(table, findings);
    let server_id = server_id(table, terms, findings);
    Some(BackendConfig { address: address?, port, weight, health, server_id })
}

rheostat_settings::keys! {
    struct Keys(vip: Option<IpAddr>) {
        /// Its own address.
        address: IpAddr = address(vip), required("address = \"10.0.0.11\"");
        /// Its port; the one that the client has sent to without it.
        port: u16 = integer(1..=65_535), with("mode = \"nat\""), example("8080");
        /// Its share of new flows, against the weights of the others.
        weight: u32 = integer(1..=1_000), default(1);
        /// Whether it takes new flows (up), keeps its flows only (drain), or has none (down).
        health: Health = choice(HEALTHS), default(Health::default());
    }
}

/// The keys of a backend.
pub(super) fn keys() -> Vec<Setting> {
    let mut keys = Keys::new(None).settings();
    let help = "Its ID in connection IDs of QUIC, which must be given with `quic`.";
    let server_id = Setting::table("server_id", help, Vec::new()).with("quic = { … }");
    let (kind, example) = ("bytes in hexadecimal".to_owned(), "\"0a01\"".to_owned());
    keys.push(Setting { form: Form::Text, kind, example, ..server_id });
    keys
}

/// The address of a backend, which is not that of its service.
fn address(vip: Option<IpAddr>) -> Kind<IpAddr> {
    let read = move |value: &Value<'_>, findings: &mut Findings| {
        let address = parsed::<IpAddr>("an address, such as \"10.0.0.11\"")(value, findings)?;
        let message = match vip {
            Some(vip) if vip == address => "the backend has the address of its service",
            Some(vip) if vip.is_ipv4() != address.is_ipv4() => {
                "service and backend are of different versions of IP"
            }
            _ => return Some(address),
        };
        let help =
            "write the address that the backend has besides the service's, of the same family";
        findings.push(value.mistake(message).help(help));
        None
    };
    Kind::new(Form::Text, read, IpAddr::to_string).noun("address")
}

/// What connection IDs call the backend, where they do.
fn server_id(table: &mut Table<'_>, terms: Terms, findings: &mut Findings) -> Option<ServerId> {
    let Some(QuicRouting { cid_length, .. }) = terms.quic else {
        table.refuse(&["server_id"], "quic = { … }", findings);
        return None;
    };
    let example = format!("server_id = \"{}\"", "0a".repeat(cid_length));
    table.require("server_id", &example, findings, |value, findings| {
        let id = parsed::<ServerId>("bytes in hexadecimal, such as \"0a01\"")(value, findings)?;
        if id.bytes().len() == cid_length {
            return Some(id);
        }
        let message = format!("`{id}` is not {cid_length} bytes long, as `quic.cid_length` says");
        findings.push(value.mistake(message).help(format!("write {} digits", 2 * cid_length)));
        None
    })
}
