//! `[function.nat.timeouts]`: how long flows live without a packet.

use crate::nat::NatTimeouts;

use rheostat_settings::findings::Findings;
use rheostat_settings::lifetime::{ICMP, TCP_ESTABLISHED, TCP_TRANSITORY, UDP, lifetime};
use rheostat_settings::reader::Table;

/// Reads the lifetimes. Lifetimes below those that RFCs require are accepted, with a warning.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> NatTimeouts {
    let default = NatTimeouts::default();
    let mut read = |key, default, least| lifetime(table, findings, key, default, least);
    NatTimeouts {
        tcp_established: read("tcp_established", default.tcp_established, TCP_ESTABLISHED),
        tcp_transitory: read("tcp_transitory", default.tcp_transitory, TCP_TRANSITORY),
        tcp_time_wait: read("tcp_time_wait", default.tcp_time_wait, TCP_TRANSITORY),
        udp: read("udp", default.udp, UDP),
        icmp: read("icmp", default.icmp, ICMP),
        other: read("other", default.other, None),
    }
}
