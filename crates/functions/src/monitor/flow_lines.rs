//! The log of a monitor as lines of JSON: flows, and the hosts with the most traffic.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::IpAddr;
use std::time::Duration;

use rheostat_base::Time;
use rheostat_nf::registry::Lines;
use rheostat_packet::FlowKey;
use rheostat_packet::wire::protocol::{ICMPV4, ICMPV6, has_ports};
use rheostat_run::Ranking;
use serde::Serialize;

use super::{FlowRecord, MonitorLog, TopLine, TopReport, WayCounts};

/// Intervals that may wait for shards that are behind. A shard without packets reports nothing as long as its lane has none
/// either.
const WAITING: usize = 3;

/// Writes the log of a monitor.
#[derive(Debug)]
pub struct FlowLines {
    log: MonitorLog,
    /// The length of an interval, and how many are listed for it.
    interval: Option<(Duration, usize)>,
    /// Intervals that not all shards have reported.
    waiting: BTreeMap<u64, Interval>,
}

/// What is known of an interval.
#[derive(Debug, Default)]
struct Interval {
    rankings: BTreeMap<&'static str, Ranking>,
    shards: usize,
}

/// A line about a flow. Left out is what its packets do not have.
#[derive(Serialize)]
struct FlowLine {
    event: &'static str,
    /// Seconds, as packets count time.
    start: f64,
    end: f64,
    /// From the flow's first packet to the record's last.
    duration: f64,
    reason: &'static str,
    part: u32,
    protocol: u8,
    inner: IpAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    inner_port: Option<u16>,
    outer: IpAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    outer_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icmp_id: Option<u16>,
    /// Outer tag first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    vlan: Vec<u32>,
    initiator: &'static str,
    /// From the inner end to the outer one, and back.
    out: WayLine,
    #[serde(rename = "in")]
    back: WayLine,
    #[serde(skip_serializing_if = "is_zero")]
    icmp_errors: u32,
}

#[derive(Serialize)]
struct WayLine {
    packets: u32,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    flags: Option<String>,
    /// The least and the largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<[u8; 2]>,
}

/// A line about an interval.
#[derive(Serialize)]
struct TopOfInterval {
    event: &'static str,
    /// When it ended, and how long it was, in seconds.
    time: f64,
    seconds: f64,
    #[serde(flatten)]
    top: BTreeMap<&'static str, Vec<TopLine>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn seconds(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e9
}

impl FlowLine {
    fn new(record: &FlowRecord) -> FlowLine {
        let FlowRecord { key, ways: [out, back], .. } = record;
        let port = |port: u16| has_ports(key.protocol()).then_some(port);
        let is_icmp = matches!(key.protocol(), ICMPV4 | ICMPV6);
        FlowLine {
            event: "flow",
            start: seconds(record.start),
            end: seconds(record.end),
            duration: record.end.since(record.began).as_secs_f64(),
            reason: record.reason.name(),
            part: record.part,
            protocol: key.protocol(),
            inner: key.first(),
            inner_port: port(key.first_port()),
            outer: key.second(),
            outer_port: port(key.second_port()),
            icmp_id: is_icmp.then(|| key.first_port()),
            vlan: vlan(key),
            initiator: if record.initiated_forward { "inner" } else { "outer" },
            out: WayLine::new(key, out),
            back: WayLine::new(key, back),
            icmp_errors: record.errors,
        }
    }
}

/// The VLAN identifiers of a key's zone, outer first. An inner identifier of a double tag whose outer one
/// is 0 (a priority tag) looks like a single one.
fn vlan(key: &FlowKey) -> Vec<u32> {
    match (key.zone() >> 12, key.zone() & 0xfff) {
        (0, 0) => vec![],
        (0, only) => vec![only],
        (outer, inner) => vec![outer, inner],
    }
}

impl WayLine {
    fn new(key: &FlowKey, way: &WayCounts) -> WayLine {
        const LETTERS: [char; 8] = ['F', 'S', 'R', 'P', 'A', 'U', 'E', 'C'];
        let set = |(bit, letter): (usize, &char)| (way.flags >> bit & 1 == 1).then_some(*letter);
        let flags: String = LETTERS.iter().enumerate().filter_map(set).collect();
        let is_tcp = key.protocol() == rheostat_packet::wire::protocol::TCP;
        WayLine {
            packets: way.packets,
            bytes: way.bytes,
            flags: (is_tcp && way.packets > 0).then_some(flags),
            ttl: way.ttl(),
        }
    }
}

/// A record as one line of JSON.
pub fn flow_line(record: &FlowRecord) -> String {
    serde_json::to_string(&FlowLine::new(record)).expect("numbers and names are always JSON")
}

impl FlowLines {
    /// Writes `log`; with intervals of this length of which so many are listed.
    pub fn new(log: MonitorLog, interval: Option<(Duration, usize)>) -> FlowLines {
        FlowLines { log, interval, waiting: BTreeMap::new() }
    }

    fn take(&mut self, report: &TopReport) {
        let listed = self.interval.map_or(0, |(_, listed)| listed);
        let interval = self.waiting.entry(report.interval).or_default();
        interval.shards += 1;
        for ranked in &report.ranked {
            let ranking = interval.rankings.entry(ranked.name()).or_default();
            ranking.list(listed);
            ranked.merge_into(ranking);
        }
    }

    fn write_interval(&mut self, file: &mut dyn Write) -> io::Result<()> {
        let Some((number, interval)) = self.waiting.pop_first() else { return Ok(()) };
        let length = self.interval.map_or(0.0, |(length, _)| length.as_secs_f64());
        let rankings = interval.rankings.iter();
        let line = TopOfInterval {
            event: "top",
            time: (number + 1) as f64 * length,
            seconds: length,
            top: rankings.map(|(name, ranking)| (*name, TopLine::of(ranking))).collect(),
        };
        serde_json::to_writer(&mut *file, &line)?;
        file.write_all(b"\n")
    }
}

impl Lines for FlowLines {
    fn write_new(&mut self, file: &mut dyn Write) -> io::Result<usize> {
        let mut written = Ok(());
        let records = self.log.drain(|record| {
            if written.is_ok() {
                written = writeln!(file, "{}", flow_line(&record));
            }
        });
        written?;
        let mut reports = Vec::new();
        let count = self.log.drain_reports(|report| reports.push(report));
        reports.iter().for_each(|report| self.take(report));
        let shards = self.log.shards();
        while self.waiting.first_key_value().is_some_and(|(_, first)| first.shards == shards)
            || self.waiting.len() > WAITING
        {
            self.write_interval(file)?;
        }
        Ok(records + count)
    }

    fn write_last(&mut self, file: &mut dyn Write) -> io::Result<()> {
        while !self.waiting.is_empty() {
            self.write_interval(file)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::monitor::EndReason;

    #[test]
    fn a_line_states_the_endpoints_of_a_flow_its_volume_and_how_it_ended() {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 5), Ipv4Addr::new(198, 51, 100, 1));
        let mut out = WayCounts::default();
        (out.packets, out.bytes, out.flags) = (3, 172, 0x13);
        let record = FlowRecord {
            key: FlowKey::v4((a, 4_000), (b, 80), 6, 7),
            began: Time::from_millis(500),
            start: Time::from_millis(1_500),
            end: Time::from_millis(3_000),
            part: 1,
            reason: EndReason::Closed,
            initiated_forward: true,
            ways: [out, WayCounts::default()],
            errors: 2,
        };
        assert_eq!(
            flow_line(&record),
            "{\"event\":\"flow\",\"start\":1.5,\"end\":3.0,\"duration\":2.5,\"reason\":\"closed\",\
             \"part\":1,\"protocol\":6,\"inner\":\"10.0.0.5\",\"inner_port\":4000,\
             \"outer\":\"198.51.100.1\",\"outer_port\":80,\"vlan\":[7],\"initiator\":\"inner\",\
             \"out\":{\"packets\":3,\"bytes\":172,\"flags\":\"FSA\",\"ttl\":[0,0]},\
             \"in\":{\"packets\":0,\"bytes\":0},\"icmp_errors\":2}"
        );
        let ping = FlowKey::v4((a, 9), (b, 9), 1, 5 << 12 | 6);
        let line = flow_line(&FlowRecord { key: ping, errors: 0, ..record });
        assert!(line.contains("\"icmp_id\":9,\"vlan\":[5,6]"), "{line}");
        assert!(!line.contains("port") && !line.contains("flags"), "{line}");
    }
}
