//! `[function.portscan]`: whose connections are watched, and when a host is taken for a scanner.

use std::fmt;
use std::time::Duration;

use crate::portscan::{Action, Likelihoods, PortscanConfig, Walk, WalkError, Width};
use rheostat_steer::Side;

use rheostat_settings::device::side;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::YEAR;
use rheostat_settings::quantity::{Count, Span};
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::choice;
use rheostat_settings::reader::convert::number::{count, duration, integer, number};

const ACTIONS: [(&str, Action); 2] = [("count", Action::Count), ("drop", Action::Drop)];

/// Reads the settings of the detector.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> PortscanConfig {
    let default = PortscanConfig::default();
    let from = table.read("from", findings, side);
    let v4 = table.read("ipv4_prefix", findings, integer(0..=32));
    let v6 = table.read("ipv6_prefix", findings, integer(0..=128));
    let width = Width {
        v4: v4.map_or(default.width.v4, |length| length as u8),
        v6: v6.map_or(default.width.v6, |length| length as u8),
    };
    let walk = read_walk(table, findings).unwrap_or(default.walk);
    let room = || count(16..=100_000_000);
    let time = |least| duration(Duration::from_millis(least)..=YEAR);
    PortscanConfig {
        from,
        width,
        walk,
        timeout: table.read("answer", findings, time(10)).unwrap_or(default.timeout),
        hosts: table.read("hosts", findings, room()).map_or(default.hosts, |n| n as usize),
        pairs: table.read("pairs", findings, room()).map_or(default.pairs, |n| n as usize),
        retention: table.read("retention", findings, time(1_000)).unwrap_or(default.retention),
        refresh: table.read("refresh", findings, time(0)).unwrap_or(default.refresh),
        action: table.read("action", findings, choice(&ACTIONS)).unwrap_or_default(),
    }
}

fn read_walk(table: &mut Table<'_>, findings: &mut Findings) -> Option<Walk> {
    let default = Likelihoods::default();
    let mut likelihood =
        |key, default| table.read(key, findings, number(0.0..=1.0)).unwrap_or(default);
    let likelihoods = Likelihoods {
        benign: likelihood("benign", default.benign),
        scanner: likelihood("scanner", default.scanner),
        false_positives: likelihood("false_positives", default.false_positives),
        detection: likelihood("detection", default.detection),
    };
    match Walk::new(&likelihoods) {
        Ok(walk) => Some(walk),
        Err(error) => {
            let (keys, help) = match error {
                WalkError::Range(key) => ([key, key], "write a share such as 0.2 or 0.99"),
                WalkError::Success => {
                    (["benign", "scanner"], "raise `benign` (0.8), or lower `scanner` (0.2)")
                }
                WalkError::Threshold => (
                    ["detection", "false_positives"],
                    "raise `detection` (0.99), or lower `false_positives` (0.01)",
                ),
            };
            let mut finding = Finding::mistake(table.key_of(keys[0]), error.to_string());
            for key in keys.into_iter().take(if keys[0] == keys[1] { 1 } else { 2 }) {
                finding = finding.at(findings.place(&table.key_of(key)), "");
            }
            findings.push(finding.help(help));
            None
        }
    }
}

/// Writes whose connections are watched, and what becomes of those of scanners.
pub(super) fn describe(config: &PortscanConfig, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Width { v4, v6 } = config.width;
    write!(f, "a host (/{v4} or /{v6}")?;
    f.write_str(match config.from {
        None => "",
        Some(Side::Inside) => ", from inside",
        Some(Side::Outside) => ", from outside",
    })?;
    write!(f, ") scans after {} failures in a row or as good as; ", config.walk.failures())?;
    write!(f, "{} to answer; ", Span(config.timeout))?;
    let (hosts, pairs) = (Count(config.hosts as u64), Count(config.pairs as u64));
    write!(f, "{hosts} hosts and {pairs} pairs, for {}; ", Span(config.retention))?;
    writeln!(
        f,
        "connections of scanners are {}",
        match config.action {
            Action::Count => "counted",
            Action::Drop => "dropped",
        }
    )
}
