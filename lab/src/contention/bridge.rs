//! A learning bridge between stations that all talk (NFOS, section 5.4).

use std::time::Duration;

use rheostat_state::object::{Allocator, Lease, Map, Recipe};
use rheostat_state::txn::{Objects, Outcome, Txn};

use super::Pattern;
use super::pattern::{SEED, drawn, mixed};

/// Stations on either side together.
const STATIONS: u64 = 512;
/// Pairs of stations that talk, for each lane.
const PAIRS: u64 = 64;
/// How long an entry lives (section 5.4: two minutes).
const AGEING: Duration = Duration::from_secs(120);

/// Learns where stations are, and looks up where frames go.
#[derive(Debug)]
pub struct Bridge {
    objects: Objects,
    table: Map<u64, Lease>,
    entries: Allocator<u64>,
}

impl Bridge {
    /// A bridge whose entries are refreshed when the last time is this long ago.
    pub fn new(lanes: usize, refresh_interval: Duration) -> Bridge {
        let objects = Objects::seeded(lanes, SEED);
        let stations = STATIONS as usize;
        let table = Map::new(&objects, "bridge.table", 2 * stations);
        // Each lane's pool can hold all stations, so that none has to take from another's.
        let entries = Allocator::new(
            &objects,
            "bridge.entries",
            2 * stations * lanes,
            &[AGEING],
            refresh_interval,
        );
        objects.set_by(entries.id(), Recipe::RaiseRefreshInterval, "refresh_interval");
        Bridge { objects, table, entries }
    }

    fn learn(&self, txn: &mut Txn, station: u64) -> Outcome<()> {
        if let Some(lease) = self.table.get(txn, &station)?
            && self.entries.refresh(txn, lease, 0)?
        {
            return Ok(());
        }
        if let Some(lease) = self.entries.allocate(txn, station, 0)? {
            // A full table is not learnt into.
            let _ = self.table.set(txn, station, lease)?;
        }
        Ok(())
    }

    /// The port of a station; `None` floods.
    fn look_up(&self, txn: &mut Txn, station: u64) -> Outcome<Option<u64>> {
        match self.table.get(txn, &station)? {
            Some(lease) => self.entries.get(txn, lease),
            None => Ok(None),
        }
    }
}

impl Pattern for Bridge {
    fn objects(&self) -> &Objects {
        &self.objects
    }

    fn interval(&self) -> Duration {
        Duration::from_nanos(250)
    }

    fn warm_up(&self) -> u64 {
        // Until each lane has seen all of its pairs, with a probability that leaves nothing to wish for.
        20 * PAIRS
    }

    fn packet(&self, txn: &mut Txn, number: u64) -> Outcome<()> {
        // All frames of a pair come to one lane; a station is part of pairs of several.
        let pair = drawn(txn, drawn(txn, number) % PAIRS);
        let (source, destination) = (pair % STATIONS, mixed(pair) % STATIONS);
        self.learn(txn, source)?;
        std::hint::black_box(self.look_up(txn, destination)?);
        Ok(())
    }
}
