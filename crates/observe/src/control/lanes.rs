//! Lanes of a run, as the control socket shows them.

use rheostat_run::Sample;
use serde::{Deserialize, Serialize};

use super::listing::{Column, ListingRow, SortKey};

/// A lane since the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneLine {
    /// Its number.
    pub lane: u16,
    /// The core that its worker runs on; none where workers take turns at lanes, or are not pinned.
    pub core: Option<u16>,
    /// Busy time ÷ time.
    pub load: f64,
    /// Polls that found work ÷ polls.
    pub busy: f64,
    /// Packets received from its queues.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Flows that it holds.
    pub flows: u64,
    /// Shards that it owns.
    pub shards: u64,
    /// Packets now waiting.
    pub queued: QueuedPackets,
    /// How it is polled, `busy`, `metronome` or `interrupt`.
    pub polling: Option<String>,
}

/// Packets that wait in a lane, by what they wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedPackets {
    /// The first fragment of their datagram.
    pub fragments: u64,
    /// The link address of their next hop.
    pub neighbour: u64,
    /// Their shard or their flow, which comes from another lane.
    pub shard: u64,
    /// A pool that works for them.
    pub pool: u64,
}

impl QueuedPackets {
    fn total(&self) -> u64 {
        self.fragments + self.neighbour + self.shard + self.pool
    }
}

impl LaneLine {
    /// The lanes of a sample. `cores` has the core of each lane that keeps to one, and `shards` the number of shards of each lane.
    pub fn of(sample: &Sample, cores: &[Option<u16>], shards: &[u64]) -> Vec<LaneLine> {
        let polling = &sample.polling.lanes;
        let line = |(number, lane): (usize, &rheostat_run::LaneSample)| LaneLine {
            lane: number as u16,
            core: cores.get(number).copied().flatten(),
            load: lane.load(),
            busy: lane.busy_polls as f64 / (lane.busy_polls + lane.idle_polls).max(1) as f64,
            packets: lane.received,
            bytes: lane.received_bytes,
            sent: lane.sent,
            dropped: lane.dropped_total(),
            flows: lane.flows_live(),
            shards: shards.get(number).copied().unwrap_or(0),
            queued: QueuedPackets {
                fragments: lane.held,
                neighbour: lane.waiting,
                shard: lane.on_hold,
                pool: lane.at_pool,
            },
            polling: polling.get(number).map(|polling| polling.mode.to_string()),
        };
        sample.lanes.iter().enumerate().map(line).collect()
    }
}

fn per_cent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

impl ListingRow for LaneLine {
    const COLUMNS: &'static [Column<LaneLine>] = &[
        Column::right("lane", |line| line.lane.to_string(), |line| SortKey::number(line.lane)),
        Column::right(
            "core",
            |line| line.core.map_or_else(|| "-".to_owned(), |core| core.to_string()),
            |line| line.core.map_or_else(SortKey::none, SortKey::number),
        ),
        Column::right("load", |line| per_cent(line.load), |line| SortKey::real(line.load)),
        Column::right("busy", |line| per_cent(line.busy), |line| SortKey::real(line.busy)),
        Column::right(
            "packets",
            |line| line.packets.to_string(),
            |line| SortKey::number(line.packets),
        ),
        Column::hidden("bytes", |line| SortKey::number(line.bytes)),
        Column::right("sent", |line| line.sent.to_string(), |line| SortKey::number(line.sent)),
        Column::right(
            "dropped",
            |line| line.dropped.to_string(),
            |line| SortKey::number(line.dropped),
        ),
        Column::right("flows", |line| line.flows.to_string(), |line| SortKey::number(line.flows)),
        Column::right(
            "shards",
            |line| line.shards.to_string(),
            |line| SortKey::number(line.shards),
        ),
        Column::right(
            "queued",
            |line| line.queued.total().to_string(),
            |line| SortKey::number(line.queued.total()),
        ),
        Column::left(
            "polling",
            |line| line.polling.clone().unwrap_or_else(|| "-".to_owned()),
            |line| line.polling.as_deref().map_or_else(SortKey::none, SortKey::text),
        ),
    ];

    fn id(&self) -> SortKey {
        SortKey::number(self.lane)
    }
}
