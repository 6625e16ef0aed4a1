//! `[function.portscan]`: whose connections are watched, and when a host is taken for a scanner.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::portscan::{Action, Likelihoods, PortscanConfig, Walk, WalkError, Width};
use rheostat_steer::Side;

use rheostat_settings::declared::Setting;
use rheostat_settings::declared::kind::{Kind, choice, count, decimal, duration, integer, side};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::YEAR;
use rheostat_settings::quantity::{Count, Span};
use rheostat_settings::reader::Table;

const ACTIONS: [(&str, Action); 2] = [("count", Action::Count), ("drop", Action::Drop)];

/// Reads the settings of the detector.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> PortscanConfig {
    let default = PortscanConfig::default();
    let keys = Keys::new(default.clone(), Likelihoods::default());
    let from = keys.from.read(table, findings);
    let width = Width {
        v4: keys.ipv4_prefix.read_or_default(table, findings),
        v6: keys.ipv6_prefix.read_or_default(table, findings),
    };
    let walk = read_walk(&keys, table, findings).unwrap_or(default.walk);
    PortscanConfig {
        from,
        width,
        walk,
        timeout: keys.answer.read_or_default(table, findings),
        hosts: keys.hosts.read_or_default(table, findings),
        pairs: keys.pairs.read_or_default(table, findings),
        retention: keys.retention.read_or_default(table, findings),
        refresh: keys.refresh.read_or_default(table, findings),
        action: keys.action.read_or_default(table, findings),
    }
}

const ROOM: RangeInclusive<u64> = 16..=100_000_000;

/// From so many milliseconds to a year.
fn time(least: u64) -> Kind<Duration> {
    duration(Duration::from_millis(least)..=YEAR)
}

rheostat_settings::keys! {
    struct Keys(default: PortscanConfig, likelihoods: Likelihoods) {
        /// The side whose connections are watched; both without it.
        from: Side = side(), example("\"outside\"");
        /// Leading bits of an IPv4 address that make one host.
        ipv4_prefix: u8 = integer(0..=32), default(default.width.v4);
        /// Leading bits of an IPv6 address that make one host.
        ipv6_prefix: u8 = integer(0..=128), default(default.width.v6);
        /// The probability that a connection of a benign host succeeds.
        benign: f64 = decimal(0.0..=1.0), default(likelihoods.benign);
        /// The probability that a connection of a scanner succeeds.
        scanner: f64 = decimal(0.0..=1.0), default(likelihoods.scanner);
        /// The share of benign hosts that may be taken for scanners.
        false_positives: f64 = decimal(0.0..=1.0), default(likelihoods.false_positives);
        /// The share of scanners that must be detected.
        detection: f64 = decimal(0.0..=1.0), default(likelihoods.detection);
        /// A connection without an answer after so long has failed.
        answer: Duration = time(10), default(default.timeout);
        /// Hosts that are remembered at most.
        hosts: usize = count(ROOM), default(default.hosts);
        /// Pairs of hosts that are remembered at most: further connections between them do not count.
        pairs: usize = count(ROOM), default(default.pairs);
        /// How long hosts and pairs are remembered.
        retention: Duration = time(1_000), default(default.retention);
        /// How old the time of the last connection may be that is remembered of a pair.
        refresh: Duration = time(0), default(default.refresh);
        /// What becomes of new connections of scanners.
        action: Action = choice(ACTIONS), default(Action::default());
    }
}

/// The keys of `[function.portscan]`.
pub(super) fn keys() -> Vec<Setting> {
    Keys::new(PortscanConfig::default(), Likelihoods::default()).settings()
}

fn read_walk(keys: &Keys, table: &mut Table<'_>, findings: &mut Findings) -> Option<Walk> {
    let likelihoods = Likelihoods {
        benign: keys.benign.read_or_default(table, findings),
        scanner: keys.scanner.read_or_default(table, findings),
        false_positives: keys.false_positives.read_or_default(table, findings),
        detection: keys.detection.read_or_default(table, findings),
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
