//! `[function.lb.timeouts]`: how long flows are remembered without a packet.

use std::time::Duration;

use crate::lb::Timeouts;

use rheostat_settings::declared::Setting;
use rheostat_settings::declared::kind::duration;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::YEAR;
use rheostat_settings::reader::Table;

const LIFETIMES: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=YEAR;

/// Reads the lifetimes. A flow that is forgotten is not lost: it finds the same backend as long as the
/// backends have not changed. So short ones draw no warning.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> Timeouts {
    let keys = Keys::new(Timeouts::default());
    Timeouts {
        tcp_opening: keys.tcp_opening.read_or_default(table, findings),
        tcp_established: keys.tcp_established.read_or_default(table, findings),
        tcp_closing: keys.tcp_closing.read_or_default(table, findings),
        tcp_closed: keys.tcp_closed.read_or_default(table, findings),
        udp: keys.udp.read_or_default(table, findings),
    }
}

/// The keys of the table.
pub(super) fn keys() -> Vec<Setting> {
    Keys::new(Timeouts::default()).settings()
}

rheostat_settings::keys! {
    struct Keys(default: Timeouts) {
        /// A TCP connection that opens.
        tcp_opening: Duration = duration(LIFETIMES), default(default.tcp_opening);
        /// An established TCP connection.
        tcp_established: Duration = duration(LIFETIMES), default(default.tcp_established);
        /// A TCP connection that one end has closed.
        tcp_closing: Duration = duration(LIFETIMES), default(default.tcp_closing);
        /// A TCP connection that is over.
        tcp_closed: Duration = duration(LIFETIMES), default(default.tcp_closed);
        /// UDP.
        udp: Duration = duration(LIFETIMES), default(default.udp);
    }
}
