//! `[function.lb.timeouts]`: how long flows are remembered without a packet.

use std::time::Duration;

use crate::lb::Timeouts;

use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::YEAR;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::number::duration;

/// Reads the lifetimes. A flow that is forgotten is not lost: it finds the same backend as long as the
/// backends have not changed. So short ones draw no warning.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> Timeouts {
    let default = Timeouts::default();
    let mut read = |key, default| {
        table.read(key, findings, duration(Duration::from_secs(1)..=YEAR)).unwrap_or(default)
    };
    Timeouts {
        tcp_opening: read("tcp_opening", default.tcp_opening),
        tcp_established: read("tcp_established", default.tcp_established),
        tcp_closing: read("tcp_closing", default.tcp_closing),
        tcp_closed: read("tcp_closed", default.tcp_closed),
        udp: read("udp", default.udp),
    }
}
