//! `rheo sim slo`: use case I of Dyssect (thesis, 5.2.3), traffic classes with latency objectives under a rising load.
//!
//! The thesis replays a trace from 2.5 to 22 Gb/s on up to eight cores, a step every 10 s, through a NAT and an IDS; one packet
//! in a thousand is of the priority class, short flows. Here packets of 1001 bytes (the mean of that trace) come at random and
//! belong to a million flows by Zipf's law; the rarest flows have priority. The firewall's measured cost takes the NAT's place,
//! and a time for every byte that of the IDS. Eight lanes are 85 % busy at 22 Gb/s; other numbers of lanes get their part of the
//! load.

mod row;
mod zipf;

use std::ops::Range;
use std::thread;
use std::time::Duration;

use rheostat_base::{LaneId, Time};
use rheostat_control::Balancer;
use rheostat_steer::policy::{
    self, Class, LaneBounds, Objectives, Prediction, Settings, UnknownPolicy,
};
use thiserror::Error;

pub use self::row::SloRow;
use self::zipf::ZipfPackets;
pub(super) use self::zipf::first_of_tail;
use super::ledger::Ledger;
use super::machine::{CorePlacement, SimClasses, SimMachine, Size};
use super::packet::SimPacket;
use super::pauses::Pauses;
use super::phase_meter::PhaseMeter;
use super::series_meter::INTERVAL;
use super::simulation::{GLANCE, TIMEOUT};
use super::stretch::Stretch;
use super::work::MeasuredWork;
use super::{BATCH, REFERENCE_RATE, SimError};
use crate::costs::Costs;
use crate::scenario::ScenarioStep;
use rheostat_measure::rounding::to_ten_thousandths;

/// Offered load of each phase in Gb/s, where there are eight lanes.
pub const PHASES: [f64; 9] = [2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.5, 20.0, 22.0];
/// Policies that are compared.
pub const POLICIES: [&str; 3] = ["rsspp", "dyssect", "auto"];
/// Lanes that the phases are for.
const LANES: f64 = 8.0;
/// How busy all lanes are in the last phase.
const BUSY: f64 = 0.85;
/// The part of the time for a packet that grows with its bytes.
const BY_BYTE: f64 = 0.7;
/// The part of the packets that has priority.
const PRIORITY: f64 = 0.001;
/// What a packet has on the wire (thesis, 5.2.1).
const BYTES: u16 = 1_001;
/// Flows (thesis, 5.2.1).
const FLOWS: u32 = 1_000_000;
/// What a lane does before anything is measured: it takes that long until lanes without work are parked.
const WARM_UP: Duration = Duration::from_secs(3);
const SHARDS: usize = 128;
const QUEUE: usize = 4_096;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct SloBench<'a> {
    /// How long things take.
    pub costs: &'a Costs,
    /// Whether lanes stop now and then as they did on the machine that the costs are from.
    pub noisy: bool,
    /// Lanes, from 3 to 64.
    pub lanes: u16,
    /// Each of [`policy::NAMES`].
    pub policies: Vec<String>,
    /// How long each phase takes.
    pub phase: Duration,
    /// What latencies packets may have, from arrival to departure.
    pub objectives: Objectives,
    /// The exponent of Zipf's law: how unequal flows are. From 0 to 2.
    pub zipf: f64,
    /// What is random is drawn from it.
    pub seed: u64,
}

/// Why there is no simulation.
#[derive(Debug, Error)]
pub enum SloError {
    /// Too few lanes to offload, or more than phases are meant for.
    #[error("{0} lanes: from 3 to 64 are simulated")]
    Lanes(u16),
    /// A phase without a plan.
    #[error("a phase takes 100 ms or more, since plans are made that often")]
    Phase,
    /// No percentile.
    #[error("percentile {0}: above 0 and below 1, such as 0.995")]
    Percentile(f64),
    /// A policy has no known name.
    #[error(transparent)]
    Policy(#[from] UnknownPolicy),
    /// No exponent.
    #[error("exponent {0}: from 0 (flows alike) to 2")]
    Zipf(f64),
    /// The chain was not measured.
    #[error(transparent)]
    Simulation(#[from] SimError),
}

/// What packets take, and how many come.
struct Setting {
    work: MeasuredWork,
    /// Packets per second in the last phase.
    rate: f64,
    /// The mean time for a packet, in microseconds.
    service_us: f64,
    /// Flows from this rank on have priority.
    first_priority: u32,
}

impl SloBench<'_> {
    /// Simulates each policy. Rows are in the order of policies and phases.
    ///
    /// # Errors
    /// [`SloError`] when there is no such simulation, or packets cannot be made.
    pub fn run(&self) -> Result<Vec<SloRow>, SloError> {
        let Objectives { percentile, .. } = self.objectives;
        if !(3..=64).contains(&self.lanes) {
            return Err(SloError::Lanes(self.lanes));
        }
        if self.phase.as_nanos() < u128::from(INTERVAL) {
            return Err(SloError::Phase);
        }
        if !(percentile > 0.0 && percentile < 1.0) {
            return Err(SloError::Percentile(percentile));
        }
        if !(0.0..=2.0).contains(&self.zipf) {
            return Err(SloError::Zipf(self.zipf));
        }
        for name in &self.policies {
            policy::by_name(name)?;
        }
        let setting = self.setting()?;
        let setting = &setting;
        thread::scope(|scope| {
            let mut running = Vec::new();
            for policy in &self.policies {
                running.push(scope.spawn(move || self.run_policy(policy, setting)));
            }
            let mut rows = Vec::new();
            for policy in running {
                let done = policy.join();
                rows.extend(done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            Ok(rows)
        })
    }

    fn setting(&self) -> Result<Setting, SloError> {
        let chain = self.costs.chain("firewall").ok_or(SimError::Chain("firewall"))?;
        let eight_lanes = PHASES[PHASES.len() - 1] * 1e9 / 8.0 / f64::from(BYTES);
        let nanos = BUSY * LANES / eight_lanes * 1e9;
        let share = 1.0 / f64::from(self.lanes);
        let work = MeasuredWork::new(self.costs, chain, Duration::ZERO, f64::from(FLOWS));
        let rest = nanos * (1.0 - BY_BYTE) - work.mean(share, rheostat_packet::BURST);
        let work = work
            .with_fixed(Duration::from_nanos(rest.max(0.0).round() as u64))
            .with_kilobyte((BY_BYTE * nanos / f64::from(BYTES) * 1e3).round() as u64);
        Ok(Setting {
            work,
            rate: eight_lanes * f64::from(self.lanes) / LANES,
            service_us: nanos / 1e3,
            first_priority: first_of_tail(FLOWS, self.zipf, PRIORITY),
        })
    }

    fn run_policy(&self, policy: &str, setting: &Setting) -> Vec<SloRow> {
        let mut packets = ZipfPackets::new(FLOWS, self.zipf, BYTES, REFERENCE_RATE, self.seed);
        let mut running = Running::new(self, policy, setting);
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            packets.fill(&mut batch, BATCH);
            if running.feed(&batch) {
                return running.finish();
            }
        }
    }
}

/// What was counted until the end of a phase.
#[derive(Clone, Copy, Debug, Default)]
struct SloTotals {
    migrations: u64,
    offloaded: u64,
    dropped: u64,
}

/// One policy at work.
struct Running<'a> {
    bench: &'a SloBench<'a>,
    setting: &'a Setting,
    policy: &'a str,
    machine: SimMachine<MeasuredWork>,
    balancer: Balancer,
    stretch: Stretch,
    /// The measurement.
    span: Range<u64>,
    now: u64,
    due: u64,
    tick: u64,
    /// By phase: looks, lanes seen, offloading lanes seen.
    looks: Vec<[u64; 3]>,
    /// By phase: predicted waits times packets in microseconds, and packets.
    predicted: Vec<(f64, f64)>,
    /// At the ends of phases, the start first.
    totals: Vec<SloTotals>,
}

impl<'a> Running<'a> {
    fn new(bench: &'a SloBench<'a>, policy: &'a str, setting: &'a Setting) -> Running<'a> {
        let (start, phase) = (WARM_UP.as_nanos() as u64, bench.phase.as_nanos() as u64);
        let span = start..start + phase * PHASES.len() as u64;
        let size = Size::of(bench.lanes, SHARDS, QUEUE);
        let pauses = |lane: LaneId| match bench.noisy {
            true => Pauses::of(&bench.costs.noise, bench.seed << 16 | u64::from(lane.0)),
            false => Pauses::none(),
        };
        let ledger = Ledger::new(span.clone());
        let mut machine =
            SimMachine::new(size, setting.work.clone(), CorePlacement::Table, pauses, ledger);
        let first = setting.first_priority;
        machine.tell_classes(SimClasses {
            is_priority: Box::new(move |packet| packet.flow >= first),
            percentile: bench.objectives.percentile,
            phases: PhaseMeter::new(start, phase, PHASES.len()),
        });
        let lanes = usize::from(bench.lanes);
        let settings =
            Settings { objectives: bench.objectives, offloading: lanes / 3, ..Settings::default() };
        let of_name = policy::with_settings(policy, &settings).expect("a known policy");
        let mut balancer = Balancer::new(of_name, None, (lanes, SHARDS), Time::ZERO);
        balancer.set_bounds(LaneBounds { min: 1, max: lanes });
        let first = PHASES[0] / PHASES[PHASES.len() - 1];
        let step = |(number, load): (usize, &f64)| ScenarioStep {
            at: bench.phase * number as u32,
            factor: load / PHASES[0],
        };
        let steps: Vec<ScenarioStep> = PHASES.iter().enumerate().map(step).collect();
        Running {
            bench,
            setting,
            policy,
            machine,
            balancer,
            stretch: Stretch::new(first * setting.rate / REFERENCE_RATE as f64, &steps, WARM_UP),
            span,
            now: 0,
            due: 0,
            tick: INTERVAL,
            looks: vec![[0; 3]; PHASES.len()],
            predicted: vec![(0.0, 0.0); PHASES.len()],
            totals: vec![SloTotals::default()],
        }
    }

    /// Lets packets arrive. Returns whether the run is over.
    fn feed(&mut self, packets: &[SimPacket]) -> bool {
        for packet in packets {
            self.now = self.stretch.time_of(packet.at);
            if self.now >= self.span.end {
                return true;
            }
            self.pass(self.now);
            self.machine.advance(self.now);
            self.machine.arrive(packet, self.now);
        }
        false
    }

    fn pass(&mut self, now: u64) {
        while self.due.min(self.tick) <= now {
            let next = self.due.min(self.tick);
            self.machine.advance(next);
            if next == self.tick {
                self.look(next);
                self.tick += INTERVAL;
            }
            if next == self.due {
                self.due = self.machine.control(&mut self.balancer, next);
            }
        }
    }

    /// An interval ends: what is in force now counts for the phase that the interval began in.
    fn look(&mut self, now: u64) {
        let phase = self.machine.phases().and_then(|of| of.phase_of(now - INTERVAL));
        let Some(phase) = phase else {
            self.totals[0] = self.total();
            return;
        };
        let links = self.balancer.links();
        let working = self.machine.active();
        let lanes = || (0..self.bench.lanes).map(LaneId);
        let offloads = |lane: &LaneId| links.contains(&Some(*lane));
        let used = lanes().filter(|lane| working[lane.index()] || offloads(lane)).count();
        let looks = &mut self.looks[phase];
        *looks = [
            looks[0] + 1,
            looks[1] + used as u64,
            looks[2] + lanes().filter(offloads).count() as u64,
        ];
        let since = Time::from_nanos(now - INTERVAL);
        let log = self.balancer.policy().predictions();
        let rows = log.into_iter().flat_map(|log| log.rows().rev());
        let of_priority = |row: &&Prediction| row.class == Class::Priority;
        for row in rows.take_while(|row| row.at >= since).filter(of_priority) {
            let packets = row.samples as f64;
            self.predicted[phase].0 += row.predicted.as_secs_f64() * 1e6 * packets;
            self.predicted[phase].1 += packets;
        }
        let total = self.total();
        self.totals.resize(phase + 2, total);
        self.totals[phase + 1] = total;
    }

    fn total(&self) -> SloTotals {
        let flows = self.machine.workers().filter_map(|lane| lane.flows.as_ref());
        SloTotals {
            migrations: self.machine.migrator.arrived,
            offloaded: flows.map(|flows| flows.left).sum(),
            dropped: self.machine.ledger.all.dropped,
        }
    }

    /// Ends the run: nothing arrives any more, and what is under way leaves.
    fn finish(mut self) -> Vec<SloRow> {
        self.pass(self.span.end);
        self.machine.run_dry(self.span.end, GLANCE, TIMEOUT);
        let ledger = &self.machine.ledger;
        let faults = ledger.lost() + ledger.duplicated + ledger.reordered;
        (0..PHASES.len()).map(|phase| self.row(phase, faults)).collect()
    }

    fn row(&self, phase: usize, faults: u64) -> SloRow {
        let SloBench { lanes, objectives, .. } = self.bench;
        let latency = |class: Class, share: f64| {
            self.machine.phases().and_then(|of| of.latency(phase, class, share))
        };
        let met = |class: Class| match (objectives.of(class), latency(class, objectives.percentile))
        {
            (Some(limit), Some(latency)) => latency <= limit.as_secs_f64() * 1e6,
            _ => true,
        };
        let [looks, used, offloading] = self.looks[phase].map(|count| count as f64);
        let (sum, packets) = self.predicted[phase];
        let (before, after) = (self.totals[phase], self.totals[phase + 1]);
        SloRow {
            simulated: true,
            policy: self.policy.to_owned(),
            phase: PHASES[phase] * f64::from(*lanes) / LANES,
            lanes: to_ten_thousandths(used / looks.max(1.0)),
            offloading: to_ten_thousandths(offloading / looks.max(1.0)),
            priority_p995_us: latency(Class::Priority, 0.995),
            regular_p995_us: latency(Class::Regular, 0.995),
            predicted_us: (packets > 0.0)
                .then(|| to_ten_thousandths(sum / packets + self.setting.service_us)),
            slo_met: Class::ALL.into_iter().all(met),
            migrations: after.migrations - before.migrations,
            offloaded: after.offloaded - before.offloaded,
            dropped: after.dropped - before.dropped,
            faults,
        }
    }
}

#[cfg(test)]
mod tests;
