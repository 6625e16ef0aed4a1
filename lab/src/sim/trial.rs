//! One policy under one kind of load.

use std::time::Duration;

use rheostat_base::{LaneId, Time};
use rheostat_control::Balancer;
use rheostat_steer::policy::{Class, LaneBounds, Policy};

use super::BATCH;
use super::cases::{CasePackets, NamedCase};
use super::ledger::Ledger;
use super::machine::{CorePlacement, SimClasses, SimMachine, Size};
use super::pauses::Pauses;
use super::phase_meter::PhaseMeter;
use super::simulation::{GLANCE, TIMEOUT};
use super::work::MeasuredWork;
use crate::delays::quantile_us;

const QUEUE: usize = 4_096;
/// A heavy flow is as much as nine tenths of a lane.
const HEAVY: f64 = 0.9;

/// What arrives, where, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub(super) lanes: u16,
    pub(super) case: NamedCase,
    pub(super) flows: u32,
    /// Flows from this rank on have priority.
    pub(super) first_priority: u32,
    /// Packets per second.
    pub(super) rate: f64,
    /// What is not measured at the start.
    pub(super) warm_up: Duration,
    pub(super) duration: Duration,
    pub(super) seed: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrialOutcome {
    pub(super) arrived: u64,
    pub(super) delivered: u64,
    pub(super) p995_us: Option<f64>,
    /// The same by class.
    pub(super) class_p995_us: [Option<f64>; Class::ALL.len()],
    pub(super) migrations: u64,
    pub(super) offloaded: u64,
    pub(super) faults: u64,
}

impl TrialOutcome {
    /// Packets that left ÷ packets that arrived.
    pub(super) fn delivered_share(&self) -> f64 {
        self.delivered as f64 / self.arrived.max(1) as f64
    }
}

impl Trial {
    /// Lets packets arrive on lanes that all work throughout.
    pub(super) fn run(&self, work: MeasuredWork, policy: Box<dyn Policy>) -> TrialOutcome {
        let (lanes, shards) = (usize::from(self.lanes), self.case.shards);
        let start = self.warm_up.as_nanos() as u64;
        let end = start + self.duration.as_nanos() as u64;
        let ledger = Ledger::new(start..end);
        let size = Size::of(self.lanes, shards, QUEUE);
        let pauses = |_: LaneId| Pauses::none();
        let capacity = 1e9 / work.mean(1.0 / lanes as f64, rheostat_packet::BURST);
        let mut machine = SimMachine::new(size, work, CorePlacement::Table, pauses, ledger);
        let first = self.first_priority;
        machine.tell_classes(SimClasses {
            is_priority: Box::new(move |packet| packet.flow >= first),
            percentile: 0.995,
            phases: PhaseMeter::new(start, end - start, 1),
        });
        let mut balancer = Balancer::new(policy, None, (lanes, shards), Time::ZERO);
        balancer.set_bounds(LaneBounds { min: lanes, max: lanes });
        let load = (self.rate, HEAVY * capacity / self.rate);
        let mut packets = CasePackets::new(self.flows, self.case, load, self.seed);
        let (mut due, mut moved_before, mut batch) = (0, 0, Vec::with_capacity(BATCH));
        'run: loop {
            packets.fill(&mut batch, BATCH);
            for packet in &batch {
                if packet.at >= end {
                    break 'run;
                }
                while due <= packet.at {
                    machine.advance(due);
                    due = machine.control(&mut balancer, due);
                    if due < start {
                        moved_before = machine.migrator.arrived;
                    }
                }
                machine.advance(packet.at);
                machine.arrive(packet, packet.at);
            }
        }
        let migrations = machine.migrator.arrived - moved_before;
        machine.run_dry(end, GLANCE, TIMEOUT);
        let offloaded = machine.workers().filter_map(|lane| lane.flows.as_ref());
        let offloaded = offloaded.map(|flows| flows.left).sum();
        let Ledger { arrived, delivered, latency, duplicated, reordered, .. } = &machine.ledger;
        TrialOutcome {
            arrived: *arrived,
            delivered: *delivered,
            p995_us: quantile_us(latency, 0.995),
            class_p995_us: Class::ALL.map(|class| machine.phases()?.latency(0, class, 0.995)),
            migrations,
            offloaded,
            faults: machine.ledger.lost() + duplicated + reordered,
        }
    }
}
