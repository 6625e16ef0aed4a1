//! `[function.lb.service.check]`: how a service's backends are asked whether they are well.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::lb::check::{HttpCheck, LONGEST_REQUEST, StatusRange};
use crate::lb::{CheckConfig, CheckKind};

use rheostat_settings::declared::kind::{Kind as Declared, choice, duration, integer};
use rheostat_settings::declared::{Form, Setting};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::number::integer as read_integer;
use rheostat_settings::reader::convert::{list, text};
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

const TIMES: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3_600);

rheostat_settings::keys! {
    struct Keys(default: CheckConfig) {
        /// How: by an echo request, a connection of TCP, or a request of HTTP.
        kind: Kind = choice(KINDS), required(EXAMPLE);
        /// The path that is requested.
        path: String = Declared::new(Form::Text, path, String::clone), required("path = \"/health\""), with("kind = \"http\"");
        /// The host that is requested; the backend's address without it.
        host: String = Declared::new(Form::Text, visible, String::clone), with("kind = \"http\""), example("\"example.org\"");
        /// The statuses that are good, and ranges of them; 200 to 399 without it.
        expect: Vec<StatusRange> = Declared::unshown(Form::List, statuses).noun("status, or range of them"), with("kind = \"http\""),
            example("[200, \"300-399\"]");
        /// The port; that of the backend, or of the service, without it.
        port: u16 = integer(1..=65_535), with("kind = \"tcp\""), example("80");
        /// The time from one check to the next.
        interval: Duration = duration(TIMES), default(default.interval);
        /// How long an answer may take; without it, 1 s or the interval, if that is shorter.
        timeout: Duration = duration(TIMES), example("\"500ms\"");
        /// So many good checks in a row make a backend that was down take flows again.
        rise: u32 = integer(1..=1_000), default(default.rise);
        /// So many failures in a row make a backend down.
        fall: u32 = integer(1..=1_000), default(default.fall);
    }
}

/// The keys of a check.
pub(super) fn keys() -> Vec<Setting> {
    Keys::new(CheckConfig::new(CheckKind::Tcp)).settings()
}

/// Reads a check; `None` when it names no kind.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> Option<CheckConfig> {
    let keys = Keys::new(CheckConfig::new(CheckKind::Tcp));
    let kind = keys.kind.read(table, findings);
    let http = match kind {
        Some(Kind::Http) => Some(read_http(&keys, table, findings)),
        Some(_) => {
            keys.path.refuse(table, findings);
            keys.host.refuse(table, findings);
            keys.expect.refuse(table, findings);
            None
        }
        None => {
            table.ignore(&["path", "host", "expect"]);
            None
        }
    };
    let port = match kind {
        Some(Kind::Icmp) => {
            keys.port.refuse(table, findings);
            None
        }
        _ => keys.port.read(table, findings),
    };
    let interval = keys.interval.read_or_default(table, findings);
    let timeout = keys.timeout.read(table, findings);
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
    let rise = keys.rise.read_or_default(table, findings);
    let fall = keys.fall.read_or_default(table, findings);
    let kind = match kind? {
        Kind::Icmp => CheckKind::Icmp,
        Kind::Tcp => CheckKind::Tcp,
        Kind::Http => CheckKind::Http(http??),
    };
    Some(CheckConfig {
        kind,
        port,
        interval,
        timeout: timeout.unwrap_or(CheckConfig::new(CheckKind::Tcp).timeout.min(interval)),
        rise,
        fall,
    })
}

/// Reads what a check by HTTP requests.
fn read_http(keys: &Keys, table: &mut Table<'_>, findings: &mut Findings) -> Option<HttpCheck> {
    let path = keys.path.read(table, findings);
    let has_host = table.has("host");
    let host = keys.host.read(table, findings);
    let expect = keys.expect.read(table, findings);
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

/// A path on a web server.
fn path(value: &Value<'_>, findings: &mut Findings) -> Option<String> {
    let path = visible(value, findings)?;
    if path.starts_with('/') {
        return Some(path);
    }
    let message = format!("`{path}` is no path on a web server");
    findings.push(value.mistake(message).help(format!("write \"/{path}\"")));
    None
}

/// At least one status.
fn statuses(value: &Value<'_>, findings: &mut Findings) -> Option<Vec<StatusRange>> {
    let ranges = list(status)(value, findings)?;
    if ranges.is_empty() {
        let finding = value.mistake("no answer would be good enough");
        findings.push(finding.help("write the statuses that are, such as [200, \"300-399\"]"));
        return None;
    }
    Some(ranges)
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
        let status = read_integer(100..=599)(value, findings)? as u16;
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
