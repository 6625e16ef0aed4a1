//! `[polling]` of Metronome, and its settings in words.

use std::fmt;
use std::time::Duration;

use rheostat_base::unit;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::Span;
use rheostat_settings::reader::convert::number::{duration, integer, number};
use rheostat_settings::reader::convert::{boolean, choice};
use rheostat_settings::reader::{Table, Value};

use super::{Binding, Goal, LatencyGoal, LatencyOf, MetronomeSettings, ModeRules, Timeouts};
use crate::poll::{Polling, PollingRegistration};

pub(in crate::poll) const REGISTRATION: PollingRegistration = PollingRegistration {
    name: "metronome",
    summary: "sleep between polls, for a target",
    keys: &[
        "target_vacation",
        "target_latency",
        "percentile",
        "binding",
        "timeouts",
        "long_timeout",
        "idle_after",
        "busy_when_late",
        "budget",
    ],
    read: &|table, findings| metronome(table, findings).polling(),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeoutsName {
    Adaptive,
    Formula,
    Equal,
}

const US: fn(u64) -> Duration = Duration::from_micros;

impl MetronomeSettings {
    /// Workers that share all lanes and sleep between polls, for a CPU time in proportion to the load; all work, whether
    /// they are more or fewer than the lanes.
    pub fn polling(self) -> Polling {
        Polling::shared(REGISTRATION.name, self).described(self.to_string())
    }
}

impl fmt::Display for MetronomeSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.goal {
            Goal::Vacation(target) => {
                write!(f, "metronome for a vacation of {}", Span(target))?;
            }
            Goal::Latency(LatencyGoal { limit, of: LatencyOf::Mean }) => {
                write!(f, "metronome for a mean latency of {}", Span(limit))?;
            }
            Goal::Latency(LatencyGoal { limit, of: LatencyOf::Share(share) }) => {
                // The percentile was written with few digits.
                let percentile = (share * 1e6).round() / 1e4;
                write!(f, "metronome for {percentile} % within {}", Span(limit))?;
            }
        }
        if self.binding == Binding::Static {
            f.write_str(", workers bound to lanes")?;
        }
        match self.rules.idle_after {
            Some(after) => write!(f, ", interrupt when idle for {}", Span(after)),
            None => Ok(()),
        }
    }
}

fn metronome(table: &mut Table<'_>, findings: &mut Findings) -> MetronomeSettings {
    let default = MetronomeSettings::default();
    let bindings = [("random", Binding::Random), ("static", Binding::Static)];
    let binding = table.read("binding", findings, choice(&bindings));
    let budget = table.read("budget", findings, integer(1..=65_536));
    let idle_after = table.read("idle_after", findings, idle_after);
    let busy_on_miss = table.read("busy_when_late", findings, boolean);
    let rules = ModeRules {
        idle_after: idle_after.unwrap_or(default.rules.idle_after),
        busy_on_miss: busy_on_miss.unwrap_or(default.rules.busy_on_miss),
    };
    let goal = goal(table, findings).unwrap_or(default.goal);
    MetronomeSettings {
        goal,
        timeouts: timeouts(goal, table, findings),
        binding: binding.unwrap_or(default.binding),
        rules,
        budget: budget.map_or(default.budget, |budget| budget as usize),
    }
}

/// A target vacation, or a target latency with a percentile.
fn goal(table: &mut Table<'_>, findings: &mut Findings) -> Option<Goal> {
    let vacation =
        table.read("target_vacation", findings, duration(US(1)..=Duration::from_millis(10)));
    let limit =
        table.read("target_latency", findings, duration(US(2)..=Duration::from_millis(100)));
    if table.has("target_vacation") && table.has("target_latency") {
        let key = table.key_of("target_latency");
        let mistake = Finding::mistake(&key, "a target is a vacation or a latency, not both")
            .at(findings.place(&table.key_of("target_vacation")), "a vacation")
            .at(findings.place(&key), "a latency")
            .help("keep `target_latency`: the vacation follows from it");
        findings.push(mistake);
    }
    if !table.has("target_latency") {
        table.refuse(&["percentile"], "target_latency = \"100us\"", findings);
        return vacation.map(Goal::Vacation);
    }
    let of = table.read("percentile", findings, percentile).unwrap_or(LatencyOf::Share(0.99));
    limit.map(|limit| Goal::Latency(LatencyGoal { limit, of }))
}

fn timeouts(goal: Goal, table: &mut Table<'_>, findings: &mut Findings) -> Timeouts {
    let names = [
        ("adaptive", TimeoutsName::Adaptive),
        ("formula", TimeoutsName::Formula),
        ("equal", TimeoutsName::Equal),
    ];
    let name = table.read("timeouts", findings, choice(&names)).unwrap_or(TimeoutsName::Adaptive);
    if name == TimeoutsName::Equal {
        table.refuse(&["long_timeout"], "timeouts = \"adaptive\"", findings);
        return Timeouts::Equal;
    }
    let span = US(10)..=Duration::from_millis(100);
    let long = table.read("long_timeout", findings, duration(span));
    if let (Some(long), Goal::Vacation(target)) = (long, goal)
        && long < target
    {
        let key = table.key_of("long_timeout");
        let target_key = table.key_of("target_vacation");
        let message = "a worker that lost a lane would come back before the one that has it";
        let mistake = Finding::mistake(&key, message)
            .at(findings.place(&target_key), format!("vacations of {}", Span(target)))
            .at(findings.place(&key), format!("{} after a lost try", Span(long)))
            .help(format!("write a `long_timeout` of at least {}", Span(10 * target)));
        findings.push(mistake);
    }
    let long = long.unwrap_or(match goal {
        Goal::Vacation(target) => Timeouts::LONG.max(10 * target),
        Goal::Latency(_) => Timeouts::LONG,
    });
    Timeouts::Adaptive { long, follows: name == TimeoutsName::Adaptive }
}

/// A duration, or `"never"`.
fn idle_after(value: &Value<'_>, findings: &mut Findings) -> Option<Option<Duration>> {
    if value.text() == Some("never") {
        return Some(None);
    }
    if value.text().is_some_and(|text| unit::parse_duration(text).is_err()) {
        let message = "`idle_after` must be a duration, or \"never\"";
        findings.push(value.mistake(message).help("write, for example, \"100ms\" or \"never\""));
        return None;
    }
    let span = Duration::from_millis(1)..=Duration::from_secs(3_600);
    duration(span)(value, findings).map(Some)
}

/// A number of percent, or `"mean"`.
fn percentile(value: &Value<'_>, findings: &mut Findings) -> Option<LatencyOf> {
    match value.text() {
        Some("mean") => Some(LatencyOf::Mean),
        Some(_) => {
            let message = "`percentile` must be a number, or \"mean\"";
            findings.push(value.mistake(message).help("write, for example, 99 or 99.9"));
            None
        }
        None => {
            let percent = number(50.0..=99.99)(value, findings)?;
            // 99.9 is 0.999 to the last bit.
            Some(LatencyOf::Share((percent * 1e4).round() / 1e6))
        }
    }
}
