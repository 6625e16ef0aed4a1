//! `rheo bench txn`: what transactions on shared objects cost, beside what else keeps lanes apart.
//!
//! A packet reads one element of a vector, or four, and may write one (NFOS, section 5.3: a vector of
//! 10,000 elements, read or read and written once per packet, uniform or by Zipf's law). The same packets
//! are measured in each way, in turn, so that what drifts with time falls on all alike. Every write counts,
//! and the counts are held against the packets at the end.

mod engine;
mod lock;
mod packets;
mod row;
mod window;

use std::fmt;

use rheostat_base::Clock;

use crate::error::BenchError;
use crate::testbed::Cores;
use engine::{Engine, GlobalLock, Optimistic, SharedTable, TwoPhase, Unshared};
use packets::Packets;
pub use packets::Workload;
pub use row::TxnRow;
use window::TxnWindow;

/// What keeps lanes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// Transactions on a `Vector`.
    Txn,
    /// One lock for everything, held for a batch.
    GlobalLock,
    /// A lock per element, for readers or one writer; those of a packet are taken in the order of elements,
    /// and held to its end (two-phase locking).
    TwoPhase,
    /// The flow table of [`sharing`](crate::sharing), behind 1,024 locks: each access by itself is safe, a
    /// packet's accesses together are not.
    SharedTable,
    /// Nothing: each lane has elements of its own. This is also the cost of the loop.
    None,
}

/// Measures engines side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxnBench {
    /// Windows per row; the median counts. One more comes first and does not count.
    pub windows: usize,
    /// Packets of each lane per window.
    pub packets: u32,
}

impl Default for TxnBench {
    fn default() -> TxnBench {
        TxnBench { windows: 15, packets: 1 << 18 }
    }
}

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxnSelection {
    /// Engines.
    pub engines: Vec<EngineKind>,
    /// Workloads.
    pub workloads: Vec<Workload>,
    /// Numbers of lanes.
    pub lanes: Vec<usize>,
    /// Packets to a transaction, at most; packets that one lock is held for.
    pub batches: Vec<usize>,
}

impl EngineKind {
    /// All of them.
    pub const ALL: [EngineKind; 5] = [
        EngineKind::Txn,
        EngineKind::GlobalLock,
        EngineKind::TwoPhase,
        EngineKind::SharedTable,
        EngineKind::None,
    ];

    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Txn => "txn",
            EngineKind::GlobalLock => "global-lock",
            EngineKind::TwoPhase => "two-phase",
            EngineKind::SharedTable => "shared-table",
            EngineKind::None => "none",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl TxnBench {
    /// Measures all that is selected and calls `done` for each row.
    ///
    /// # Errors
    /// [`BenchError`] when there are fewer cores than lanes, no memory, or a write got lost.
    pub fn run(
        &self,
        selection: &TxnSelection,
        mut done: impl FnMut(&TxnRow),
    ) -> Result<Vec<TxnRow>, BenchError> {
        let cores = Cores::available()?;
        selection.lanes.iter().try_for_each(|&lanes| cores.require(lanes))?;
        let clock = Clock::new();
        let mut rows = Vec::new();
        for &workload in &selection.workloads {
            for &lanes in &selection.lanes {
                let packets = Packets::draw(workload, lanes, self.packets);
                for &batch in &selection.batches {
                    for row in self.rows(&selection.engines, &packets, batch, &clock)? {
                        done(&row);
                        rows.push(row);
                    }
                }
            }
        }
        Ok(rows)
    }

    /// The rows of some engines, measured in turn.
    fn rows(
        &self,
        engines: &[EngineKind],
        packets: &Packets,
        batch: usize,
        clock: &Clock,
    ) -> Result<Vec<TxnRow>, BenchError> {
        let testbeds = engines.iter().map(|engine| TxnTestbed::new(*engine, packets.lanes()));
        let mut testbeds = testbeds.collect::<Result<Vec<_>, _>>()?;
        let mut windows = vec![Vec::new(); testbeds.len()];
        for round in 0..=self.windows {
            for turn in 0..testbeds.len() {
                // Each engine begins in its turn.
                let testbed = (round + turn) % testbeds.len();
                let window = testbeds[testbed].window(packets, batch, clock)?;
                if round > 0 {
                    windows[testbed].push(window);
                }
            }
        }
        let written = packets.writes() * (self.windows as u64 + 1);
        testbeds.iter().try_for_each(|testbed| testbed.check(written))?;
        let own = engines.iter().position(|engine| *engine == EngineKind::Txn);
        let row = |(index, engine): (usize, &EngineKind)| {
            let own = own.filter(|own| *own != index).map(|own| windows[own].as_slice());
            TxnRow::new(*engine, packets, batch, &windows[index], own)
        };
        Ok(engines.iter().enumerate().map(row).collect())
    }
}

/// An engine with its lanes.
struct TxnTestbed {
    kind: EngineKind,
    lanes: Lanes,
}

/// By lane. Each engine's loop is compiled by itself.
enum Lanes {
    Txn(Vec<Optimistic>),
    GlobalLock(Vec<GlobalLock>),
    TwoPhase(Vec<TwoPhase>),
    SharedTable(Vec<SharedTable>),
    None(Vec<Unshared>),
}

impl TxnTestbed {
    fn new(kind: EngineKind, lanes: usize) -> Result<TxnTestbed, BenchError> {
        let lanes = match kind {
            EngineKind::Txn => Lanes::Txn(Engine::lanes(lanes)?),
            EngineKind::GlobalLock => Lanes::GlobalLock(Engine::lanes(lanes)?),
            EngineKind::TwoPhase => Lanes::TwoPhase(Engine::lanes(lanes)?),
            EngineKind::SharedTable => Lanes::SharedTable(Engine::lanes(lanes)?),
            EngineKind::None => Lanes::None(Engine::lanes(lanes)?),
        };
        Ok(TxnTestbed { kind, lanes })
    }

    /// Lets all packets pass once.
    fn window(
        &mut self,
        packets: &Packets,
        batch: usize,
        clock: &Clock,
    ) -> Result<TxnWindow, BenchError> {
        match &mut self.lanes {
            Lanes::Txn(lanes) => window::pass(lanes, packets, batch, clock),
            Lanes::GlobalLock(lanes) => window::pass(lanes, packets, batch, clock),
            Lanes::TwoPhase(lanes) => window::pass(lanes, packets, batch, clock),
            Lanes::SharedTable(lanes) => window::pass(lanes, packets, batch, clock),
            Lanes::None(lanes) => window::pass(lanes, packets, batch, clock),
        }
    }

    /// Makes sure that every write counted, once.
    fn check(&self, written: u64) -> Result<(), BenchError> {
        let counted = match &self.lanes {
            Lanes::Txn(lanes) => Engine::total(lanes),
            Lanes::GlobalLock(lanes) => Engine::total(lanes),
            Lanes::TwoPhase(lanes) => Engine::total(lanes),
            Lanes::SharedTable(lanes) => Engine::total(lanes),
            Lanes::None(lanes) => Engine::total(lanes),
        };
        match counted == written {
            true => Ok(()),
            false => {
                Err(BenchError::Miscounted { system: self.kind.name(), counted, passed: written })
            }
        }
    }
}
