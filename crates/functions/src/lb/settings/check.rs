//! `[function.lb.service.check]`: how a service's backends are asked whether they are well.

use std::time::Duration;

use crate::lb::check::{HttpCheck, LONGEST_REQUEST, StatusRange};
use crate::lb::{CheckConfig, CheckKind};

use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::number::{duration, integer};
use rheostat_settings::reader::convert::{choice, list, text};
use rheostat_settings::reader::{Table, Value};

/// What to write where a kind is missing.
const EXAMPLE: &str = "kind = \"tcp\"";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Icmp,
    Tcp,
    Http,
}

const KINDS: [(&str, Kind); 3] = [("icmp", Kind::Icmp), ("tcp", Kind::Tcp), ("http", Kind::Http)];

/// Keys that only a check by HTTP has.
const OF_HTTP: [&str; 3] = ["path", "host", "expect"];

/// Reads a check; `None` when it names no kind.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> Option<CheckConfig> {
    let kind = table.require("kind", EXAMPLE, findings, choice(&KINDS));
    let http = match kind {
        Some(Kind::Http) => Some(read_http(table, findings)),
        Some(_) => {
            table.refuse(&OF_HTTP, "kind = \"http\"", findings);
            None
        }
        None => {
            table.ignore(&OF_HTTP);
            None
        }
    };
    let port = match kind {
        Some(Kind::Icmp) => {
            table.refuse(&["port"], "kind = \"tcp\"", findings);
            None
        }
        _ => table.read("port", findings, integer(1..=65_535)),
    };
    let default = CheckConfig::new(CheckKind::Tcp);
    let times = || duration(Duration::from_millis(100)..=Duration::from_secs(3_600));
    let interval = table.read("interval", findings, times()).unwrap_or(default.interval);
    let timeout = table.read("timeout", findings, times());
    if let Some(timeout) = timeout
        && timeout > interval
    {
        let at = |key: &str| findings.place(&table.key_of(key));
        let finding =
            Finding::mistake(table.key_of("timeout"), "a check lasts longer than the interval")
                .at(at("interval"), "from one check to the next")
                .at(at("timeout"), "for an answer")
                .help("give `timeout` no more time than `interval`");
        findings.push(finding);
    }
    let count = || integer(1..=1_000);
    let rise = table.read("rise", findings, count()).map_or(default.rise, |count| count as u32);
    let fall = table.read("fall", findings, count()).map_or(default.fall, |count| count as u32);
    let kind = match kind? {
        Kind::Icmp => CheckKind::Icmp,
        Kind::Tcp => CheckKind::Tcp,
        Kind::Http => CheckKind::Http(http??),
    };
    Some(CheckConfig {
        kind,
        port: port.map(|port| port as u16),
        interval,
        timeout: timeout.unwrap_or(default.timeout.min(interval)),
        rise,
        fall,
    })
}

/// Reads what a check by HTTP requests.
fn read_http(table: &mut Table<'_>, findings: &mut Findings) -> Option<HttpCheck> {
    let path = table.require("path", "path = \"/health\"", findings, |value, findings| {
        let path = visible(value, findings)?;
        if path.starts_with('/') {
            return Some(path);
        }
        let message = format!("`{path}` is no path on a web server");
        findings.push(value.mistake(message).help(format!("write \"/{path}\"")));
        None
    });
    let has_host = table.has("host");
    let host = table.read("host", findings, visible);
    let expect = table.read("expect", findings, |value, findings| {
        let ranges = list(status)(value, findings)?;
        if ranges.is_empty() {
            let finding = value.mistake("no answer would be good enough");
            findings.push(finding.help("write the statuses that are, such as [200, \"300-399\"]"));
            return None;
        }
        Some(ranges)
    });
    let path = path?;
    if has_host && host.is_none() {
        return None;
    }
    let default = HttpCheck::new(&path);
    let check = HttpCheck { host, expect: expect.unwrap_or(default.expect), path };
    let longest = [0_u16; 8].map(|_| u16::MAX).into();
    if check.request(longest).len() > LONGEST_REQUEST {
        let message = format!("the request is longer than {LONGEST_REQUEST} bytes");
        let place = findings.place(&table.key_of("path"));
        let finding = Finding::mistake(table.key_of("path"), message).at(place, "");
        findings.push(finding.help("it must fit into one packet: write a shorter path"));
        return None;
    }
    Some(check)
}

/// Text that may stand in the head of a request: visible characters of ASCII (RFC 9110, section 5.5).
fn visible(value: &Value<'_>, findings: &mut Findings) -> Option<String> {
    let text = text(value, findings)?;
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some(text.to_owned());
    }
    let message = format!("`{}` must be visible characters of ASCII without spaces", value.name());
    findings.push(value.mistake(message).help("encode others in percent, such as `%20`"));
    None
}

/// A conversion to a status, or a range of them such as `"200-299"`.
fn status(value: &Value<'_>, findings: &mut Findings) -> Option<StatusRange> {
    if value.is_integer() {
        let status = integer(100..=599)(value, findings)? as u16;
        return Some(StatusRange { low: status, high: status });
    }
    let text = text(value, findings)?;
    let range = text.split_once('-').and_then(|(low, high)| {
        let number = |text: &str| text.trim().parse::<u16>().ok();
        Some(StatusRange { low: number(low)?, high: number(high)? })
    });
    let range =
        range.filter(|range| 100 <= range.low && range.low <= range.high && range.high <= 599);
    if range.is_none() {
        let finding = value.mistake(format!("`{text}` is no range of statuses"));
        findings.push(finding.help("write a status such as 200, or a range such as \"200-399\""));
    }
    range
}
