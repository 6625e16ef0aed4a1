//! A system under one kind of load.

use rheostat_measure::record::{Column, TableRow};
use serde::Serialize;

/// A system under one kind of load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThroughputRow {
    /// Always: nothing here was measured on lanes.
    pub simulated: bool,
    /// `rss`, `rsspp`, `disaggregation`, `balance` or `dyssect`.
    pub system: String,
    /// Shards.
    pub shards: usize,
    /// The exponent of Zipf's law.
    pub zipf: f64,
    /// Packets of a flow that come in a row.
    pub burst: u32,
    /// Packets that left, in Gb/s.
    pub gbps: f64,
    /// Packets that left ÷ packets that arrived.
    pub delivered: f64,
    /// Shards that moved, the time before the measurement left out.
    pub migrations: u64,
    /// Flows that were handed to an offloading lane.
    pub offloaded: u64,
    /// Packets that were lost, doubled or overtaken; anything but 0 is a fault of the simulation.
    pub faults: u64,
}

impl TableRow for ThroughputRow {
    const COLUMNS: &'static [Column<ThroughputRow>] = &[
        Column::name("system", 15, |row| &row.system),
        Column::count("shards", 6, |row| row.shards as u64),
        Column::number("zipf", 5, 1, |row| row.zipf),
        Column::count("burst", 6, |row| row.burst.into()),
        Column::number("Gb/s", 7, 2, |row| row.gbps),
        Column::percent("delivered", 10, 2, |row| row.delivered),
        Column::count("moves", 6, |row| row.migrations),
        Column::count("flows", 7, |row| row.offloaded),
    ];
}

/// What Dyssect with 16 shards delivers beside RSS++ with 128, as in the thesis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// The exponent of Zipf's law.
    pub zipf: f64,
    /// Packets of a flow that come in a row.
    pub burst: u32,
    /// The one's throughput ÷ the other's.
    pub throughput: f64,
    /// The one's moves and the other's.
    pub migrations: (u64, u64),
}

/// For each kind of load of which there are both, what Dyssect gains.
pub fn gains(rows: &[ThroughputRow]) -> Vec<Gain> {
    let gain = |dyssect: &ThroughputRow| {
        let alike = |row: &&ThroughputRow| (row.zipf, row.burst) == (dyssect.zipf, dyssect.burst);
        let mut others = rows.iter().filter(alike);
        let rsspp = others.find(|row| row.system == "rsspp" && row.shards == 128)?;
        Some(Gain {
            zipf: dyssect.zipf,
            burst: dyssect.burst,
            throughput: dyssect.gbps / rsspp.gbps,
            migrations: (dyssect.migrations, rsspp.migrations),
        })
    };
    let of = |row: &&ThroughputRow| row.system == "dyssect" && row.shards == 16;
    rows.iter().filter(of).filter_map(gain).collect()
}
