//! `[[function.nat.forward]]`: external endpoints with a fixed inner one.

use std::net::SocketAddrV4;

use crate::nat::Forward;

use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::{choice, parsed};

/// Protocols whose ports can be forwarded.
const PROTOCOLS: [(&str, u8); 3] = [("tcp", 6), ("udp", 17), ("udplite", 136)];

/// Reads one forward.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> Option<Forward> {
    let protocol = table.require("protocol", "protocol = \"tcp\"", findings, choice(&PROTOCOLS));
    let endpoint = || parsed::<SocketAddrV4>("an IPv4 address and a port, such as \"10.0.0.5:80\"");
    let external = "external = \"203.0.113.1:8080\"";
    let external = table.require("external", external, findings, endpoint());
    let internal = table.require("internal", "internal = \"10.0.0.5:80\"", findings, endpoint());
    let (external, internal) = (external?, internal?);
    Some(Forward {
        protocol: protocol?,
        external: (*external.ip(), external.port()),
        internal: (*internal.ip(), internal.port()),
    })
}
