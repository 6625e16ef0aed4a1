//! `[function.firewall.timeouts]`: how long flows live without a packet.

use std::time::Duration;

use rheostat_nf::function::firewall::Timeouts;

use crate::config::run::YEAR;
use crate::diagnostic::Finding;
use crate::findings::Findings;
use crate::quantity::Span;
use crate::reader::Table;
use crate::reader::convert::number::duration;

const MINUTE: u64 = 60;

/// Reads the lifetimes. Shorter ones than the RFCs ask for are taken, with a warning.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> Timeouts {
    let default = Timeouts::default();
    let mut read = |key, default, least: Option<(u64, &str)>| {
        let span = Duration::from_secs(1)..=YEAR;
        let lifetime = table.read(key, findings, duration(span)).unwrap_or(default);
        if let Some((seconds, source)) = least
            && lifetime < Duration::from_secs(seconds)
        {
            let key = table.key_of(key);
            let least = Span(Duration::from_secs(seconds));
            let message = format!("flows may be forgotten too early: {source} asks for {least}");
            let place = findings.place(&key);
            let help = format!("write \"{least}\" or more, unless the peers are known");
            findings.push(Finding::warning(key, message).at(place, "").help(help));
        }
        lifetime
    };
    let established = Some((124 * MINUTE, "RFC 5382, REQ-5,"));
    let transitory = Some((4 * MINUTE, "RFC 5382, REQ-5,"));
    let udp = Some((2 * MINUTE, "RFC 4787, REQ-5,"));
    let icmp = Some((MINUTE, "RFC 5508, REQ-2,"));
    Timeouts {
        tcp_established: read("tcp_established", default.tcp_established, established),
        tcp_transitory: read("tcp_transitory", default.tcp_transitory, transitory),
        tcp_closed: read("tcp_closed", default.tcp_closed, None),
        udp: read("udp", default.udp, udp),
        udp_unanswered: read("udp_unanswered", default.udp_unanswered, udp),
        icmp: read("icmp", default.icmp, icmp),
        other: read("other", default.other, None),
    }
}
