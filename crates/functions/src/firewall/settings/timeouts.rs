//! `[function.firewall.timeouts]`: how long flows live without a packet.

use crate::firewall::Timeouts;

use rheostat_settings::findings::Findings;
use rheostat_settings::lifetime::{ICMP, TCP_ESTABLISHED, TCP_TRANSITORY, UDP, lifetime};
use rheostat_settings::reader::Table;

/// Reads the lifetimes. Lifetimes below those that RFCs require are accepted, with a warning.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> Timeouts {
    let default = Timeouts::default();
    let mut read = |key, default, least| lifetime(table, findings, key, default, least);
    Timeouts {
        tcp_established: read("tcp_established", default.tcp_established, TCP_ESTABLISHED),
        tcp_transitory: read("tcp_transitory", default.tcp_transitory, TCP_TRANSITORY),
        tcp_closed: read("tcp_closed", default.tcp_closed, None),
        udp: read("udp", default.udp, UDP),
        udp_unanswered: read("udp_unanswered", default.udp_unanswered, UDP),
        icmp: read("icmp", default.icmp, ICMP),
        other: read("other", default.other, None),
    }
}
