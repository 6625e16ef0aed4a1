//! Shards of a run, as the control socket shows them.

use serde::{Deserialize, Serialize};

use super::listing::{Column, ListingRow, SortKey};

/// A shard since the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardLine {
    /// Its number.
    pub shard: u16,
    /// The lane that owns it; while it moves, its next. Where the lanes of a queue own shards together, one of them.
    pub lane: u16,
    /// Whether it is moving.
    pub moving: bool,
    /// How many times it was moved.
    pub moves: u64,
    /// Packets of the shard that lanes have processed; none where they are not counted by shard.
    pub packets: Option<u64>,
    /// Their bytes; none as for `packets`.
    pub bytes: Option<u64>,
    /// Its share of the packets of all shards, 0 to 1; none as for `packets`.
    pub load: Option<f64>,
    /// Flows in its table; none where its lane has not answered.
    pub flows: Option<u64>,
}

fn or_dash(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn key_of(value: Option<u64>) -> SortKey {
    value.map_or_else(SortKey::none, SortKey::number)
}

impl ListingRow for ShardLine {
    const COLUMNS: &'static [Column<ShardLine>] = &[
        Column::right("shard", |line| line.shard.to_string(), |line| SortKey::number(line.shard)),
        Column::right("lane", |line| line.lane.to_string(), |line| SortKey::number(line.lane)),
        Column::right(
            "load",
            |line| line.load.map_or_else(|| "-".to_owned(), |load| format!("{:.1}%", load * 100.0)),
            |line| line.load.map_or_else(SortKey::none, SortKey::real),
        ),
        Column::right("packets", |line| or_dash(line.packets), |line| key_of(line.packets)),
        Column::hidden("bytes", |line| key_of(line.bytes)),
        Column::right("flows", |line| or_dash(line.flows), |line| key_of(line.flows)),
        Column::right("moves", |line| line.moves.to_string(), |line| SortKey::number(line.moves)),
        Column::left(
            "moving",
            |line| if line.moving { "yes" } else { "-" }.to_owned(),
            |line| SortKey::number(u64::from(line.moving)),
        ),
    ];

    fn id(&self) -> SortKey {
        SortKey::number(self.shard)
    }
}
