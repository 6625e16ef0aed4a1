//! A run: lanes on worker threads from start to the last account.

mod build;
mod ending;
mod start_error;

pub use build::{FLOWS_AWAY, build_lanes};
pub use ending::{remains, run_dry};
pub use start_error::StartError;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use rheostat_base::sync::try_lock::TryLock;
use rheostat_base::{Clock, ClockSource, CoreId, Histogram, LaneId};
use rheostat_capture::{Epoch, Mirrors};
use rheostat_io::Device;
use rheostat_io::layer::shared_receive::Sharing;
use rheostat_kernel::core_set::pin_current_thread;
use rheostat_packet::Mempool;
use rheostat_state::{FlowHasher, Shard};
use rheostat_steer::Steering;

use self::build::build_replaying;
use self::ending::{WorkerHandle, end_moves, join_worker};
use crate::account::LaneSample;
use crate::cell::{LaneCell, LaneCells};
use crate::classes::Classes;
use crate::crew::{Crew, LaneNotifier};
use crate::invariant::{Remains, Violation, check_monotone};
use crate::lane::{Lane, LaneTimes, TimeSource};
use crate::load::LoadReporting;
use crate::metrics::Metrics;
use crate::migrate::{Migrator, Move, MoveError};
use crate::poll::Polling;
use crate::polling::PollingBoard;
use crate::queue_map::QueueMap;
use crate::service::Service;
use crate::stages::{StageSwitch, StageTimes};
use crate::view::{LaneMetrics, RunView, Sample};
use crate::worker::{Start, Worker};

/// How lanes are laid over devices and threads.
pub struct RuntimeConfig {
    /// How many lanes; every device must have as many queues.
    pub lanes: usize,
    /// Which queue of each device a lane polls.
    pub queues: QueueMap,
    /// One entry per worker: the core it is pinned to, if any. Lane `n` runs on worker `n mod workers`, except where
    /// workers share lanes.
    pub workers: Vec<Option<CoreId>>,
    /// What an idle worker does.
    pub polling: Polling,
    /// Packets each ring between two lanes holds, and each queue of packets that wait for a shard which
    /// is moving.
    pub handoff_capacity: usize,
    /// What counts as time.
    pub time: TimeSource,
    /// The pool all packets of the run come from.
    pub pool: Mempool,
    /// Places packets in shards.
    pub steering: Arc<Steering>,
    /// Hashes keys for the flow tables.
    pub hasher: FlowHasher,
    /// What lanes report of their load. Without [`LoadReporting::Shards`], a policy that moves shards sees
    /// no shard that it could move.
    pub reporting: LoadReporting,
    /// How many lanes, which receive from one queue, own the shards of its packets together; 1 where each shard belongs to one
    /// lane. Of use for services that keep state per flow, and have no packets that wait for a pool.
    pub claimants: usize,
    /// How lanes share the receive queues of devices, one lane at a time; `None` where each lane has queues of its own. All lanes
    /// own all shards together then, whatever `claimants` is, and packets enter each shard in the order of their arrival. For
    /// services that keep state per flow, and have no packets that wait for a pool ([`DeferredWork::settles_by_shard`](crate::DeferredWork::settles_by_shard)).
    pub sharing: Option<Sharing>,
    /// How many lanes, the last of the run, own no shard at the start and are offloading lanes, to each of which some others send
    /// single flows; 0 where all flows stay. Fewer than half of the lanes or half of them. The service must let flows leave
    /// ([`Service::offloading`]), or none does.
    pub offloading: usize,
    /// Whether flows may leave though no lane is an offloading lane at the start: a policy decides which are
    /// ([`Migrator::offload_shares`]). It needs `classes`, too.
    pub plans_offloading: bool,
    /// What is measured of classes of traffic, if anything is.
    pub classes: Option<Arc<Classes>>,
    /// Whether lanes note how long each stage takes ([`RunReport::stages`]), and from when on. Costs some nanoseconds per packet.
    pub stages: Option<StageSwitch>,
    /// Whether lanes note how long packets take to them from the homes of their flows ([`RunReport::hops`]), and from when on.
    pub hops: Option<StageSwitch>,
}

impl RuntimeConfig {
    /// The settings of `lanes` lanes without those that most runs leave alone: lane `n` polls queue `n`, on a worker of its
    /// own that is bound to no core and polls without pause; each ring between two lanes has room for the whole pool, so
    /// none refuses a packet; time is that of the poll; lanes report the load of shards, and no stages.
    ///
    /// A run that differs changes these fields: `RuntimeConfig { time, ..RuntimeConfig::new(…) }`. Rings as large as the pool
    /// take the memory of [`handoff_bytes`](crate::handoff_bytes): a run of many lanes names its `handoff_capacity`.
    pub fn new(
        lanes: usize,
        pool: Mempool,
        steering: Arc<Steering>,
        hasher: FlowHasher,
    ) -> RuntimeConfig {
        RuntimeConfig {
            lanes,
            queues: QueueMap::default(),
            workers: vec![None; lanes],
            polling: Polling::default(),
            handoff_capacity: pool.capacity(),
            time: TimeSource::Poll,
            pool,
            steering,
            hasher,
            reporting: LoadReporting::default(),
            claimants: 1,
            sharing: None,
            offloading: 0,
            plans_offloading: false,
            classes: None,
            stages: None,
            hops: None,
        }
    }

    /// How many lanes own shards together.
    pub(crate) fn claimants(&self) -> usize {
        if self.sharing.is_some() { self.lanes } else { self.claimants }
    }
}

/// A run under way.
pub struct Runtime {
    workers: Vec<WorkerHandle>,
    lanes: Arc<LaneCells>,
    stop: Arc<AtomicBool>,
    crew: Arc<Crew>,
    view: Arc<RunView>,
    times: Vec<Arc<LaneTimes>>,
    devices: Vec<Box<dyn Device>>,
    pool: Mempool,
    shards: usize,
    last_sample: Vec<LaneSample>,
    violations: Vec<Violation>,
}

/// How long moving shards took in a run, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct MigrationTimes {
    /// From the start of a move to the shard's arrival.
    pub moved: Histogram,
    /// How long each packet waited for its shard.
    pub held: Histogram,
    /// From the command that gave a parked lane a shard to the poll that applied it.
    pub woken: Histogram,
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct RunReport {
    /// The figures at the end.
    pub last: Sample,
    /// The names of the devices.
    pub device_names: Vec<String>,
    /// What was wrong with the devices' sources.
    pub warnings: Vec<String>,
    /// What did not hold; empty for a sound run.
    pub violations: Vec<Violation>,
    /// What the service has counted.
    pub metrics: Metrics,
    /// How long moving shards took.
    pub migration: MigrationTimes,
    /// How long each stage took, if lanes were asked to note it.
    pub stages: Arc<StageTimes>,
    /// Nanoseconds from the publication of a packet by its flow's home until the lane that the flow is with was about to process it,
    /// if lanes were asked to note it.
    pub hops: Histogram,
}

impl Runtime {
    /// Starts the workers, with a service for each lane, and all shards in the order of their numbers.
    ///
    /// # Errors
    /// [`StartError`] when devices, lanes and shards do not fit, or a thread cannot be started.
    pub fn start(
        config: RuntimeConfig,
        devices: Vec<Box<dyn Device>>,
        clock: Clock,
        mut service: impl FnMut(LaneId) -> Box<dyn Service>,
        shards: impl IntoIterator<Item = Box<Shard>>,
    ) -> Result<Runtime, StartError> {
        Runtime::start_all(config, devices, clock, &mut service, shards.into_iter().collect())
    }

    /// As [`Runtime::start`], compiled once for all callers.
    fn start_all(
        config: RuntimeConfig,
        mut devices: Vec<Box<dyn Device>>,
        clock: Clock,
        service: &mut dyn FnMut(LaneId) -> Box<dyn Service>,
        shards: Vec<Box<Shard>>,
    ) -> Result<Runtime, StartError> {
        devices.iter_mut().for_each(|device| device.await_begin());
        let (mut lanes, barrier) = build_replaying(&config, &mut devices, service, shards)?;
        let tables = devices.iter().filter_map(|device| device.table()).collect();
        let mut migrator = Migrator::new(&mut lanes, tables);
        migrator.route_by(config.queues.clone());
        let crew = config.polling.crew(config.workers.len(), lanes.len())?;
        let notifiers = crew.lane_notifiers(lanes.len());
        let epoch = match config.time {
            TimeSource::Packet => Epoch::Unix,
            TimeSource::Poll => Epoch::Clock(unix_start(&clock)),
        };
        let mirrors = Mirrors::new(lanes.len(), Arc::new(clock.clone()), epoch);
        for lane in &mut lanes {
            lane.mirror_to(Mirrors::of_lane(&mirrors, lane.id()));
            lane.wake_by(notifiers.clone());
            lane.go_by(clock.clone());
        }
        migrator.wake_by(notifiers.clone());
        let queues = config.queues.clone();
        barrier.announce_by(move |queue| notifiers[queues.lane_of(queue).index()].wake());
        let (name, mode) = (config.polling.name(), config.polling.mode());
        let board = PollingBoard::new(name, mode, lanes.len(), config.workers.len());
        lanes.iter().enumerate().for_each(|(n, lane)| board.set_parked(n, lane.is_parked()));
        let board = Arc::new(board);
        let joint_shards = if config.claimants() > 1 { config.steering.shards() } else { 0 };
        let metrics = LaneMetrics::of(&lanes, config.classes.clone(), board.clone(), joint_shards);
        let times = lanes.iter().map(Lane::times).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let count = config.workers.len();
        let mut bound: Vec<Vec<LaneId>> = vec![Vec::new(); count];
        for lane in &lanes {
            bound[lane.id().index() % count].push(lane.id());
        }
        let cells: Arc<LaneCells> =
            Arc::new(lanes.into_iter().map(LaneCell::new).map(TryLock::new).collect());
        let mut runtime = Runtime {
            workers: Vec::new(),
            lanes: cells.clone(),
            stop: stop.clone(),
            crew: crew.clone(),
            last_sample: vec![LaneSample::default(); metrics.counters.len()],
            view: Arc::new(RunView::new(
                metrics,
                migrator,
                &devices,
                mirrors,
                config.steering.clone(),
                clock.clone(),
            )),
            times,
            devices,
            pool: config.pool,
            shards: config.steering.shards(),
            violations: Vec::new(),
        };
        let shifts: Vec<_> = bound.into_iter().map(|bound| config.polling.shift(bound)).collect();
        let monitors = runtime.view.monitors.clone();
        let start =
            Start::new(shifts.iter().flatten().count(), monitors, crew.clone(), clock.clone());
        for (index, (shift, core)) in shifts.into_iter().zip(config.workers).enumerate() {
            let Some(shift) = shift else { continue };
            let ready = Start::worker(&start);
            let worker = Worker {
                lanes: cells.clone(),
                board: board.clone(),
                clock: clock.clone(),
                stop: stop.clone(),
                index,
                crew: crew.clone(),
                reporting: config.reporting,
            };
            let thread = thread::Builder::new().name(format!("rheo-worker-{index}"));
            let body = move || {
                if let Some(core) = core {
                    pin_current_thread(core)?;
                }
                worker.run(shift, ready);
                Ok(())
            };
            match thread.spawn(body) {
                Ok(handle) => runtime.workers.push(handle),
                Err(error) => {
                    runtime.stop.store(true, Ordering::Relaxed);
                    return Err(error.into());
                }
            }
        }
        Ok(runtime)
    }

    /// The figures now. Also compares them with the last ones: no counter may go back.
    pub fn sample(&mut self) -> Sample {
        let sample = self.view.sample();
        self.violations.extend(check_monotone(&self.last_sample, &sample.lanes));
        self.last_sample.clone_from(&sample.lanes);
        sample
    }

    /// What others may see of the run while it goes on.
    pub fn view(&self) -> Arc<RunView> {
        self.view.clone()
    }

    /// What wakes lanes that sleep, in the order of the lanes: for threads that bring work for a lane's service, which that finds
    /// when it is next called.
    pub fn lane_notifiers(&self) -> Vec<LaneNotifier> {
        self.crew.lane_notifiers(self.view.lanes())
    }

    /// Begins to move shards between lanes, all together.
    ///
    /// # Errors
    /// [`MoveError`], and nothing is moved.
    pub fn migrate(&self, moves: &[Move]) -> Result<(), MoveError> {
        self.migrator().start(moves, self.view.now())
    }

    /// Does what can be done now for shards that are moving, and returns whether all have arrived; to be
    /// called again and again until then.
    pub fn step_migrator(&self) -> bool {
        let mut migrator = self.migrator();
        migrator.step(self.view.now());
        migrator.is_idle()
    }

    /// The migrator, which moves shards and knows their owners.
    pub fn migrator(&self) -> MutexGuard<'_, Migrator> {
        self.view.migrator()
    }

    /// How much of the input has been read, where it has a known size: that of the slowest device.
    pub fn progress(&self) -> Option<f64> {
        let monitors = self.view.monitors.iter();
        monitors.filter_map(|monitor| monitor.source()?.progress()).reduce(f64::min)
    }

    /// Stops the devices' sources; what has arrived is still processed.
    pub fn stop_sources(&self) {
        for monitor in &self.view.monitors {
            monitor.stop();
        }
    }

    /// How long moving shards took so far.
    pub fn migration_times(&self) -> MigrationTimes {
        let times = MigrationTimes::default();
        times.moved.add(self.migrator().durations());
        for lane in &self.times {
            times.held.add(&lane.held);
            times.woken.add(&lane.woken);
        }
        times
    }

    /// The lanes, once all workers have ended, but for those whose worker panicked.
    fn take_lanes(&mut self) -> Vec<Lane> {
        let cells = Arc::into_inner(std::mem::take(&mut self.lanes));
        cells.into_iter().flatten().filter_map(TryLock::into_inner).map(|cell| cell.lane).collect()
    }

    fn stop_workers(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.crew.wake_all();
    }

    /// Whether nothing is left to do: every source has ended and its packets have gone through. Also
    /// when a worker has ended on its own, because then nothing will.
    pub fn is_finished(&self) -> bool {
        if self.workers.iter().any(JoinHandle::is_finished) {
            return true;
        }
        if !self.view.monitors.iter().all(|monitor| monitor.is_exhausted()) {
            return false;
        }
        let lanes: Vec<_> =
            self.view.lane_metrics.counters.iter().map(|counters| counters.sample()).collect();
        let sum = LaneSample::sum(&lanes);
        sum.handoff_in == sum.handoff_out && sum.at_pool == 0
    }

    /// Stops the workers, lets the lanes run dry on this thread, and draws up the account.
    ///
    /// # Errors
    /// [`StartError::Pin`] when a worker could not be pinned and so never ran.
    pub fn join(mut self) -> Result<RunReport, StartError> {
        self.stop_sources();
        self.stop_workers();
        for (worker, handle) in std::mem::take(&mut self.workers).into_iter().enumerate() {
            self.violations.extend(join_worker(worker, handle)?);
        }
        let mut lanes = self.take_lanes();
        let stopped = self.view.clock.now();
        lanes.iter_mut().for_each(|lane| lane.close_time(stopped));
        self.view.lane_metrics.board.end(stopped);
        if lanes.len() == self.view.lanes() {
            end_moves(&mut lanes, &mut self.view.migrator(), &self.view.clock);
        }
        run_dry(&mut lanes, self.view.clock.now());
        let mut last = self.sample();
        let remains = remains(&lanes, &last.devices, self.shards);
        last.lanes =
            self.view.lane_metrics.counters.iter().map(|counters| counters.sample()).collect();
        let mut metrics = Metrics::default();
        lanes.iter().for_each(|lane| lane.add_metrics(&mut metrics));
        if let Some(lane) = lanes.first() {
            lane.add_shared_metrics(&mut metrics);
        }
        let migration = self.migration_times();
        let stages = Arc::new(StageTimes::default());
        lanes.iter().filter_map(Lane::stage_times).for_each(|times| stages.add(times));
        let hops = Histogram::default();
        lanes.iter().filter_map(Lane::hops).for_each(|times| hops.add(times));
        drop(lanes);
        let (warnings, device_names) = (self.warnings(), self.device_names());
        let may_place_late = self.devices.iter().any(|device| device.may_place_late());
        drop(std::mem::take(&mut self.devices));
        let (buffers, buffers_home) = (self.pool.capacity(), self.pool.available());
        let remains = Remains {
            lanes: last.lanes.clone(),
            buffers,
            buffers_home,
            rewrites: self.view.rewrites(),
            may_place_late,
            ..remains
        };
        let mut violations = std::mem::take(&mut self.violations);
        violations.extend(remains.check());
        Ok(RunReport { last, device_names, warnings, violations, metrics, migration, stages, hops })
    }
}

/// Nanoseconds since 1970 at which the clock began.
fn unix_start(clock: &Clock) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64).saturating_sub(clock.now().as_nanos())
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.stop_workers();
        for worker in self.workers.drain(..) {
            // A panic was reported by `join`, or the run is being given up.
            let _ = worker.join();
        }
    }
}
