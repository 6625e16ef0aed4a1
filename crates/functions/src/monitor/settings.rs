//! `[function.monitor]`: what is reported of flows, and of the hosts with the most traffic.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::monitor::{MonitorConfig, TopConfig};

use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::Span;
use rheostat_settings::quantity::YEAR;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::number::{duration, integer};
use rheostat_settings::reader::convert::path;

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
    let timeout = || duration(Duration::from_millis(100)..=YEAR);
    let log = table.read("log", findings, path);
    let idle = table.read("idle", findings, timeout()).unwrap_or(default.idle);
    let active = table.read("active", findings, timeout()).unwrap_or(default.active);
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
    let default = TopConfig::default();
    let listed = table.read("listed", findings, integer(0..=1_000));
    let listed = listed.map_or(default.listed, |listed| listed as usize);
    let counters = table.read("counters", findings, integer(1..=65_536));
    let counters = counters.map_or(default.counters.max(listed), |counters| counters as usize);
    let span = Duration::from_secs(1)..=YEAR;
    let interval = table.read("interval", findings, duration(span));
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
