//! The mappings of a running NAT, as the control socket shows them.

use std::net::SocketAddr;

use rheostat_run::listing::{EntryRecord, FlowRecord, ListedFields, Value};
use serde::{Deserialize, Serialize};

use super::flows::seconds;
use super::listing::{Column, ListingRow, SortKey};
use super::protocol_name::protocol_name;

/// Which mappings to list, beside what the filter states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MappingsRequest {
    /// With this external endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<SocketAddr>,
}

/// A mapping.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MappingLine {
    /// The protocol: `TCP`, `UDP`, or its number where it has no common name.
    pub protocol: String,
    /// The same as a number, which is not sent.
    #[serde(skip)]
    pub protocol_number: u8,
    /// The endpoint inside.
    pub inside: SocketAddr,
    /// The external endpoint that stands for it. Of ICMP queries, the port is the identifier.
    pub external: SocketAddr,
    /// The remote endpoint, of a mapping that serves one flow alone.
    pub peer: Option<SocketAddr>,
    /// Why there is the mapping: `shared` by the flows of the endpoint inside, `own` of one flow, or `forward` of the
    /// configuration.
    pub kind: String,
    /// `held` while a flow is open, `unanswered` while none has been answered, `over` when all are over, `lost` when another mapping
    /// has the port. None for a forward.
    pub state: Option<String>,
    /// The flows that it has.
    pub flows: Option<u64>,
    /// Seconds until it ends without a packet, where it ends with one flow; a shared mapping ends with the last of its flows.
    pub timeout: Option<f64>,
    /// The lane that has the shard; none for a forward.
    pub lane: Option<u16>,
    /// The shard; none for a forward.
    pub shard: Option<u16>,
}

impl MappingLine {
    /// The line of an entry of the NAT.
    pub fn of_entry(record: &EntryRecord) -> Option<MappingLine> {
        let fields = &record.fields;
        let protocol_number = number(fields, "protocol")?.try_into().ok()?;
        Some(MappingLine {
            protocol: protocol_name(protocol_number),
            protocol_number,
            inside: endpoint(fields, "inside")?,
            external: endpoint(fields, "outside")?,
            peer: None,
            kind: text(fields, "kind")?,
            state: text(fields, "state"),
            flows: number(fields, "flows"),
            timeout: None,
            lane: record.shard.map(|_| record.lane.0),
            shard: record.shard.map(|shard| shard.0),
        })
    }

    /// The line of a flow that has its external endpoint for itself; `None` for others.
    pub fn of_flow(record: &FlowRecord) -> Option<MappingLine> {
        let mut functions = record.functions.iter().map(|of| &of.fields);
        let nat = functions.find(|fields| text(fields, "mapping").as_deref() == Some("own"))?;
        Some(MappingLine {
            protocol: protocol_name(record.key.protocol()),
            protocol_number: record.key.protocol(),
            inside: endpoint(nat, "inside")?,
            external: endpoint(nat, "outside")?,
            peer: endpoint(nat, "peer"),
            kind: "own".to_owned(),
            state: text(nat, "state").map(|state| match state.as_str() {
                "answered" => "held".to_owned(),
                _ => state,
            }),
            flows: Some(1),
            timeout: record.left.map(seconds),
            lane: Some(record.lane.0),
            shard: Some(record.shard.0),
        })
    }
}

fn text(fields: &ListedFields, name: &str) -> Option<String> {
    match fields.get(name)? {
        Value::Text(text) => Some(text.to_string()),
        _ => None,
    }
}

fn number(fields: &ListedFields, name: &str) -> Option<u64> {
    match fields.get(name)? {
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

fn endpoint(fields: &ListedFields, name: &str) -> Option<SocketAddr> {
    match fields.get(name)? {
        Value::Endpoint(endpoint) => Some(*endpoint),
        _ => None,
    }
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

impl ListingRow for MappingLine {
    const COLUMNS: &'static [Column<MappingLine>] = &[
        Column::left(
            "protocol",
            |line| line.protocol.clone(),
            |line| SortKey::text(&line.protocol),
        ),
        Column::left(
            "external",
            |line| line.external.to_string(),
            |line| SortKey::endpoint(line.external),
        ),
        Column::left(
            "inside",
            |line| line.inside.to_string(),
            |line| SortKey::endpoint(line.inside),
        ),
        Column::left(
            "peer",
            |line| or_dash(line.peer),
            |line| line.peer.map_or_else(SortKey::none, SortKey::endpoint),
        ),
        Column::left("kind", |line| line.kind.clone(), |line| SortKey::text(&line.kind)),
        Column::left(
            "state",
            |line| or_dash(line.state.as_ref()),
            |line| line.state.as_deref().map_or_else(SortKey::none, SortKey::text),
        ),
        Column::right(
            "flows",
            |line| or_dash(line.flows),
            |line| line.flows.map_or_else(SortKey::none, SortKey::number),
        ),
        Column::right(
            "timeout",
            |line| or_dash(line.timeout.map(|seconds| format!("{seconds:.0}s"))),
            |line| line.timeout.map_or_else(SortKey::none, SortKey::real),
        ),
        Column::right(
            "lane",
            |line| or_dash(line.lane),
            |line| line.lane.map_or_else(SortKey::none, SortKey::number),
        ),
        Column::right(
            "shard",
            |line| or_dash(line.shard),
            |line| line.shard.map_or_else(SortKey::none, SortKey::number),
        ),
    ];

    fn id(&self) -> SortKey {
        let ends = SortKey::endpoint(self.external).and(SortKey::endpoint(self.inside));
        let ends = ends.and(SortKey::text(&self.protocol)).and(SortKey::text(&self.kind));
        self.peer.into_iter().fold(ends, |ends, peer| ends.and(SortKey::endpoint(peer)))
    }
}
