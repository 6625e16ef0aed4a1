//! `rheo bench sharing`: what it costs to share flow state between lanes, and to spray packets.
//!
//! Lanes take packets of one sequence, do some work for each, and look its flow up. Either packets
//! of a flow all come to one lane, which owns the flow's table; or there is one table for all
//! lanes, behind locks; or packets are sprayed on top of that. The same sequence is measured in
//! each way, in turn, so that what drifts with time falls on all alike. Order is that in which packets
//! leave. After Barbette et al., RSS++, CoNEXT 2019: sections 5.5 and 5.6, Figures 15 and 16.

mod arrivals;
mod lane;
mod row;
mod sink;
mod tables;

use std::{fmt, thread};

use rheostat_base::Clock;

use crate::error::BenchError;
use crate::pace::LoadPace;
use crate::testbed::Cores;
pub(crate) use arrivals::SharingArrivals;
use lane::{SharingLane, Spent};
pub use row::SharingRow;
use sink::Departures;
use tables::{OwnTables, SharedFlowState};
pub(crate) use tables::{SharedTables, Tables};

/// How lanes share flow state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// A table per shard, each owned by the lane that gets all of the shard's packets.
    PerShard,
    /// Packets come to the same lanes, but there is one table, behind 1,024 locks.
    Shared,
    /// The same table, and any lane may get any packet: Sprayer.
    Spray,
}

/// What is done with a packet's flow, beside the work (RSS++, Figure 15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharingAction {
    /// Nothing: the flow is not even looked up.
    Nothing,
    /// Its state is read.
    Read,
    /// Its state is written.
    Write,
    /// Its state is written, and no other lane works on the flow meanwhile: where lanes share flows, a lock
    /// of the flow is held over the work. A lane that owns its flows needs none.
    Ordered,
}

/// Measures systems side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharingBench {
    /// Windows per row; the median counts. One more comes first and does not count.
    pub windows: usize,
    /// Packets per window.
    pub packets: u32,
    /// Pseudo-random numbers drawn per packet, which stand for its processing; one takes a few
    /// cycles (RSS++ 5.5 and 5.6: 100).
    pub work: u32,
    /// Packets that each lane's queue holds. They come faster than they are processed, so that lanes are
    /// apart by as much as queues allow, and it is this that decides how much spraying reorders.
    pub queue: u32,
}

impl Default for SharingBench {
    fn default() -> SharingBench {
        SharingBench { windows: 9, packets: 1 << 18, work: 100, queue: 512 }
    }
}

/// What of the flows is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharingSelection {
    /// Systems; [`System::Spray`] only where there are several lanes.
    pub systems: Vec<System>,
    /// Actions.
    pub actions: Vec<SharingAction>,
    /// Numbers of flows, each packet being of any with the same probability.
    pub flows: Vec<u32>,
    /// Numbers of lanes.
    pub lanes: Vec<usize>,
}

impl System {
    /// All of them.
    pub const ALL: [System; 3] = [System::PerShard, System::Shared, System::Spray];

    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            System::PerShard => "per-shard",
            System::Shared => "shared",
            System::Spray => "spray",
        }
    }
}

impl SharingAction {
    /// All of them.
    pub const ALL: [SharingAction; 4] =
        [SharingAction::Nothing, SharingAction::Read, SharingAction::Write, SharingAction::Ordered];

    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            SharingAction::Nothing => "nothing",
            SharingAction::Read => "read",
            SharingAction::Write => "write",
            SharingAction::Ordered => "ordered",
        }
    }

    /// Whether the flow's state is written, so that its packets are counted.
    fn writes(self) -> bool {
        matches!(self, SharingAction::Write | SharingAction::Ordered)
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl SharingBench {
    /// Measures all that is selected and calls `done` for each row.
    ///
    /// # Errors
    /// [`BenchError`] when there are fewer cores than lanes, no memory, or packets were not counted
    /// exactly once.
    pub fn run(
        &self,
        selection: &SharingSelection,
        mut done: impl FnMut(&SharingRow),
    ) -> Result<Vec<SharingRow>, BenchError> {
        let mut rows = Vec::new();
        let clock = Clock::new();
        for &lanes in &selection.lanes {
            for &flows in &selection.flows {
                let arrivals = SharingArrivals::draw(flows, self.packets, lanes)?;
                for &action in &selection.actions {
                    let systems = selection.systems.iter().copied();
                    let systems = systems.filter(|system| *system != System::Spray || lanes > 1);
                    for row in self.rows(&arrivals, systems.collect(), action, &clock)? {
                        done(&row);
                        rows.push(row);
                    }
                }
            }
        }
        Ok(rows)
    }

    /// The rows of some systems, measured in turn.
    fn rows(
        &self,
        arrivals: &SharingArrivals,
        systems: Vec<System>,
        action: SharingAction,
        clock: &Clock,
    ) -> Result<Vec<SharingRow>, BenchError> {
        let testbeds =
            systems.into_iter().map(|system| SharingTestbed::new(system, arrivals, action));
        let mut testbeds = testbeds.collect::<Result<Vec<_>, _>>()?;
        let mut windows = vec![Vec::new(); testbeds.len()];
        for round in 0..=self.windows {
            for turn in 0..testbeds.len() {
                // Each system begins in its turn.
                let system = (round + turn) % testbeds.len();
                let window = testbeds[system].window(arrivals, round, action, self, clock)?;
                if round > 0 {
                    windows[system].push(window);
                }
            }
        }
        if action.writes() {
            let passed = arrivals.packets() * (self.windows as u64 + 1);
            testbeds.iter_mut().try_for_each(|testbed| testbed.check(arrivals, passed))?;
        }
        let own = testbeds.iter().position(|testbed| testbed.system == System::PerShard);
        let row = |(index, testbed): (usize, &SharingTestbed)| {
            let own = own.filter(|own| *own != index).map(|own| windows[own].as_slice());
            SharingRow::new(testbed.system, action, arrivals, &windows[index], own)
        };
        Ok(testbeds.iter().enumerate().map(row).collect())
    }
}

/// What one window came to.
#[derive(Clone, Copy, Debug)]
struct SharingWindow {
    packets: u64,
    /// From the first lane's start to the last one's end, in nanoseconds.
    elapsed: u64,
    /// Of all lanes together.
    spent: Spent,
    /// Packets that left after one of their flow that came later.
    reordered: u64,
}

/// A system with its tables.
struct SharingTestbed {
    system: System,
    tables: SharingKind,
}

enum SharingKind {
    /// By lane.
    Own(Vec<OwnTables>),
    Shared(SharedTables),
}

impl SharingTestbed {
    fn new(
        system: System,
        arrivals: &SharingArrivals,
        action: SharingAction,
    ) -> Result<SharingTestbed, BenchError> {
        let tables = match system {
            System::PerShard => SharingKind::Own(OwnTables::for_lanes(arrivals)?),
            System::Shared | System::Spray => {
                SharingKind::Shared(SharedTables::new(arrivals, action)?)
            }
        };
        Ok(SharingTestbed { system, tables })
    }

    /// Makes sure that the flows have counted each of the packets that passed, once.
    fn check(&mut self, arrivals: &SharingArrivals, passed: u64) -> Result<(), BenchError> {
        let flows = arrivals.flows.iter();
        let packets = |state: &mut SharedFlowState| state.packets();
        let counted = match &mut self.tables {
            SharingKind::Own(lanes) => {
                let count = lanes.len();
                flows.map(|flow| (&mut lanes[flow.shard % count]).with(flow, packets)).sum()
            }
            SharingKind::Shared(tables) => flows.map(|flow| (&*tables).with(flow, packets)).sum(),
        };
        let system = self.system.name();
        if counted == passed {
            Ok(())
        } else {
            Err(BenchError::Miscounted { system, counted, passed })
        }
    }

    /// Lets the whole sequence pass once.
    fn window(
        &mut self,
        arrivals: &SharingArrivals,
        round: usize,
        action: SharingAction,
        bench: &SharingBench,
        clock: &Clock,
    ) -> Result<SharingWindow, BenchError> {
        let packets = arrivals.packets();
        let queues = match self.system {
            System::PerShard | System::Shared => &arrivals.by_shard,
            System::Spray => &arrivals.sprayed,
        };
        let lane = |lane| SharingLane {
            lane,
            queue: &queues[lane],
            flows: &arrivals.flows,
            first: round as u64 * packets,
            action,
            work: bench.work,
            clock,
        };
        let lanes = (0..queues.len()).map(lane);
        match &mut self.tables {
            SharingKind::Own(tables) => {
                pass(lanes.zip(tables.iter_mut()).collect(), arrivals, bench.queue, clock)
            }
            SharingKind::Shared(tables) => {
                let tables: &SharedTables = tables;
                pass(lanes.map(|lane| (lane, tables)).collect(), arrivals, bench.queue, clock)
            }
        }
    }
}

/// Runs the lanes, each on a core of its own.
fn pass<T: Tables + Send>(
    lanes: Vec<(SharingLane<'_>, T)>,
    arrivals: &SharingArrivals,
    queue: u32,
    clock: &Clock,
) -> Result<SharingWindow, BenchError> {
    let cores = Cores::of_lanes(0, lanes.len())?;
    let pace = LoadPace::new(lanes.len(), queue);
    let passed = thread::scope(|scope| {
        let lanes = lanes.into_iter().zip(cores.as_slice().iter().copied());
        let workers: Vec<_> = lanes
            .map(|((lane, tables), core)| {
                let pace = &pace;
                scope.spawn(move || lane.run(tables, core, pace))
            })
            .collect();
        let ends = workers.into_iter().map(|worker| worker.join().expect("a lane ends"));
        ends.collect::<Result<Vec<_>, _>>()
    })?;
    let started = passed.iter().map(|passed| passed.started).min().expect("there are lanes");
    let ended = passed.iter().map(|passed| passed.ended).max().expect("there are lanes");
    let spent = passed.iter().map(|passed| passed.spent).sum();
    let departures: Vec<Departures<'_>> =
        passed.into_iter().map(|passed| passed.departures).collect();
    let reordered = sink::reordered(&departures, arrivals.flows.len());
    let elapsed = clock.nanos_between(started, ended);
    Ok(SharingWindow { packets: arrivals.packets(), elapsed, spent, reordered })
}
