//! `[function.nat.timeouts]`: how long flows live without a packet.

use std::time::Duration;

use crate::nat::NatTimeouts;

use rheostat_settings::declared::Setting;
use rheostat_settings::declared::kind::lifetime;
use rheostat_settings::findings::Findings;
use rheostat_settings::lifetime::{ICMP, TCP_ESTABLISHED, TCP_TRANSITORY, UDP};
use rheostat_settings::reader::Table;

/// Reads the lifetimes. Lifetimes below those that RFCs require are accepted, with a warning.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> NatTimeouts {
    let keys = Keys::new(NatTimeouts::default());
    NatTimeouts {
        tcp_established: keys.tcp_established.read_or_default(table, findings),
        tcp_transitory: keys.tcp_transitory.read_or_default(table, findings),
        tcp_time_wait: keys.tcp_time_wait.read_or_default(table, findings),
        udp: keys.udp.read_or_default(table, findings),
        icmp: keys.icmp.read_or_default(table, findings),
        other: keys.other.read_or_default(table, findings),
    }
}

/// The keys of the table.
pub(super) fn keys() -> Vec<Setting> {
    Keys::new(NatTimeouts::default()).settings()
}

rheostat_settings::keys! {
    struct Keys(default: NatTimeouts) {
        /// An established TCP connection (RFC 5382, REQ-5: 2 h 4 min or more).
        tcp_established: Duration = lifetime(TCP_ESTABLISHED), default(default.tcp_established);
        /// A TCP connection that opens or closes (RFC 5382, REQ-5: 4 min or more).
        tcp_transitory: Duration = lifetime(TCP_TRANSITORY), default(default.tcp_transitory);
        /// A TCP connection that both ends have closed.
        tcp_time_wait: Duration = lifetime(TCP_TRANSITORY), default(default.tcp_time_wait);
        /// UDP, from the last packet from inside (RFC 4787, REQ-5: 2 min or more).
        udp: Duration = lifetime(UDP), default(default.udp);
        /// Queries of ICMP (RFC 5508, REQ-2: 60 s or more).
        icmp: Duration = lifetime(ICMP), default(default.icmp);
        /// Every other protocol.
        other: Duration = lifetime(None), default(default.other);
    }
}
