//! `[polling]` of Metronome, and its settings in words.

use std::fmt;
use std::time::Duration;

use rheostat_base::unit;
use rheostat_settings::declared::Form;
use rheostat_settings::declared::kind::{Kind, boolean, choice, duration, integer};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::Span;
use rheostat_settings::reader::convert::number::{duration as read_duration, number};
use rheostat_settings::reader::{Table, Value};

use super::{Binding, Goal, LatencyGoal, LatencyOf, MetronomeSettings, ModeRules, Timeouts};
use crate::poll::{Polling, PollingRegistration};

pub(in crate::poll) const REGISTRATION: PollingRegistration = PollingRegistration {
    name: "metronome",
    summary: "sleep between polls, for a target",
    keys: || Keys::new().settings(),
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
    let keys = Keys::new();
    let binding = keys.binding.read_or_default(table, findings);
    let budget = keys.budget.read_or_default(table, findings);
    let rules = ModeRules {
        idle_after: keys.idle_after.read_or_default(table, findings),
        busy_on_miss: keys.busy_when_late.read_or_default(table, findings),
    };
    let goal = goal(&keys, table, findings).unwrap_or(MetronomeSettings::default().goal);
    MetronomeSettings {
        goal,
        timeouts: timeouts(&keys, goal, table, findings),
        binding,
        rules,
        budget,
    }
}

const BINDINGS: [(&str, Binding); 2] = [("random", Binding::Random), ("static", Binding::Static)];
const TIMEOUTS: [(&str, TimeoutsName); 3] = [
    ("adaptive", TimeoutsName::Adaptive),
    ("formula", TimeoutsName::Formula),
    ("equal", TimeoutsName::Equal),
];
const MS: fn(u64) -> Duration = Duration::from_millis;

rheostat_settings::keys! {
    struct Keys {
        /// The mean time from the end of one visit to a lane to the start of the next.
        target_vacation: Duration = duration(US(1)..=MS(10)), example("\"10us\"");
        /// The latency of packets, in place of `target_vacation`.
        target_latency: Duration = duration(US(2)..=MS(100)), example("\"100us\"");
        /// The share of packets that the latency is for, in percent, or mean.
        percentile: LatencyOf = Kind::unshown(Form::Number, percentile).within("50 to 99.99, mean"), example("99"),
            with("target_latency = \"100us\"");
        /// Which lanes a worker may run: any, a random one after a lost try, or always the same.
        binding: Binding = choice(BINDINGS), default(Binding::default());
        /// How long a worker sleeps: adaptive (until the measured vacation is the target), formula, or equal after each try.
        timeouts: TimeoutsName = choice(TIMEOUTS), default(TimeoutsName::Adaptive);
        /// How long a worker sleeps that lost a lane to another; without it, 500 us or ten vacations, if these are longer.
        long_timeout: Duration = duration(US(10)..=MS(100)), with("timeouts = \"adaptive\""), example("\"500us\"");
        /// After so long without packets a lane waits for an interrupt; never for none.
        idle_after: Option<Duration> = idle_after(), default(ModeRules::default().idle_after);
        /// Whether a lane is polled without sleep while it misses its target.
        busy_when_late: bool = boolean(), default(ModeRules::default().busy_on_miss);
        /// Packets that a worker takes from a lane before it goes on to the next, where lanes outnumber workers.
        budget: usize = integer(1..=65_536), default(MetronomeSettings::default().budget);
    }
}

/// A target vacation, or a target latency with a percentile.
fn goal(keys: &Keys, table: &mut Table<'_>, findings: &mut Findings) -> Option<Goal> {
    let vacation = keys.target_vacation.read(table, findings);
    let limit = keys.target_latency.read(table, findings);
    if table.has("target_vacation") && table.has("target_latency") {
        let key = table.key_of("target_latency");
        let mistake = Finding::mistake(&key, "a target is a vacation or a latency, not both")
            .at(findings.place(&table.key_of("target_vacation")), "a vacation")
            .at(findings.place(&key), "a latency")
            .help("keep `target_latency`: the vacation follows from it");
        findings.push(mistake);
    }
    if !table.has("target_latency") {
        keys.percentile.refuse(table, findings);
        return vacation.map(Goal::Vacation);
    }
    let of = keys.percentile.read(table, findings).unwrap_or(LatencyOf::Share(0.99));
    limit.map(|limit| Goal::Latency(LatencyGoal { limit, of }))
}

fn timeouts(keys: &Keys, goal: Goal, table: &mut Table<'_>, findings: &mut Findings) -> Timeouts {
    let name = keys.timeouts.read_or_default(table, findings);
    if name == TimeoutsName::Equal {
        keys.long_timeout.refuse(table, findings);
        return Timeouts::Equal;
    }
    let long = keys.long_timeout.read(table, findings);
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
fn idle_after() -> Kind<Option<Duration>> {
    let span = MS(1)..=Duration::from_secs(3_600);
    let bounds = span.clone();
    let read = move |value: &Value<'_>, findings: &mut Findings| {
        if value.text() == Some("never") {
            return Some(None);
        }
        if value.text().is_some_and(|text| unit::parse_duration(text).is_err()) {
            let message = "`idle_after` must be a duration, or \"never\"";
            let finding = value.mistake(message);
            findings.push(finding.help("write, for example, \"100ms\" or \"never\""));
            return None;
        }
        read_duration(bounds.clone())(value, findings).map(Some)
    };
    duration(span).reading(read, |after| after.unwrap_or_default()).within("1ms to 1h, never")
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
