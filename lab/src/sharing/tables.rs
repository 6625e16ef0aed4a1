//! The flow tables: owned by lanes, or shared behind locks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheostat_base::Time;
use rheostat_state::{Arena, FlowTable, Handle, Probe, StateLayout, TableConfig};

use super::SharingAction;
use super::arrivals::{SHARDS, SharingArrivals, SharingFlow};
use crate::error::BenchError;

/// Locks of the shared table, as many as Linux has for its connections (`CONNTRACK_LOCKS`), each for the
/// flows whose hash falls to it.
const LOCKS: usize = 1_024;

/// What is known of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SharedFlowState {
    /// Its packets so far.
    packets: u64,
    /// The last position of any of them.
    latest: u64,
}

impl SharedFlowState {
    /// What a packet changes.
    pub(crate) fn pass(&mut self, position: u64) {
        self.packets += 1;
        self.latest = self.latest.max(position);
    }

    /// Packets so far.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }
}

/// Where a lane finds flows.
pub(crate) trait Tables: Sized {
    /// Looks a flow up and does something with its state.
    fn with<R>(&mut self, flow: &SharingFlow, act: impl FnOnce(&mut SharedFlowState) -> R) -> R;

    /// Does something for the flow with this number; no other lane does so meanwhile.
    fn alone(&mut self, number: u32, act: impl FnOnce(&mut Self));
}

/// The tables of one lane's shards.
#[derive(Debug)]
pub(super) struct OwnTables {
    /// Of shard `n` at `n ÷ lanes`.
    tables: Vec<FlowTable>,
    lanes: usize,
    state: Handle<SharedFlowState>,
}

impl OwnTables {
    /// The tables of all lanes, with all flows in them.
    pub(super) fn for_lanes(arrivals: &SharingArrivals) -> Result<Vec<OwnTables>, BenchError> {
        let (tables, state) = filled(arrivals, SHARDS, |flow| flow.shard)?;
        let lanes = arrivals.lanes();
        let empty = || OwnTables { tables: Vec::new(), lanes, state };
        let mut own: Vec<OwnTables> = std::iter::repeat_with(empty).take(lanes).collect();
        for (shard, table) in tables.into_iter().enumerate() {
            own[shard % lanes].tables.push(table);
        }
        Ok(own)
    }
}

impl Tables for &mut OwnTables {
    #[inline]
    fn with<R>(&mut self, flow: &SharingFlow, act: impl FnOnce(&mut SharedFlowState) -> R) -> R {
        look_up(&mut self.tables[flow.shard / self.lanes], self.state, flow, act)
    }

    /// Needs no lock: no other lane has the flow.
    #[inline]
    fn alone(&mut self, _number: u32, act: impl FnOnce(&mut Self)) {
        act(self);
    }
}

/// One table for all lanes. Which lock a flow is behind has nothing to do with its shard.
#[derive(Debug)]
pub(crate) struct SharedTables {
    segments: Vec<TableLine<Mutex<FlowTable>>>,
    /// By flow: the lane that holds the lock may work on it. Empty where flows are not locked.
    alone: Vec<TableLine<Mutex<()>>>,
    state: Handle<SharedFlowState>,
}

/// Has cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct TableLine<T>(T);

impl SharedTables {
    /// The table, with all flows in it.
    pub(crate) fn new(
        arrivals: &SharingArrivals,
        action: SharingAction,
    ) -> Result<SharedTables, BenchError> {
        let (tables, state) = filled(arrivals, LOCKS, segment)?;
        let segments = tables.into_iter().map(|table| TableLine(Mutex::new(table))).collect();
        let locks = if action == SharingAction::Ordered { arrivals.flows.len() } else { 0 };
        let alone = (0..locks).map(|_| TableLine(Mutex::new(()))).collect();
        Ok(SharedTables { segments, alone, state })
    }
}

impl Tables for &SharedTables {
    #[inline]
    fn with<R>(&mut self, flow: &SharingFlow, act: impl FnOnce(&mut SharedFlowState) -> R) -> R {
        look_up(&mut lock(&self.segments[segment(flow)].0), self.state, flow, act)
    }

    #[inline]
    fn alone(&mut self, number: u32, act: impl FnOnce(&mut Self)) {
        let _alone = lock(&self.alone[number as usize].0);
        act(self);
    }
}

/// The lock that a flow is behind: by bits of its hash that neither shards nor tables use.
fn segment(flow: &SharingFlow) -> usize {
    (flow.hash.0 >> 20) as usize % LOCKS
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A lane that panicked ends the measurement anyway.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tables in which every flow stands where `place` states.
fn filled(
    arrivals: &SharingArrivals,
    tables: usize,
    place: impl Fn(&SharingFlow) -> usize,
) -> Result<(Vec<FlowTable>, Handle<SharedFlowState>), BenchError> {
    let mut layout = StateLayout::new();
    let state = layout.reserve::<SharedFlowState>()?;
    let mut flows = vec![0; tables];
    for flow in &arrivals.flows {
        flows[place(flow)] += 1;
    }
    let capacity = flows.into_iter().max().unwrap_or(0).max(1);
    let config = TableConfig { capacity, aliases: false };
    let arena = Arena::new(tables, config, Arc::new(layout), arrivals.hasher)?;
    let mut tables = arena.into_tables();
    for flow in &arrivals.flows {
        let table = &mut tables[place(flow)];
        let id = table.insert(flow.hash, &flow.key, Time::ZERO).expect("room for the fullest");
        table.flow(id).expect("just made").init(state, SharedFlowState::default());
    }
    Ok((tables, state))
}

/// Looks up packet by packet in either system, so that they differ in the locks alone. A lane that owns
/// its tables could look a whole burst up in stages; one that shares them holds a lock meanwhile.
#[inline]
fn look_up<R>(
    table: &mut FlowTable,
    state: Handle<SharedFlowState>,
    flow: &SharingFlow,
    act: impl FnOnce(&mut SharedFlowState) -> R,
) -> R {
    let found = table.find_flow(flow.hash, &flow.key, Probe::default());
    let mut found = found.expect("all flows are in the table");
    act(found.state(state).expect("every flow has a state"))
}
