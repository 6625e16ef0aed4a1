//! `[slo]`: the latencies that packets of each class should not exceed.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use rheostat_steer::policy::{Class, Latency, Objectives};

use rheostat_settings::declared::kind::{choice, decimal, duration, optional};
use rheostat_settings::declared::{DeclaredSettings, Setting};
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::Span;
use rheostat_settings::reader::Table;

/// What `on` may say.
const LATENCIES: [(&str, Latency); 2] = [("waiting", Latency::Waiting), ("total", Latency::Total)];

const LIMITS: RangeInclusive<Duration> = Duration::from_micros(1)..=Duration::from_secs(10);

rheostat_settings::settings! {
    /// The keys of `[slo]`.
    struct Keys {
        /// The latency that packets of the priority class should not exceed.
        priority: Option<Duration> = optional(duration(LIMITS)), example("\"50us\"");
        /// The latency that all other packets should not exceed.
        regular: Option<Duration> = optional(duration(LIMITS)), example("\"500us\"");
        /// The share of packets that the limits are for, in percent.
        percentile: f64 = decimal(50.0..=99.99), default(Objectives::PERCENTILE * 100.0);
        /// Which latency: waiting (until a lane takes the packet) or total (until it has left).
        on: Latency = choice(LATENCIES), default(Latency::default());
    }
}

/// The keys of `[slo]`.
pub(crate) fn keys() -> Vec<Setting> {
    Keys::declarations()
}

/// Reads the objectives; none are without the table.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> Objectives {
    let read = Keys::read(table, findings);
    if !table.has("priority") && !table.has("regular") {
        let message = "`[slo]` has no objective";
        let help = "add `priority = \"50us\"`, `regular = \"500us\"` or both, or remove the table";
        findings.push(table.mistake(message, "in this table").help(help));
    }
    read.map_or(Objectives::NONE, |keys| Objectives {
        limits: [keys.priority, keys.regular],
        percentile: keys.percentile / 100.0,
        latency: keys.on,
    })
}

/// One line, if there are objectives.
pub(super) fn describe(objectives: &Objectives, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if objectives.is_none() {
        return Ok(());
    }
    let what = match objectives.latency {
        Latency::Waiting => "waits",
        Latency::Total => "total latency",
    };
    // 0.995 × 100 has a tail of digits.
    let percent = (objectives.percentile * 1e6).round() / 1e4;
    write!(f, "slo       {what} of {percent} % of packets:")?;
    let limits = Class::ALL.into_iter().filter_map(|class| Some((class, objectives.of(class)?)));
    for (index, (class, limit)) in limits.enumerate() {
        write!(f, "{} {class} {} at most", if index == 0 { "" } else { "," }, Span(limit))?;
    }
    writeln!(f)
}
