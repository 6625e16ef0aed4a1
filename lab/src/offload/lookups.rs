//! What it brings that the functions of a chain find their states by one lookup, and not by one each: Dyssect's state
//! disaggregation by itself, on one lane.
//!
//! Bursts of packets pass in the stages of a lane: all are hashed, the tables are asked for the lines, probed, and then each
//! function touches its state. Either one table has the states of all functions in each entry, or each function has a table of its
//! own.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use rheostat_base::Time;
use rheostat_kernel::core_set::pin_current_thread;
use rheostat_measure::record::{Column, TableRow};
use rheostat_measure::rounding::to_hundredths;
use rheostat_packet::{BURST, FlowKey};
use rheostat_state::{
    Arena, FlowHash, FlowHasher, FlowTable, Handle, Probe, StateLayout, TableConfig,
};
use rheostat_traffic::tuple_of;
use serde::Serialize;

use crate::error::BenchError;
use crate::testbed::{Cores, lanes};

/// Functions of the longest chain (thesis, section 5.1.1).
const FUNCTIONS: usize = 6;
const SHARDS: usize = 128;
/// Bursts that are timed together, and how often; both ways in turn, and the least time counts.
const BURSTS: u64 = 2_000;
const ROUNDS: u64 = 40;

/// A function's state of a flow.
type LookupState = [u64; 2];

/// Chains of so many functions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LookupRow {
    /// Functions.
    pub functions: usize,
    /// Flows, all alike.
    pub flows: u32,
    /// Nanoseconds per packet with one lookup for all functions.
    pub one_lookup_ns: f64,
    /// With one for each.
    pub lookup_each_ns: f64,
}

impl TableRow for LookupRow {
    const COLUMNS: &'static [Column<LookupRow>] = &[
        Column::count("functions", 9, |row| row.functions as u64),
        Column::text("one lookup", 11, |row| format!("{} ns", row.one_lookup_ns)),
        Column::text("a lookup each", 14, |row| format!("{} ns", row.lookup_each_ns)),
    ];
}

/// What one row is measured on.
struct Tables {
    /// By table, by shard.
    tables: Vec<Vec<FlowTable>>,
    /// By table, the states in it.
    states: Vec<Vec<Handle<LookupState>>>,
}

#[derive(Clone, Copy)]
struct LookupArrival {
    key: FlowKey,
    hash: FlowHash,
    shard: usize,
}

/// Measures chains of 1 to 6 functions on so many flows; `done` gets the rows.
///
/// # Errors
/// [`BenchError`] when there is no memory for the flows, or no core.
pub fn measure(flows: u32, mut done: impl FnMut(&LookupRow)) -> Result<(), BenchError> {
    pin_current_thread(Cores::available()?.first())?;
    let hasher = lanes::hasher(0);
    for functions in 1..=FUNCTIONS {
        let mut one = Tables::new(1, functions, flows, hasher)?;
        let mut each = Tables::new(functions, 1, flows, hasher)?;
        let (mut one_ns, mut each_ns) = (f64::MAX, f64::MAX);
        for round in 0..ROUNDS {
            one_ns = one_ns.min(one.pass(round, flows, &hasher));
            each_ns = each_ns.min(each.pass(round, flows, &hasher));
        }
        let packets = ROUNDS * BURSTS * BURST as u64;
        for (tables, system) in [(&mut one, "one lookup"), (&mut each, "a lookup each")] {
            let counted = tables.counted(flows, &hasher);
            let passed = packets * functions as u64;
            if counted != passed {
                return Err(BenchError::Miscounted { system, counted, passed });
            }
        }
        done(&LookupRow {
            functions,
            flows,
            one_lookup_ns: to_hundredths(one_ns),
            lookup_each_ns: to_hundredths(each_ns),
        });
    }
    Ok(())
}

impl Tables {
    fn new(
        tables: usize,
        states: usize,
        flows: u32,
        hasher: FlowHasher,
    ) -> Result<Tables, BenchError> {
        let mut all = Tables { tables: Vec::new(), states: Vec::new() };
        // Flows fall into shards by chance: eight standard deviations above the mean.
        let mean = f64::from(flows) / SHARDS as f64;
        let capacity = (mean + 8.0 * mean.sqrt() + 8.0) as usize;
        for _ in 0..tables {
            let mut layout = StateLayout::new();
            let handles: Result<Vec<_>, _> =
                (0..states).map(|_| layout.reserve::<LookupState>()).collect();
            let handles = handles?;
            let config = TableConfig { capacity, aliases: false };
            let mut shards = Arena::new(SHARDS, config, Arc::new(layout), hasher)?.into_tables();
            for flow in 0..flows {
                let LookupArrival { key, hash, shard } = arrival(flow, &hasher);
                let table = &mut shards[shard];
                let id = table.insert(hash, &key, Time::ZERO).expect("room for all flows");
                let mut flow = table.flow(id).expect("it was inserted");
                for state in &handles {
                    flow.init(*state, [0; 2]);
                }
                flow.set_deadline(Time::from_secs(1_000));
            }
            all.tables.push(shards);
            all.states.push(handles);
        }
        Ok(all)
    }

    /// Nanoseconds per packet.
    fn pass(&mut self, round: u64, flows: u32, hasher: &FlowHasher) -> f64 {
        let start = Instant::now();
        for burst in 0..BURSTS {
            self.pass_burst((round * BURSTS + burst) * BURST as u64, flows, hasher);
        }
        start.elapsed().as_nanos() as f64 / (BURSTS * BURST as u64) as f64
    }

    fn pass_burst(&mut self, first: u64, flows: u32, hasher: &FlowHasher) {
        let arrivals: [LookupArrival; BURST] =
            std::array::from_fn(|packet| arrival(flow_of(first + packet as u64, flows), hasher));
        for (tables, states) in self.tables.iter_mut().zip(&self.states) {
            for LookupArrival { hash, shard, .. } in &arrivals {
                tables[*shard].prefetch_hint().prefetch(*hash);
            }
            let probes: [Probe; BURST] = std::array::from_fn(|packet| {
                let LookupArrival { key, hash, shard } = &arrivals[packet];
                tables[*shard].probe(*hash, key.family())
            });
            for (LookupArrival { key, hash, shard }, probe) in arrivals.iter().zip(probes) {
                let mut flow = tables[*shard].find_flow(*hash, key, probe).expect("it exists");
                if flow.is_expired(Time::from_nanos(black_box(first))) {
                    continue;
                }
                for state in states {
                    let state = flow.state(*state).expect("it was initialised");
                    state[0] += 1;
                    state[1] = first;
                }
            }
        }
    }

    /// Packets that all functions have counted together.
    fn counted(&mut self, flows: u32, hasher: &FlowHasher) -> u64 {
        let mut counted = 0;
        for (tables, states) in self.tables.iter_mut().zip(&self.states) {
            for flow in 0..flows {
                let LookupArrival { key, hash, shard } = arrival(flow, hasher);
                let mut flow = tables[shard].find_flow(hash, &key, Probe::NONE).expect("it exists");
                counted += states
                    .iter()
                    .filter_map(|state| flow.state(*state).map(|state| state[0]))
                    .sum::<u64>();
            }
        }
        counted
    }
}

fn arrival(flow: u32, hasher: &FlowHasher) -> LookupArrival {
    let (client, server) = tuple_of(flow.into());
    let key = FlowKey::v4(client, server, 6, 0);
    let mixed = u64::from(flow).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    LookupArrival { key, hash: hasher.hash(&key), shard: (mixed >> 32) as usize % SHARDS }
}

/// One of `flows` flows, evenly.
fn flow_of(number: u64, flows: u32) -> u32 {
    let mixed = number.wrapping_mul(0xd134_2543_de82_ef95) >> 32;
    ((mixed * u64::from(flows)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    //! Timed: threads, clock.

    use super::*;

    #[test]
    fn both_ways_touch_the_states_of_all_functions() {
        let mut rows = Vec::new();
        measure(1_000, |row| rows.push(row.clone())).expect("rows");
        assert_eq!(rows.iter().map(|row| row.functions).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        assert!(rows.iter().all(|row| row.one_lookup_ns > 0.0 && row.lookup_each_ns > 0.0));
    }
}
