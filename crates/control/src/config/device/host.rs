//! `kind = "host"`: the kernel's sockets at addresses of this machine.

use std::net::IpAddr;

use rheostat_settings::declared::kind::{list, parsed};
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;

use super::LinkAddress;

rheostat_settings::keys! {
    struct Keys {
        /// Addresses of this machine.
        address: Vec<IpAddr> = list(parsed("an address of this machine, such as \"127.0.0.1\" or \"::1\""));
    }
}

/// The addresses, which have no length.
pub(super) fn addresses(
    table: &mut Table<'_>,
    findings: &mut Findings,
) -> Option<Vec<LinkAddress>> {
    let own = Keys::new().address.read(table, findings)?;
    Some(own.into_iter().map(LinkAddress::of_host).collect())
}

/// Refuses keys of devices on a link.
pub(super) fn refuse_link_keys(table: &mut Table<'_>, findings: &mut Findings) {
    table.refuse(&["mac", "mtu"], "kind = \"af_packet\"", findings);
}
