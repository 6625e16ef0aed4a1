//! `[function.monitor]`: what is reported of flows, and of the hosts with the most traffic.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use crate::monitor::{MonitorConfig, TopConfig};

use rheostat_settings::declared::Setting;
use rheostat_settings::declared::kind::{duration, integer, path};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::Span;
use rheostat_settings::quantity::YEAR;
use rheostat_settings::reader::Table;

/// The monitor of a chain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MonitorFunction {
    /// Its settings.
    pub monitor: MonitorConfig,
    /// The file that records are written to.
    pub log: Option<PathBuf>,
}

/// Reads the settings of the monitor.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> MonitorFunction {
    let default = MonitorConfig::default();
    let keys = Keys::new();
    let log = keys.log.read(table, findings);
    let idle = keys.idle.read_or_default(table, findings);
    let active = keys.active.read_or_default(table, findings);
    let top = table.section("top", findings, read_top).unwrap_or(default.top);
    if top.as_ref().is_some_and(|top| top.interval.is_some())
        && log.is_none()
        && findings.clean(table.key())
    {
        let key = format!("{}.top.interval", table.key());
        let finding = Finding::mistake(&key, "rankings of an interval are written to the log")
            .at(findings.place(&key), "there is no log")
            .help("add `log = \"flows.jsonl\"` to `[function.monitor]`, or remove `interval`");
        findings.push(finding);
    }
    MonitorFunction { monitor: MonitorConfig { idle, active, top }, log }
}

/// Reads `[function.monitor.top]`; `None` when no ranking is kept.
fn read_top(table: &mut Table<'_>, findings: &mut Findings) -> Option<TopConfig> {
    let keys = TopKeys::new();
    let listed = keys.listed.read_or_default(table, findings);
    let counters = keys.counters.read(table, findings);
    let counters = counters.unwrap_or(TopConfig::default().counters.max(listed));
    let interval = keys.interval.read(table, findings);
    if counters < listed {
        let key = table.key_of("counters");
        let finding = Finding::mistake(&key, "more are to be listed than are counted")
            .at(findings.place(&table.key_of("listed")), format!("{listed} listed"))
            .at(findings.place(&key), format!("{counters} counted in each shard"))
            .help("give each shard several counters for each that is listed");
        findings.push(finding);
    }
    (listed > 0).then_some(TopConfig { listed, counters, interval })
}

const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(100)..=YEAR;

rheostat_settings::keys! {
    struct Keys {
        /// The file that records of flows are written to, one JSON object a line; none without it.
        log: PathBuf = path(), example("\"flows.jsonl\"");
        /// A flow ends after so long without a packet.
        idle: Duration = duration(TIMEOUTS), default(MonitorConfig::default().idle);
        /// A flow that goes on is reported so often.
        active: Duration = duration(TIMEOUTS), default(MonitorConfig::default().active);
    }
}

rheostat_settings::keys! {
    struct TopKeys {
        /// Hosts, and flows, that a ranking lists; 0 for no ranking.
        listed: usize = integer(0..=1_000), default(TopConfig::default().listed);
        /// Hosts, and flows, that each shard counts at a time: several for each that is listed. Without it, 1024 or as many as are
        /// listed.
        counters: usize = integer(1..=65_536), example("1024");
        /// The time that a ranking is about, which is written to the log; without it, one of the whole run at its end.
        interval: Duration = duration(Duration::from_secs(1)..=YEAR), example("\"60s\""), with("log = \"flows.jsonl\"");
    }
}

/// The keys of `[function.monitor]`.
pub(super) fn keys() -> Vec<Setting> {
    let mut keys = Keys::new().settings();
    keys.push(Setting::table(
        "top",
        "The hosts and flows with the most bytes.",
        TopKeys::new().settings(),
    ));
    keys
}

/// Writes what is reported, and where.
pub(super) fn describe(function: &MonitorFunction, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let MonitorConfig { idle, active, top } = &function.monitor;
    write!(f, "flows end after {} without a packet", Span(*idle))?;
    write!(f, ", and are reported every {}", Span(*active))?;
    if let Some(top) = top {
        write!(f, "; top {} hosts and flows", top.listed)?;
        match top.interval {
            Some(interval) => write!(f, ", every {}", Span(interval))?,
            None => f.write_str(", at the end")?,
        }
    }
    writeln!(f)?;
    match &function.log {
        Some(log) => writeln!(f, "          flows are logged to {}", log.display()),
        None => Ok(()),
    }
}
