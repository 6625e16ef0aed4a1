//! `[slo]`: the latencies that packets of each class should not exceed.

use std::fmt;
use std::time::Duration;

use rheostat_steer::policy::{Class, Latency, Objectives};

use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::Span;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::choice;
use rheostat_settings::reader::convert::number::{duration, number};

/// What `on` may say.
const LATENCIES: [(&str, Latency); 2] = [("waiting", Latency::Waiting), ("total", Latency::Total)];

/// Reads the objectives; none are without the table.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> Objectives {
    let span = || duration(Duration::from_micros(1)..=Duration::from_secs(10));
    let priority = table.read("priority", findings, span());
    let regular = table.read("regular", findings, span());
    let percentile = table.read("percentile", findings, number(50.0..=99.99));
    let latency = table.read("on", findings, choice(&LATENCIES));
    if !table.has("priority") && !table.has("regular") {
        let message = "`[slo]` has no objective";
        let help = "add `priority = \"50us\"`, `regular = \"500us\"` or both, or remove the table";
        findings.push(table.mistake(message, "in this table").help(help));
    }
    Objectives {
        limits: [priority, regular],
        percentile: percentile.map_or(Objectives::PERCENTILE, |percent| percent / 100.0),
        latency: latency.unwrap_or_default(),
    }
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
