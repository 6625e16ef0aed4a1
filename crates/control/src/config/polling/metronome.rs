//! The settings of `policy = "metronome"`.

use std::fmt;
use std::time::Duration;

use rheostat_run::poll::metronome::{
    Binding, Goal, LatencyGoal, LatencyOf, MetronomeSettings, ModeRules, Timeouts,
};

use crate::findings::Findings;
use crate::quantity::Span;
use crate::reader::Table;
use crate::reader::convert::number::{count, duration, number};
use crate::reader::convert::{boolean, choice};

/// What has a meaning with this policy only.
pub(super) const KEYS: [&str; 9] = [
    "target_vacation",
    "target_latency",
    "percentile",
    "timeouts",
    "long_timeout",
    "binding",
    "idle_after",
    "busy_when_late",
    "budget",
];

#[derive(Clone, Copy, Debug)]
enum TimeoutsName {
    Adaptive,
    Original,
    Equal,
}

const US: fn(u64) -> Duration = Duration::from_micros;

pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> MetronomeSettings {
    let default = MetronomeSettings::default();
    let bindings = [("random", Binding::Random), ("static", Binding::Static)];
    let binding = table.read("binding", findings, choice(&bindings));
    let span = Duration::from_millis(1)..=Duration::from_secs(3_600);
    let idle_after = table.read("idle_after", findings, duration(span));
    let busy_on_miss = table.read("busy_when_late", findings, boolean);
    let budget = table.read("budget", findings, count(32..=65_536));
    MetronomeSettings {
        goal: goal(table, findings),
        timeouts: timeouts(table, findings),
        binding: binding.unwrap_or_default(),
        rules: ModeRules {
            idle_after: idle_after.or(default.rules.idle_after),
            busy_on_miss: busy_on_miss.unwrap_or(default.rules.busy_on_miss),
        },
        budget: budget.map_or(default.budget, |budget| budget as usize),
    }
}

/// A vacation, or a latency from which it follows.
fn goal(table: &mut Table<'_>, findings: &mut Findings) -> Goal {
    let both = table.has("target_vacation") && table.has("target_latency");
    let vacation = table.read("target_vacation", findings, duration(US(1)..=US(10_000)));
    let latency = table.read("target_latency", findings, duration(US(10)..=US(100_000)));
    if !table.has("target_latency") {
        table.refuse(&["percentile"], "target_latency = \"100us\"", findings);
    }
    let percentile = table.read("percentile", findings, number(1.0..=99.99));
    if both {
        let message = "`target_vacation` and `target_latency` exclude each other";
        let help = "remove one: the vacation follows from the latency";
        findings.push(table.mistake(message, "").help(help));
    }
    let of = percentile.map_or(LatencyOf::Mean, |share| LatencyOf::Share(share / 100.0));
    match (vacation, latency) {
        (_, Some(limit)) => Goal::Latency(LatencyGoal { limit, of }),
        (Some(target), None) => Goal::Vacation(target),
        (None, None) => Goal::VACATION,
    }
}

fn timeouts(table: &mut Table<'_>, findings: &mut Findings) -> Timeouts {
    let names = [
        ("adaptive", TimeoutsName::Adaptive),
        ("original", TimeoutsName::Original),
        ("equal", TimeoutsName::Equal),
    ];
    let name = table.read("timeouts", findings, choice(&names)).unwrap_or(TimeoutsName::Adaptive);
    if matches!(name, TimeoutsName::Equal) {
        table.refuse(&["long_timeout"], "timeouts = \"adaptive\"", findings);
        return Timeouts::Equal;
    }
    let long = table.read("long_timeout", findings, duration(US(10)..=US(100_000)));
    let follows = matches!(name, TimeoutsName::Adaptive);
    Timeouts::Adaptive { long: long.unwrap_or(Timeouts::LONG), follows }
}

pub(super) fn describe(settings: &MetronomeSettings, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match settings.goal {
        Goal::Vacation(target) => write!(f, "metronome, vacations of {}", Span(target))?,
        Goal::Latency(LatencyGoal { limit, of: LatencyOf::Mean }) => {
            write!(f, "metronome, latency of {} on average", Span(limit))?;
        }
        Goal::Latency(LatencyGoal { limit, of: LatencyOf::Share(share) }) => {
            write!(f, "metronome, latency of {} for {} %", Span(limit), share * 100.0)?;
        }
    }
    match settings.timeouts {
        Timeouts::Adaptive { follows: true, .. } => {}
        Timeouts::Adaptive { follows: false, .. } => f.write_str(", timeouts of the original")?,
        Timeouts::Equal => f.write_str(", equal timeouts")?,
        Timeouts::Fixed { short, long } => {
            write!(f, ", timeouts of {} and {}", Span(short), Span(long))?;
        }
    }
    match settings.binding {
        Binding::Random => Ok(()),
        Binding::Static => f.write_str(", lanes bound to workers"),
    }
}
