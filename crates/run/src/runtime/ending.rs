//! The last that lanes do, and what they leave.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rheostat_base::{Clock, ClockSource, Histogram, Time};
use rheostat_io::DeviceCounters;
use rheostat_kernel::core_set::CoreError;

use super::{RunReport, Runtime, StartError};
use crate::invariant::{Remains, Violation};
use crate::lane::Lane;
use crate::metrics::Metrics;
use crate::migrate::Migrator;
use crate::panic_message::panic_message;
use crate::stages::StageTimes;

/// How long shards that are moving when a run ends may take to arrive, once no pool works for a lane.
/// Tables' fences are all there is to wait for then.
const SETTLE: Duration = Duration::from_secs(2);

/// The thread of a worker.
pub(super) type WorkerHandle = JoinHandle<Result<(), CoreError>>;

/// How long the thread that waits for workers sleeps between two looks.
const LOOK: Duration = Duration::from_millis(1);

impl Runtime {
    /// As [`Runtime::join`], but waits no longer than this for workers, of which one may be in a call of a service that does not
    /// return. Then that worker is left alone with its lanes, and there is no account: the report has what was counted so far, and
    /// a violation for each such worker.
    ///
    /// # Errors
    /// As [`Runtime::join`].
    pub fn join_within(self, longest: Duration) -> Result<RunReport, StartError> {
        self.stop_sources();
        self.stop_workers();
        let last = Instant::now() + longest;
        while self.running().next().is_some() && Instant::now() < last {
            thread::sleep(LOOK);
        }
        let running: Vec<_> = self.running().collect();
        match running.is_empty() {
            true => self.join(),
            false => self.leave(&running),
        }
    }

    /// The workers that have not ended.
    fn running(&self) -> impl Iterator<Item = usize> {
        let all = self.workers.iter().enumerate();
        all.filter(|(_, worker)| !worker.is_finished()).map(|(number, _)| number)
    }

    /// What is known of a run whose workers have not all ended.
    fn leave(mut self, running: &[usize]) -> Result<RunReport, StartError> {
        let last = self.sample();
        let mut violations = std::mem::take(&mut self.violations);
        for (worker, handle) in std::mem::take(&mut self.workers).into_iter().enumerate() {
            violations.extend(match running.contains(&worker) {
                true => Some(Violation::WorkerRunning { worker }),
                false => join_worker(worker, handle)?,
            });
        }
        Ok(RunReport {
            last,
            device_names: self.device_names(),
            warnings: self.warnings(),
            violations,
            metrics: Metrics::default(),
            migration: self.migration_times(),
            stages: Arc::new(StageTimes::default()),
            hops: Histogram::default(),
        })
    }

    pub(super) fn device_names(&self) -> Vec<String> {
        self.devices.iter().map(|device| device.name().to_owned()).collect()
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let warnings = self.view.monitors.iter().flat_map(|monitor| monitor.warnings());
        warnings.chain(self.view.lane_metrics.board.warnings()).collect()
    }
}

/// Waits for a worker, and says what was wrong with it.
pub(super) fn join_worker(
    worker: usize,
    handle: WorkerHandle,
) -> Result<Option<Violation>, StartError> {
    match handle.join() {
        Ok(Ok(())) => Ok(None),
        Ok(Err(error)) => Err(error.into()),
        Err(panic) => {
            let message = panic_message(&*panic);
            Ok(Some(Violation::WorkerPanicked { worker, message }))
        }
    }
}

/// Polls lanes in turn until no shard is moving. Whatever has not arrived in the end is named in the
/// account.
pub(super) fn end_moves(lanes: &mut [Lane], migrator: &mut Migrator, clock: &Clock) {
    let mut last = clock.now() + SETTLE;
    while !migrator.is_idle() && clock.now() < last {
        if lanes.iter().any(|lane| lane.at_pool() > 0) {
            last = clock.now() + SETTLE;
        }
        migrator.step(clock.now());
        lanes.iter_mut().for_each(|lane| {
            lane.poll(clock.now());
        });
    }
}

/// Takes all flows home, polls lanes in turn until a whole round finds nothing and no pool works for them, then ends each of
/// them. Shards that are moving must have arrived. A flow that is with a lane that is not among these stays away, as the account
/// will tell.
pub fn run_dry(lanes: &mut [Lane], now: Time) {
    lanes.iter_mut().for_each(Lane::end_offloading);
    loop {
        let packets: usize = lanes.iter_mut().map(|lane| lane.poll(now).packets).sum();
        let awaits_pool = lanes.iter().any(|lane| lane.at_pool() > 0);
        let is_dry = |lane: &Lane| lane.handoff_waiting() == 0 && !lane.has_leaving_guests();
        if packets == 0 && !awaits_pool && lanes.iter().all(is_dry) {
            break;
        }
        if packets == 0 && awaits_pool {
            thread::yield_now();
        }
    }
    let latest = lanes.iter().map(Lane::latest).max().unwrap_or(now);
    for lane in lanes {
        lane.finish(latest);
    }
}

/// What stopped lanes leave to be checked, but for the pool, which must first get their buffers.
pub fn remains(lanes: &[Lane], devices: &[DeviceCounters], shards: usize) -> Remains {
    let mut owners = vec![0; shards];
    let mut flows_live = 0;
    for lane in lanes {
        lane.shards().for_each(|shard| {
            owners[shard.id.index()] += 1;
            flows_live += shard.table.counts().live;
        });
    }
    Remains {
        lanes: lanes.iter().map(|lane| lane.counters().sample()).collect(),
        devices: devices.to_vec(),
        owners,
        flows_live,
        may_reorder: lanes.iter().any(Lane::may_reorder),
        ..Remains::default()
    }
}
