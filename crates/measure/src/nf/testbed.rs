//! What rows are measured on: lanes between two devices whose packets come from memory.

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{Clock, CoreId, DropReason, LaneId};
use rheostat_io::Device;
use rheostat_kernel::CoreSet;
use rheostat_packet::{Mempool, MempoolConfig};
use rheostat_run::{LaneSample, RunReport, Runtime, RuntimeConfig, Service, StageSwitch};
use rheostat_state::{FlowHasher, Shard};
use rheostat_steer::{HashKey, Orientation, Steering, SteeringError};

use super::control::Controller;
use super::measurement::{Figure, Sample, await_opening, measure};
use super::{Measuring, NfBench, Spec, Stages};
use crate::error::MeasureError;
use crate::memory::{self, CYCLE, Opening, Servers};

/// Entries of the indirection table: those of a run by default.
const BUCKETS: usize = 512;
/// How long an ended flow may stay until it is reclaimed: its time-out, a tick of the timer wheel and
/// a round of the shards, rounded up.
pub(super) const RECLAIMED_AFTER: f64 = 1.6;

/// What a row is measured on.
pub(super) struct Testbed {
    pub(super) cores: Vec<CoreId>,
    pub(super) pool: Mempool,
    pub(super) devices: Vec<Box<dyn Device>>,
    pub(super) opening: Opening,
    pub(super) warm_up: Duration,
    pub(super) steering: Arc<Steering>,
    pub(super) hasher: FlowHasher,
}

impl Testbed {
    /// `adapt` makes the steering what the chain needs.
    pub(super) fn new(
        spec: &Spec,
        adapt: impl FnOnce(Steering) -> Result<Steering, SteeringError>,
    ) -> Result<Testbed, MeasureError> {
        let cores = CoreSet::available()?.cores().to_vec();
        if cores.len() < spec.lanes {
            return Err(MeasureError::TooFewCores { lanes: spec.lanes, cores: cores.len() });
        }
        // Both devices' buffers, and as many again for what a lane holds.
        let buffers = (4 * CYCLE * spec.lanes) as u32;
        let pool = Mempool::new(&MempoolConfig { buffers, ..MempoolConfig::default() })?;
        // The first device has the clients.
        let orientations = match spec.load.servers {
            Servers::Many | Servers::Stations => vec![Orientation::Inside, Orientation::Outside],
            Servers::One => vec![Orientation::Outside, Orientation::Inside],
        };
        let key = HashKey::new(std::array::from_fn(|i| {
            // Any key will do, as long as every run has the same.
            (0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(i as u64 + 1) >> 56) as u8
        }));
        let steering = Arc::new(adapt(Steering::new(&key, BUCKETS, spec.shards, orientations)?)?);
        let (devices, opening) = memory::devices(
            &spec.load,
            &steering,
            spec.own(),
            spec.among(),
            spec.measuring.is_some(),
        );
        let settle = if spec.load.new_flow_share > 0.0 { RECLAIMED_AFTER } else { 0.3 };
        let warm_up = Duration::from_secs_f64(settle);
        let hasher = FlowHasher::new(std::array::from_fn(|i| {
            (spec.load.seed + i as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95).rotate_left(29)
        }));
        Ok(Testbed { cores, pool, devices, opening, warm_up, steering, hasher })
    }

    /// Runs a service on it, and takes the figure of a run that was sound.
    pub(super) fn drive(
        self,
        spec: &Spec,
        bench: &NfBench,
        service: impl FnMut(LaneId) -> Box<dyn Service>,
        shards: Vec<Box<Shard>>,
    ) -> Result<Figure, MeasureError> {
        let stages = StageSwitch::default();
        let clock = Clock::new();
        let measuring = spec.measuring.unwrap_or(Measuring::Nothing);
        let config = RuntimeConfig {
            workers: self.cores.iter().take(spec.lanes).copied().map(Some).collect(),
            handoff_capacity: 1_024,
            claimants: spec.claimants(),
            reporting: bench.control.reporting().max(spec.chain.reporting()),
            stages: bench.stages.then(|| stages.clone()),
            classes: measuring.classes(Arc::new(clock.clone())),
            plans_offloading: measuring.finds_heavy_flows(),
            ..RuntimeConfig::new(spec.lanes, self.pool, self.steering, self.hasher)
        };
        let mut runtime = Runtime::start(config, self.devices, clock, service, shards)?;
        let controller = bench.control.start(runtime.view(), spec.shards)?;
        let opened = await_opening(&self.opening, spec.load.flows.into());
        let figure = opened.map(|()| {
            stages.turn_on();
            measure(bench, self.warm_up, || {
                let sample = runtime.sample();
                let packets = sample.lanes.iter().map(|lane| lane.received).sum();
                Sample { packets, seconds: sample.seconds, timings: self.opening.timings() }
            })
        });
        let controlled = controller.map(Controller::stop).unwrap_or_default();
        let report = runtime.join()?;
        let sum = LaneSample::sum(&report.last.lanes);
        let figure = figure.map_err(|error| error.because(&reasons(&sum)))?;
        check(spec, &report)?;
        let (stages, passed) = (Stages::of(&report.stages), sum.received);
        Ok(Figure { controlled, stages, passed, ..figure })
    }
}

/// Makes sure that the run was sound, and that the chain did what it was measured for.
fn check(spec: &Spec, report: &RunReport) -> Result<(), MeasureError> {
    if let Some(violation) = report.violations.first() {
        return Err(MeasureError::Violated(violation.clone()));
    }
    let sum = LaneSample::sum(&report.last.lanes);
    let dropped = sum.dropped_total();
    // At the edges of a round, a few packets of short connections come alone.
    if dropped * 1_000 > sum.received {
        let (chain, received, reasons) = (spec.chain.name(), sum.received, reasons(&sum));
        return Err(MeasureError::Dropped { chain, dropped, received, reasons });
    }
    Ok(())
}

/// Why packets were dropped, with how many each.
fn reasons(sum: &LaneSample) -> String {
    let count = |reason: DropReason| sum.dropped[reason as usize];
    let reasons: Vec<_> = DropReason::all()
        .filter(|reason| count(*reason) > 0)
        .map(|reason| format!("{} {}", reason.name(), count(reason)))
        .collect();
    if reasons.is_empty() { "none dropped".into() } else { reasons.join(", ") }
}
