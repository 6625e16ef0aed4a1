//! `rheo bench nf`: what a chain of network functions costs per packet.
//!
//! Each row runs a chain on one or more lanes, each lane on a core of its own, fed from memory as fast
//! as it takes packets. The cost is what a packet takes beyond the row `harness`: the same source and
//! sink, polled in the same bursts, with nothing between them. Every invariant of a run is checked
//! after every row, and a row whose chain dropped packets gives no figure.

mod callgrind;
mod control;
mod function_chain;
mod harness;
mod measurement;
mod measuring;
mod network;
mod placed;
mod processes;
mod requests;
mod row;
mod runtime;
mod shared;
mod spec;
mod stages;
mod testbed;

pub use callgrind::Callgrind;
pub use control::Control;
pub use control::Controlled;
pub use function_chain::{FunctionChain, MakeChain};
pub use measurement::Figure;
pub use measurement::{Effort, Mode};
pub use measuring::Measuring;
pub use processes::Processes;
pub use row::Row;
pub use spec::{ChainKind, Part, SHARDS, Selection, Spec};
pub use stages::{StageNanos, Stages};

use rheostat_functions::nat::Mapping;

use processes::{Beside, ProcessSide};
use row::PROCESSES;
use runtime::Assembly;

use crate::calibration;
use crate::error::MeasureError;

/// Runs rows one after the other.
#[derive(Debug)]
pub struct NfBench {
    /// How long each row runs.
    pub effort: Effort,
    /// The allocations of this process so far, all threads together.
    pub allocations: fn() -> u64,
    /// The controller of the lanes.
    pub control: Control,
    /// Whether rows say how long each stage takes, which costs some nanoseconds per packet.
    pub stages: bool,
    /// Counts the instructions of rows, in runs of their own.
    pub instructions: Option<Callgrind>,
    /// Runs the control of rows on several lanes, which is a row behind each.
    pub processes: Option<Processes>,
    /// Whether rows are measured once more, by these processes, with lanes that measure classes of traffic.
    pub measuring: bool,
}

impl NfBench {
    /// Measures `specs` in order and calls `done` after each. A baseline is measured where the one
    /// before was of another load.
    ///
    /// # Errors
    /// [`MeasureError`] when a row cannot be run, or its run was not sound.
    pub fn run(
        &self,
        specs: &[Spec],
        mut done: impl FnMut(&Row),
    ) -> Result<Vec<Row>, MeasureError> {
        calibration::prepare();
        let mut rows = Vec::new();
        let mut baseline: Option<(Spec, Figure)> = None;
        for spec in specs {
            let of_load = Spec { chain: ChainKind::Harness, shards: SHARDS, ..*spec };
            let harness = match &baseline {
                Some((known, figure)) if *known == of_load => *figure,
                _ => self.figure(&of_load)?,
            };
            baseline = Some((of_load, harness));
            let figure =
                if spec.chain == ChainKind::Harness { harness } else { self.figure(spec)? };
            let mut row = Row::new(spec, &figure, &harness);
            let beside = self.beside(spec)?;
            row.of_processes = beside.map(|beside| beside.ratio.rounded());
            done(&row);
            rows.push(row);
            if let Some(beside) = beside {
                let row = Row {
                    control: Some(PROCESSES.into()),
                    joint_shards: false,
                    ..Row::new(spec, &beside.control, &harness)
                };
                done(&row);
                rows.push(row);
            }
            for (name, side) in self.measured(spec)? {
                let row = Row {
                    control: Some(name.into()),
                    of_unmeasured: Some(side.ratio.rounded()),
                    ..Row::new(spec, &side.figure, &harness)
                };
                done(&row);
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// Measures a row on several lanes beside its control, if there is to be one.
    fn beside(&self, spec: &Spec) -> Result<Option<Beside>, MeasureError> {
        let processes = self.processes.as_ref().filter(|_| spec.lanes > 1);
        processes.map(|processes| processes.measure(spec, &self.effort)).transpose()
    }

    /// Measures a row once more with lanes that measure classes of traffic, if that is wanted.
    fn measured(&self, spec: &Spec) -> Result<Vec<(&'static str, ProcessSide)>, MeasureError> {
        let is_wanted = self.measuring && spec.chain != ChainKind::Harness;
        let processes = self.processes.as_ref().filter(|_| is_wanted);
        let sides =
            processes.map(|processes| processes.measured(spec, &self.effort)).transpose()?;
        Ok(sides.unwrap_or_default())
    }

    /// Runs a row until [`Effort::packets`] have passed; how many passed from its start to its end.
    ///
    /// # Errors
    /// [`MeasureError`] when the row cannot be run, or its run was not sound.
    pub fn pass(&self, spec: &Spec) -> Result<u64, MeasureError> {
        Ok(self.measure(spec)?.passed)
    }

    /// Measures a row, and counts its instructions where that is wanted.
    fn figure(&self, spec: &Spec) -> Result<Figure, MeasureError> {
        let figure = self.measure(spec)?;
        let counted = self.instructions.as_ref().map(|callgrind| callgrind.per_packet(spec));
        Ok(Figure { instructions_per_packet: counted.transpose()?, ..figure })
    }

    /// Measures a row by itself.
    pub fn measure(&self, spec: &Spec) -> Result<Figure, MeasureError> {
        match spec.chain {
            ChainKind::Harness => harness::measure(spec, self),
            ChainKind::Empty | ChainKind::EmptyRss => runtime::measure_empty(spec, self),
            ChainKind::Placed => runtime::measure_placed(spec, self),
            ChainKind::Router => runtime::measure_router(spec, self, 0),
            ChainKind::RouterWide => runtime::measure_router(spec, self, 10_000),
            ChainKind::RouterFull => runtime::measure_router(spec, self, 1_000_000),
            ChainKind::Firewall => runtime::measure_firewall(spec, self, Assembly::Compiled),
            ChainKind::FirewallDynamic => runtime::measure_firewall(spec, self, Assembly::RunTime),
            ChainKind::Nat => runtime::measure_nat(spec, self, Mapping::EndpointIndependent),
            ChainKind::NatSymmetric => {
                runtime::measure_nat(spec, self, Mapping::AddressAndPortDependent)
            }
            ChainKind::NatShared => shared::measure_nat(spec, self),
            ChainKind::FirewallNat => runtime::measure_firewall_nat(spec, self, Assembly::Compiled),
            ChainKind::FirewallNatDynamic => {
                runtime::measure_firewall_nat(spec, self, Assembly::RunTime)
            }
            ChainKind::Policer => runtime::measure_policer(spec, self),
            ChainKind::Monitor => runtime::measure_monitor(spec, self),
            ChainKind::Lb => runtime::measure_lb(spec, self),
            ChainKind::AntiDdos => shared::measure_antiddos(spec, self),
            ChainKind::Portscan => shared::measure_portscan(spec, self),
            ChainKind::Bridge => shared::measure_bridge(spec, self),
            ChainKind::Functions(chain) => runtime::measure_functions(spec, self, chain),
        }
    }
}
