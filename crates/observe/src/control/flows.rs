//! The flows of a running chain, as the control socket shows them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use rheostat_packet::FlowKey;
use rheostat_run::listing::{FlowRecord, ListedFields, Value};
use serde::{Deserialize, Serialize};

use super::listing::{Column, ListingRow, SortKey};
use super::protocol_name::protocol_name;

/// Which flows to list, beside what the filter states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FlowsRequest {
    /// On this lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<u16>,
    /// Of this shard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<u16>,
    /// In this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// Which flows to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DeleteFlowsRequest {
    /// Those that this expression means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// All of them, where there is no filter.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// On this lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<u16>,
    /// Of this shard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<u16>,
    /// So many at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The ends of a flow on one side of a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowEnds {
    /// The end that has opened the flow; where that is not known, the end inside.
    pub source: SocketAddr,
    /// The other end.
    pub destination: SocketAddr,
}

/// What a function reports of a flow or of an entry: values by their names.
pub type FieldMap = BTreeMap<String, serde_json::Value>;

/// A flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowLine {
    /// The protocol: `TCP`, `UDP`, or its number where it has no common name.
    pub protocol: String,
    /// Its ends, as packets from the side of the source have them. Ports are 0 for protocols without; of ICMP queries, both are the
    /// identifier.
    #[serde(flatten)]
    pub ends: FlowEnds,
    /// Which end has opened it, `inside` or `outside`; none if no function of the chain knows.
    pub opened_by: Option<String>,
    /// The ends on the other side of a translation, if it is translated.
    pub translated: Option<FlowEnds>,
    /// The VLAN identifiers, outer « 12 | inner; 0 without tags.
    #[serde(default)]
    pub vlan: u32,
    /// The state, as the first function of the chain that has one reports it.
    pub state: Option<String>,
    /// Seconds until the flow ends without a packet; none if it has no time-out. A lower bound for a flow that is away.
    pub timeout: Option<f64>,
    /// Seconds since the first packet; none if no function of the chain notes it.
    pub age: Option<f64>,
    /// Packets in both directions; none if no function of the chain counts them.
    pub packets: Option<u64>,
    /// Bytes of IP in both directions; as `packets`.
    pub bytes: Option<u64>,
    /// The lane that has the shard.
    pub lane: u16,
    /// The shard.
    pub shard: u16,
    /// Whether another lane works on the flow: its functions' states are not listed then.
    pub away: bool,
    /// The rule that admits the flow, if the chain has a function with rules: its name, or its number from 1.
    pub rule: Option<String>,
    /// The functions that have a state of the flow, with all that they list of it.
    pub functions: BTreeMap<String, FieldMap>,
}

impl FlowLine {
    /// The line of a record.
    pub fn of(record: &FlowRecord) -> FlowLine {
        let forward = record.opened_forward.unwrap_or(true);
        let named = |name: &str| {
            let each = record.functions.iter();
            each.filter_map(|of| of.fields.get(name)).find_map(|value| match value {
                Value::Text(text) => Some(text.to_string()),
                _ => None,
            })
        };
        let functions = record.functions.iter();
        let functions = functions.map(|of| (of.function.to_owned(), field_map(&of.fields)));
        FlowLine {
            protocol: protocol_name(record.key.protocol()),
            ends: FlowEnds::of(&record.key, forward),
            opened_by: record.opened_forward.map(|forward| side(forward).to_owned()),
            translated: record.alias.map(|alias| FlowEnds::of(&alias, forward)),
            vlan: record.key.zone(),
            state: named("state"),
            timeout: record.left.map(seconds),
            age: record.age.map(seconds),
            packets: record.counted.map(|(packets, _)| packets),
            bytes: record.counted.map(|(_, bytes)| bytes),
            lane: record.lane.0,
            shard: record.shard.0,
            away: record.is_away,
            rule: named("rule"),
            functions: functions.collect(),
        }
    }

    /// The ends on the other side of a translation, as far as they differ: `203.0.113.1:6000 ↔` a server, say.
    fn translation(&self) -> Option<String> {
        let FlowEnds { source, destination } = self.translated?;
        let parts = [(self.ends.source, source), (self.ends.destination, destination)];
        let changed = parts.into_iter().filter(|(before, after)| before != after);
        let changed: Vec<_> = changed.map(|(_, after)| after.to_string()).collect();
        Some(changed.join(" "))
    }
}

impl FlowEnds {
    fn of(key: &FlowKey, forward: bool) -> FlowEnds {
        let key = if forward { *key } else { key.reversed() };
        FlowEnds {
            source: SocketAddr::new(key.first(), key.first_port()),
            destination: SocketAddr::new(key.second(), key.second_port()),
        }
    }
}

fn side(forward: bool) -> &'static str {
    if forward { "inside" } else { "outside" }
}

/// Seconds to a millisecond.
pub(super) fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000.0).round() / 1_000.0
}

/// The values of a function by their names.
pub(super) fn field_map(fields: &ListedFields) -> FieldMap {
    let json = |value: &Value| match value {
        Value::Text(text) => text.as_ref().into(),
        Value::Number(number) => (*number).into(),
        Value::Flag(flag) => (*flag).into(),
        Value::Address(address) => address.to_string().into(),
        Value::Endpoint(endpoint) => endpoint.to_string().into(),
        Value::Duration(duration) => seconds(*duration).into(),
    };
    fields.values().iter().map(|(name, value)| ((*name).to_owned(), json(value))).collect()
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

fn text_key(text: Option<&str>) -> SortKey {
    text.map_or_else(SortKey::none, SortKey::text)
}

impl ListingRow for FlowLine {
    const COLUMNS: &'static [Column<FlowLine>] = &[
        Column::left(
            "protocol",
            |line| line.protocol.clone(),
            |line| SortKey::text(&line.protocol),
        ),
        Column::left(
            "source",
            |line| line.ends.source.to_string(),
            |line| SortKey::endpoint(line.ends.source),
        ),
        Column::left(
            "destination",
            |line| line.ends.destination.to_string(),
            |line| SortKey::endpoint(line.ends.destination),
        ),
        Column::left(
            "translated",
            |line| or_dash(line.translation()),
            |line| text_key(line.translation().as_deref()),
        ),
        Column::left(
            "state",
            |line| if line.away { "away".to_owned() } else { or_dash(line.state.clone()) },
            |line| text_key(line.state.as_deref()),
        ),
        Column::right(
            "timeout",
            |line| or_dash(line.timeout.map(|seconds| format!("{seconds:.0}s"))),
            |line| line.timeout.map_or_else(SortKey::none, SortKey::real),
        ),
        Column::right(
            "age",
            |line| or_dash(line.age.map(|seconds| format!("{seconds:.0}s"))),
            |line| line.age.map_or_else(SortKey::none, SortKey::real),
        ),
        Column::right(
            "packets",
            |line| or_dash(line.packets.map(|packets| packets.to_string())),
            |line| line.packets.map_or_else(SortKey::none, SortKey::number),
        ),
        Column::right(
            "bytes",
            |line| or_dash(line.bytes.map(|bytes| bytes.to_string())),
            |line| line.bytes.map_or_else(SortKey::none, SortKey::number),
        ),
        Column::right("lane", |line| line.lane.to_string(), |line| SortKey::number(line.lane)),
        Column::right("shard", |line| line.shard.to_string(), |line| SortKey::number(line.shard)),
        Column::left(
            "rule",
            |line| or_dash(line.rule.clone()),
            |line| text_key(line.rule.as_deref()),
        ),
        Column::hidden("opened_by", |line| text_key(line.opened_by.as_deref())),
        Column::hidden("vlan", |line| SortKey::number(line.vlan)),
    ];

    fn id(&self) -> SortKey {
        let ends =
            SortKey::endpoint(self.ends.source).and(SortKey::endpoint(self.ends.destination));
        ends.and(SortKey::text(&self.protocol)).and(SortKey::number(self.vlan))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use rheostat_base::{LaneId, ShardId, Time};
    use rheostat_run::listing::FunctionFields;

    use super::*;
    use crate::control::TextTable;

    fn record() -> FlowRecord {
        let (inner, external) = (Ipv4Addr::new(10, 0, 0, 5), Ipv4Addr::new(203, 0, 113, 1));
        let remote = (Ipv4Addr::new(192, 0, 2, 1), 443);
        let mut fields = ListedFields::default();
        fields.text("state", "established");
        fields.text("rule", "web");
        fields.endpoint("inside", (inner, 5_000));
        fields.duration("idle", Duration::from_millis(1_500));
        fields.flag("hairpin", true);
        fields.began(Time::ZERO);
        FlowRecord {
            key: FlowKey::v4((inner, 5_000), remote, 6, 0),
            alias: Some(FlowKey::v4((external, 6_000), remote, 6, 0)),
            lane: LaneId(1),
            shard: ShardId(97),
            left: Some(Duration::from_millis(299_750)),
            is_away: false,
            opened_forward: Some(true),
            age: Some(Duration::from_secs(12)),
            counted: Some((10, 5_200)),
            functions: vec![FunctionFields { function: "nat", fields }],
        }
    }

    #[test]
    fn a_flow_is_shown_from_its_opener_to_the_other_end() {
        let line = FlowLine::of(&record());
        let text = TextTable(std::slice::from_ref(&line)).to_string();
        let row = text.lines().nth(1).unwrap();
        let cells: Vec<_> = row.split_whitespace().collect();
        assert_eq!(
            cells,
            [
                "TCP",
                "10.0.0.5:5000",
                "192.0.2.1:443",
                "203.0.113.1:6000",
                "established",
                "300s",
                "12s",
                "10",
                "5200",
                "1",
                "97",
                "web"
            ]
        );
        let json = serde_json::to_value(&line).unwrap();
        assert_eq!(json["source"], "10.0.0.5:5000");
        assert_eq!(json["translated"]["source"], "203.0.113.1:6000");
        assert_eq!(json["functions"]["nat"]["idle"], 1.5);
        assert_eq!(json["functions"]["nat"]["hairpin"], true);
        assert_eq!(json["timeout"], 299.75);
        assert_eq!(serde_json::from_value::<FlowLine>(json).unwrap(), line);
    }

    #[test]
    fn a_flow_from_outside_has_its_source_there() {
        let record = FlowRecord { opened_forward: Some(false), ..record() };
        let line = FlowLine::of(&record);
        assert_eq!(line.ends.source, "192.0.2.1:443".parse().unwrap());
        assert_eq!(line.opened_by.as_deref(), Some("outside"));
        assert_eq!(line.translation().as_deref(), Some("203.0.113.1:6000"));
    }

    #[test]
    fn a_flow_of_which_little_is_known_has_dashes() {
        let record = FlowRecord {
            opened_forward: None,
            alias: None,
            age: None,
            counted: None,
            left: None,
            is_away: true,
            functions: Vec::new(),
            ..record()
        };
        let line = FlowLine::of(&record);
        let text = TextTable(&[line]).to_string();
        let cells: Vec<_> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(cells[3..9], ["-", "away", "-", "-", "-", "-"]);
    }
}
