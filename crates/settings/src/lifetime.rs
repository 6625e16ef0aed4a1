//! How long flows live without a packet: durations that RFCs have a say in.

use std::time::Duration;

use crate::diagnostic::Finding;
use crate::findings::Findings;
use crate::quantity::Span;
use crate::quantity::YEAR;
use crate::reader::Value;
use crate::reader::convert::number::duration;

const MINUTE: u64 = 60;

/// The least that an RFC requires, in seconds.
pub type Least = Option<(u64, &'static str)>;

/// An established TCP connection.
pub const TCP_ESTABLISHED: Least = Some((124 * MINUTE, "RFC 5382, REQ-5,"));
/// A TCP connection that opens or closes.
pub const TCP_TRANSITORY: Least = Some((4 * MINUTE, "RFC 5382, REQ-5,"));
/// UDP.
pub const UDP: Least = Some((2 * MINUTE, "RFC 4787, REQ-5,"));
/// ICMP queries.
pub const ICMP: Least = Some((MINUTE, "RFC 5508, REQ-2,"));

/// A conversion to a lifetime. A shorter one than `least` is taken, with a warning.
pub(crate) fn lifetime(
    value: &Value<'_>,
    least: Least,
    findings: &mut Findings,
) -> Option<Duration> {
    let lifetime = duration(Duration::from_secs(1)..=YEAR)(value, findings)?;
    if let Some((seconds, source)) = least
        && lifetime < Duration::from_secs(seconds)
    {
        let least = Span(Duration::from_secs(seconds));
        let message = format!("flows may be forgotten too early: {source} requires {least}");
        let place = Some(value.place.clone());
        let help = format!("write \"{least}\" or more, unless the peers are known");
        findings.push(Finding::warning(&value.key, message).at(place, "").help(help));
    }
    Some(lifetime)
}
