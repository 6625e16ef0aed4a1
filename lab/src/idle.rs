//! `rheo bench idle`: what balancing costs while there is nothing to balance.
//!
//! A load that is even already is measured in pairs of runs, one right after the other: under static RSS,
//! whose lanes report nothing, and under RSS++, whose lanes count packets per shard and their time, and whose
//! controller reads all that and plans, at its own pace. Each run is a fresh one, so that where its memory
//! happens to lie is part of the chance that the interval covers, and not of the difference. Lanes take
//! packets as fast as they can, so all are equally busy, as far as the machine lets them; what a plan would
//! change nevertheless is counted and not done.

mod row;

use std::time::Duration;

use rheostat_measure::confidence;
use rheostat_measure::memory::{FrameSize, SourceKind};
use rheostat_measure::nf::{
    ChainKind, Control, Controlled, Effort, Figure, NfBench, SHARDS, Selection, Spec,
};
use rheostat_traffic::Distribution;

use crate::error::BenchError;
pub use row::IdleFlowRow;

/// Measures rows one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleBench {
    /// Pairs of runs per row: at least [`IdleBench::LEAST_WINDOWS`] for an interval of 95 %.
    pub windows: usize,
    /// How long each run is measured.
    pub window: Duration,
    /// Flows that are open throughout.
    pub flows: u32,
    /// What everything random is drawn from.
    pub seed: u64,
}

/// Parts that a run is measured in; the median counts.
const PARTS: usize = 3;

/// Two runs, one right after the other.
#[derive(Clone, Copy, Debug)]
struct IdlePair {
    /// Nanoseconds per packet under static RSS.
    fixed: f64,
    /// The same under RSS++.
    balanced: f64,
    controlled: Controlled,
}

impl IdleBench {
    /// So many pairs give an interval of 95 %.
    pub const LEAST_WINDOWS: usize = confidence::LEAST;

    /// Measures every chain on every number of lanes and calls `done` for each row.
    ///
    /// # Errors
    /// [`BenchError`] when a row cannot be run, or its run was not sound.
    pub fn run(
        &self,
        chains: &[ChainKind],
        lanes: &[usize],
        mut done: impl FnMut(&IdleFlowRow),
    ) -> Result<Vec<IdleFlowRow>, BenchError> {
        let selection = Selection {
            chains: chains.to_vec(),
            flows: vec![self.flows],
            distributions: vec![Distribution::Zipf(1.1)],
            sizes: vec![FrameSize::Smallest],
            sources: vec![SourceKind::Converse],
            new_flow_shares: vec![0.0],
            lanes: lanes.to_vec(),
            shards: vec![SHARDS],
            seed: self.seed,
        };
        let mut rows = Vec::new();
        for spec in selection.specs() {
            let row = self.row(&spec)?;
            done(&row);
            rows.push(row);
        }
        Ok(rows)
    }

    fn row(&self, spec: &Spec) -> Result<IdleFlowRow, BenchError> {
        // Neither is always the first.
        let pairs = (0..self.windows).map(|round| self.pair(spec, round % 2 == 0));
        Ok(IdleFlowRow::new(spec, &pairs.collect::<Result<Vec<_>, _>>()?))
    }

    fn pair(&self, spec: &Spec, fixed_first: bool) -> Result<IdlePair, BenchError> {
        let (fixed, balanced) = if fixed_first {
            let fixed = self.run_once(spec, Control::Off)?;
            (fixed, self.run_once(spec, Control::Rsspp)?)
        } else {
            let balanced = self.run_once(spec, Control::Rsspp)?;
            (self.run_once(spec, Control::Off)?, balanced)
        };
        // A lane's time per packet.
        let nanos = |figure: &Figure| 1e3 * spec.lanes as f64 / figure.mpps;
        let controlled = balanced.controlled;
        Ok(IdlePair { fixed: nanos(&fixed), balanced: nanos(&balanced), controlled })
    }

    fn run_once(&self, spec: &Spec, control: Control) -> Result<Figure, BenchError> {
        // The median of some parts is not that of a moment in which a worker was suspended.
        let window = self.window / PARTS as u32;
        let effort = Effort { windows: PARTS, window, ..Effort::default() };
        let bench = NfBench {
            effort,
            allocations: || 0,
            control,
            stages: false,
            instructions: None,
            processes: None,
            measuring: false,
        };
        Ok(bench.measure(spec)?)
    }
}
