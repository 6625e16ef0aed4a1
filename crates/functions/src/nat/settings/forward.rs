//! `[[function.nat.forward]]`: external endpoints with a fixed inner one.

use std::net::SocketAddrV4;

use crate::nat::Forward;

use rheostat_settings::declared::Setting;
use rheostat_settings::declared::kind::{choice, parsed};
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;

/// Protocols whose ports can be forwarded.
const PROTOCOLS: [(&str, u8); 3] = [("tcp", 6), ("udp", 17), ("udplite", 136)];

const ENDPOINT: &str = "an IPv4 address and a port, such as \"10.0.0.5:80\"";

rheostat_settings::keys! {
    struct Keys {
        /// The protocol.
        protocol: u8 = choice(PROTOCOLS), required("protocol = \"tcp\"");
        /// Where packets from outside go: one of the external addresses, and a port.
        external: SocketAddrV4 = parsed(ENDPOINT), required("external = \"203.0.113.1:8080\"");
        /// Where they are sent on.
        internal: SocketAddrV4 = parsed(ENDPOINT), required("internal = \"10.0.0.5:80\"");
    }
}

/// The keys of a forward.
pub(super) fn keys() -> Vec<Setting> {
    Keys::new().settings()
}

/// Reads one forward.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> Option<Forward> {
    let keys = Keys::new();
    let protocol = keys.protocol.read(table, findings);
    let external = keys.external.read(table, findings);
    let internal = keys.internal.read(table, findings);
    let (external, internal) = (external?, internal?);
    Some(Forward {
        protocol: protocol?,
        external: (*external.ip(), external.port()),
        internal: (*internal.ip(), internal.port()),
    })
}
