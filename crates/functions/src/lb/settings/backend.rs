//! `[[function.lb.service.backend]]`: a backend of a service.

use std::net::IpAddr;

use crate::lb::{BackendConfig, Health, Mode, QuicRouting, ServerId};

use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::number::integer;
use rheostat_settings::reader::convert::{choice, parsed};

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
    let example = "address = \"10.0.0.11\"";
    let address = table.require("address", example, findings, |value, findings| {
        let address = parsed::<IpAddr>("an address, such as \"10.0.0.11\"")(value, findings)?;
        let message = match terms.vip {
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
    });
    let port = match terms.mode {
        Some(Mode::DsrIpip | Mode::DsrGue) => {
            table.refuse(&["port"], "mode = \"nat\"", findings);
            None
        }
        Some(Mode::Nat) | None => table.read("port", findings, integer(1..=65_535)),
    };
    let weight = table.read("weight", findings, integer(1..=1_000));
    let health = table.read("health", findings, choice(&HEALTHS));
    let server_id = server_id(table, terms, findings);
    Some(BackendConfig {
        address: address?,
        port: port.map(|port| port as u16),
        weight: weight.map_or(1, |weight| weight as u32),
        health: health.unwrap_or_default(),
        server_id,
    })
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
