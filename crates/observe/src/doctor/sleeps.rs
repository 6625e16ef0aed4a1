//! Sleeps of microseconds: what they take, what they cost, and what target vacation they allow.

use std::fmt::Write;
use std::time::Duration;

use rheostat_kernel::priority::Priority;
use rheostat_kernel::sleep::{SlackRefused, SleepPoint, SleepProfile};
use rheostat_run::poll::metronome::VacationLaw;
use serde::Serialize;

use super::{Finding, Machine};

const CPU: &str = "/sys/devices/system/cpu";
const UNITS: [&str; 3] = [
    "/etc/systemd/system/rheo@.service",
    "/usr/lib/systemd/system/rheo@.service",
    "/lib/systemd/system/rheo@.service",
];
/// An idle state from which waking takes longer makes sleeps of tens of microseconds late.
const IDLE_LATENCY: u64 = 20;
/// A median sleep that is so much longer than asked has a cause that a setting removes.
const OVERSHOOT: Duration = Duration::from_micros(30);
/// A sleep of 1 in 1,000 that takes longer than this loses packets at 1 Mpps into 1,024 descriptors.
const LATE: Duration = Duration::from_millis(1);
/// What an empty poll of a lane takes, about.
const EMPTY_POLL: f64 = 0.1e-6;
/// Target vacations that are shown.
const TARGETS: [Duration; 4] = [
    Duration::from_micros(10),
    Duration::from_micros(20),
    Duration::from_micros(50),
    Duration::from_micros(100),
];

/// Sleeps as they were measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SleepFacts {
    /// With the priority that the process has.
    pub usual: SleepProfile,
    /// What the kernel said to a timer slack of 1 ns.
    pub slack: Result<(), SlackRefused>,
    /// Under SCHED_FIFO, where the process may use it.
    pub fifo: Option<SleepProfile>,
}

/// Sleeps of one priority, in JSON. Durations in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SleepReport {
    /// `usual` or `fifo`.
    pub priority: &'static str,
    /// Sleeps by what was asked.
    pub sleeps: Vec<SleepRow>,
    /// The shortest vacation that is slept; shorter ones are spun.
    pub shortest_us: f64,
    /// What target vacations cost and bring on an idle lane with one worker.
    pub targets: Vec<TargetRow>,
}

/// Sleeps of one asked duration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SleepRow {
    /// What was asked.
    pub asked_us: f64,
    /// Quantiles of what it took.
    pub p50_us: f64,
    /// 99 of 100.
    pub p99_us: f64,
    /// 999 of 1,000.
    pub p999_us: f64,
    /// CPU time of one.
    pub cpu_us: f64,
}

/// One target vacation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetRow {
    /// The target.
    pub target_us: f64,
    /// The share of a core that an idle worker takes.
    pub cpu_share: f64,
    /// What 99 of 100 packets wait for a poll at most.
    pub wait_p99_us: f64,
}

fn us(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e8).round() / 100.0
}

impl SleepReport {
    fn new(priority: &'static str, profile: &SleepProfile) -> SleepReport {
        let row = |point: &SleepPoint| SleepRow {
            asked_us: us(point.asked()),
            p50_us: us(point.quantile(0.5)),
            p99_us: us(point.quantile(0.99)),
            p999_us: us(point.quantile(0.999)),
            cpu_us: us(point.cpu()),
        };
        let target = |target: &Duration| TargetRow {
            target_us: us(*target),
            cpu_share: idle_share(profile, *target),
            wait_p99_us: us(wait(profile, *target, 0.99)),
        };
        SleepReport {
            priority,
            sleeps: profile.points().iter().map(row).collect(),
            shortest_us: us(profile.shortest()),
            targets: TARGETS.iter().map(target).collect(),
        }
    }
}

/// The share of a core that a worker takes which sleeps for `target` and polls an idle lane, in turn.
fn idle_share(profile: &SleepProfile, target: Duration) -> f64 {
    let share = match profile.ask_for(target) {
        Some(_) => (profile.cpu_of(target).as_secs_f64() + EMPTY_POLL) / target.as_secs_f64(),
        None => 1.0,
    };
    (share.min(1.0) * 1e3).round() / 1e3
}

/// How long a share of the packets that arrive at an idle lane with one worker wait at most.
fn wait(profile: &SleepProfile, target: Duration, share: f64) -> Duration {
    let sleeps = match profile.ask_for(target) {
        Some(_) => profile.durations(target, 1_000),
        None => vec![target],
    };
    let law = VacationLaw::new(1.0, 0.0, target, target, &sleeps);
    let (mut low, mut high) = (0.0, sleeps.last().map_or(0.0, Duration::as_secs_f64));
    while high - low > 1e-8 {
        let middle = (low + high) / 2.0;
        if law.residual_survival(middle) > 1.0 - share { low = middle } else { high = middle }
    }
    Duration::from_secs_f64(high)
}

/// What was measured, for JSON.
pub(super) fn report(facts: &SleepFacts) -> Vec<SleepReport> {
    let usual = SleepReport::new("usual", &facts.usual);
    let fifo = facts.fifo.as_ref().map(|profile| SleepReport::new("fifo", profile));
    std::iter::once(usual).chain(fifo).collect()
}

pub(super) fn examine(
    machine: &dyn Machine,
    facts: Option<&SleepFacts>,
    findings: &mut Vec<Finding>,
) {
    idle_states(machine, findings);
    priority(machine, findings);
    let Some(facts) = facts else { return };
    findings.push(match facts.slack {
        Ok(()) => Finding::ok("timer slack", "1 ns"),
        Err(refused) => Finding::warning(
            "timer slack",
            refused.to_string(),
            "with policy `metronome` packets wait so much longer, or workers spin",
        )
        .fixed_by("allow prctl in the container's seccomp profile (docker run --security-opt seccomp=FILE)"),
    });
    findings.push(sleeps(facts));
    findings.push(targets(&facts.usual));
}

/// The distribution of sleeps, and what shortens them.
fn sleeps(facts: &SleepFacts) -> Finding {
    let mut found = line(&facts.usual);
    if let Some(fifo) = &facts.fifo {
        let _ = write!(found, "; under SCHED_FIFO {}", line(fifo));
    }
    let most = |profile: &SleepProfile, q: f64| {
        profile
            .points()
            .iter()
            .map(|point| point.quantile(q) - point.asked().min(point.quantile(q)))
            .max()
    };
    let (median, late) = (most(&facts.usual, 0.5), most(&facts.usual, 0.999));
    let fifo_helps = match (&facts.fifo, late) {
        (Some(fifo), Some(late)) => most(fifo, 0.999).is_some_and(|fifo| 2 * fifo < late),
        _ => true,
    };
    if median.is_some_and(|median| median > OVERSHOOT) {
        let means = "half of the sleeps end so late: workers spin for shorter targets";
        return Finding::warning("sleep", found, means).fixed_by(
            "cpupower idle-set -D 20  # no idle state that takes more than 20 us to leave",
        );
    }
    if late.is_some_and(|late| late > LATE) {
        let means = "one sleep in a thousand ends more than 1 ms late, as other threads run on the core: packets wait, and \
                     queues may overflow";
        let fix = match fifo_helps {
            true => "set [workers] priority = \"fifo:10\" (or \"nice:-20\")",
            false => "add isolcpus=1 to the kernel's command line, and set [workers] cores = \"1\"",
        };
        return Finding::warning("sleep", found, means).fixed_by(fix);
    }
    Finding::ok("sleep", found)
}

/// `asked 1/5 us: p50 3.2/8.4, p99 …, p99.9 … us, 4 us of CPU time each`.
fn line(profile: &SleepProfile) -> String {
    let row = |of: &dyn Fn(&SleepPoint) -> Duration| {
        let values: Vec<_> = profile.points().iter().map(|point| figure(us(of(point)))).collect();
        values.join("/")
    };
    let cpu = profile.points().iter().map(SleepPoint::cpu).max().unwrap_or_default();
    format!(
        "asked {} us: p50 {}, p99 {}, p99.9 {} us, at most {} us of CPU time each",
        row(&SleepPoint::asked),
        row(&|point| point.quantile(0.5)),
        row(&|point| point.quantile(0.99)),
        row(&|point| point.quantile(0.999)),
        figure(us(cpu)),
    )
}

/// Three figures at most.
fn figure(value: f64) -> String {
    if value < 10.0 { format!("{:.1}", value) } else { format!("{value:.0}") }
}

/// What vacations are possible, and what they cost.
fn targets(profile: &SleepProfile) -> Finding {
    let mut found = format!("from {} us on", figure(us(profile.shortest())));
    for target in TARGETS {
        let _ = write!(
            found,
            "; {:.0} us: {:.0} % of a core while idle, 99 % of packets wait {} us at most",
            us(target),
            100.0 * idle_share(profile, target),
            figure(us(wait(profile, target, 0.99))),
        );
    }
    Finding::ok("target vacation", found)
}

/// Idle states from which a core wakes slowly.
fn idle_states(machine: &dyn Machine, findings: &mut Vec<Finding>) {
    let folder = format!("{CPU}/cpu0/cpuidle");
    let slowest = machine
        .list(&folder)
        .iter()
        .filter(|state| machine.read(&format!("{folder}/{state}/disable")).as_deref() != Some("1"))
        .filter_map(|state| {
            let latency =
                machine.read(&format!("{folder}/{state}/latency"))?.parse::<u64>().ok()?;
            Some((latency, machine.read(&format!("{folder}/{state}/name"))?))
        })
        .max();
    let Some((latency, name)) = slowest else { return };
    findings.push(if latency > IDLE_LATENCY {
        Finding::warning(
            "idle states",
            format!("`{name}` takes {latency} us to leave"),
            "sleeps of workers end so much later after the core was idle for long",
        )
        .fixed_by(format!("cpupower idle-set -D {IDLE_LATENCY}"))
    } else {
        Finding::ok("idle states", format!("the slowest, `{name}`, takes {latency} us to leave"))
    });
}

/// CAP_SYS_NICE in `linux/capability.h`.
const SYS_NICE: u32 = 23;

/// Whether workers may get the priority that a configuration requests.
fn priority(machine: &dyn Machine, findings: &mut Vec<Finding>) {
    let may = machine.status().has_capability(SYS_NICE);
    let limits = machine.read("/proc/self/limits").unwrap_or_default();
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max realtime priority"));
    let limit = limit.and_then(|line| line.split_whitespace().next()?.parse::<u8>().ok());
    let means =
        "`[workers] priority` is refused: workers that sleep come late when others use their cores";
    findings.push(match (may, limit) {
        (true, _) => Finding::ok("priority", "any, by CAP_SYS_NICE"),
        (false, Some(limit @ 1..)) => {
            Finding::ok("priority", format!("{} at most, by limit", Priority::Fifo(limit)))
        }
        (false, _) => Finding::warning("priority", "only that of the process", means)
            .fixed_by("run as root, or: setcap cap_sys_nice+ep rheo, or: ulimit -r 10"),
    });
    let unit = UNITS.into_iter().find_map(|path| Some((path, machine.read(path)?)));
    if let Some((path, text)) = unit
        && text.lines().any(|line| line.trim() == "RestrictRealtime=yes")
    {
        findings.push(
            Finding::warning(
                "unit",
                format!("{path} has RestrictRealtime=yes"),
                "in the unit `[workers] priority = \"fifo:…\"` is refused",
            )
            .fixed_by(
                "systemctl edit rheo@  # the lines are commented in the unit, under Priority",
            ),
        );
    }
}
