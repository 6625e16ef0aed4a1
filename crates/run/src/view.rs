//! What others see of a run while it goes on, and the little they can change.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rheostat_base::{Clock, ClockSource, DeviceId, DropReason, QueueId, Time, sync};
use rheostat_capture::{Epoch, Mirrors};
use rheostat_io::{Device, DeviceCounters, DeviceMonitor, SharingCounters, SourceWork};
use rheostat_steer::{Fence, HashKey, IndirectionTable, RewriteError, Steering};
use thiserror::Error;

use crate::account::{LaneCounters, LaneSample};
use crate::classes::{ClassFigures, Classes};
use crate::lane::{Lane, LaneTimes};
use crate::live_metrics::{LiveMetrics, MetricsRequest};
use crate::load::ShardLoads;
use crate::migrate::Migrator;
use crate::poll::metronome::Mode;
use crate::polling::{PollingBoard, PollingSample};

/// How often it is looked whether lanes have to be asked again.
const GLANCE: Duration = Duration::from_millis(1);

/// The figures of a run at one moment.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Seconds since the start.
    pub seconds: f64,
    /// Each lane's counters.
    pub lanes: Vec<LaneSample>,
    /// Each device's counters.
    pub devices: Vec<DeviceCounters>,
    /// How lanes are polled.
    pub polling: PollingSample,
    /// What it took to make packets arrive at devices whose source is no part of any lane's work, by the devices' names.
    pub sources: Vec<(String, SourceWork)>,
    /// What the lanes that share a queue have counted, by the devices' names and in the order of their queues.
    pub sharing: Vec<(String, SharingCounters)>,
    /// Shards that the lanes of a queue own together; 0 where each belongs to one lane.
    pub joint_shards: usize,
}

impl Sample {
    /// Packets that have arrived at devices.
    pub fn arrived(&self) -> u64 {
        self.devices.iter().map(|device| device.arrived).sum()
    }

    /// Packets dropped by lanes and devices, by reason; reasons without drops are left out.
    pub fn dropped(&self) -> impl Iterator<Item = (DropReason, u64)> {
        let mut dropped = LaneSample::sum(&self.lanes).dropped;
        for device in &self.devices {
            dropped[DropReason::QueueFull as usize] += device.queue_full.iter().sum::<u64>();
            dropped[DropReason::NoBuffer as usize] += device.no_buffer;
            dropped[DropReason::FillEmpty as usize] += device.fill_empty;
            dropped[DropReason::Oversize as usize] += device.oversize;
            dropped[DropReason::Malformed as usize] += device.malformed;
        }
        let counted = DropReason::all().map(move |reason| (reason, dropped[reason as usize]));
        counted.filter(|(_, count)| *count > 0)
    }
}

/// A view of a run, for any thread. It stays valid, and stands still, when the run is over.
pub struct RunView {
    pub(crate) lane_metrics: LaneMetrics,
    pub(crate) monitors: Vec<Arc<dyn DeviceMonitor>>,
    pub(crate) clock: Clock,
    migrator: Mutex<Migrator>,
    names: Vec<String>,
    tables: Vec<Option<Arc<dyn IndirectionTable>>>,
    mirrors: sync::Arc<Mirrors>,
    steering: Arc<Steering>,
    started: Time,
    rewrites: AtomicU64,
}

/// What lanes count, in their order.
#[derive(Debug)]
pub(crate) struct LaneMetrics {
    pub(crate) counters: Vec<Arc<LaneCounters>>,
    loads: Vec<ShardLoads>,
    away: Vec<ShardLoads>,
    guests: Vec<ShardLoads>,
    times: Vec<Arc<LaneTimes>>,
    /// None where classes are not measured.
    figures: Vec<Arc<ClassFigures>>,
    classes: Option<Arc<Classes>>,
    pub(crate) board: Arc<PollingBoard>,
    /// Shards that several lanes own together.
    joint_shards: usize,
}

impl LaneMetrics {
    pub(crate) fn of(
        lanes: &[Lane],
        classes: Option<Arc<Classes>>,
        board: Arc<PollingBoard>,
        joint_shards: usize,
    ) -> LaneMetrics {
        LaneMetrics {
            counters: lanes.iter().map(Lane::counters).collect(),
            loads: lanes.iter().map(Lane::loads).collect(),
            away: lanes.iter().map(Lane::away_loads).collect(),
            guests: lanes.iter().map(Lane::guest_loads).collect(),
            times: lanes.iter().map(Lane::times).collect(),
            figures: lanes.iter().filter_map(Lane::class_figures).collect(),
            classes,
            board,
            joint_shards,
        }
    }
}

/// Why a device's table was not rewritten.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TableError {
    /// There is no such device.
    #[error("there is no device `{device}`; the devices are {devices}")]
    Device {
        /// What was requested.
        device: String,
        /// What there is.
        devices: String,
    },
    /// The device places packets by itself.
    #[error("device `{0}` has no indirection table")]
    NoTable(String),
    /// The entries do not fit.
    #[error(transparent)]
    Entries(#[from] RewriteError),
}

impl RunView {
    pub(crate) fn new(
        lane_metrics: LaneMetrics,
        migrator: Migrator,
        devices: &[Box<dyn Device>],
        mirrors: sync::Arc<Mirrors>,
        steering: Arc<Steering>,
        clock: Clock,
    ) -> RunView {
        RunView {
            lane_metrics,
            migrator: Mutex::new(migrator),
            monitors: devices.iter().map(|device| device.monitor()).collect(),
            names: devices.iter().map(|device| device.name().to_owned()).collect(),
            tables: devices.iter().map(|device| device.table()).collect(),
            mirrors,
            steering,
            started: clock.now(),
            clock,
            rewrites: AtomicU64::new(0),
        }
    }

    /// A view of a run without lanes and devices, for tests of readers.
    pub fn empty() -> RunView {
        let clock = Clock::new();
        let mirrors = Mirrors::new(0, Arc::new(clock.clone()), Epoch::Clock(0));
        let steering = Steering::new(&HashKey::symmetric(), 1, 1, Vec::new());
        let steering = Arc::new(steering.expect("one bucket and one shard"));
        let board = Arc::new(PollingBoard::new("busy", Mode::Busy, 0, 0));
        let lanes = LaneMetrics::of(&[], None, board, 0);
        RunView::new(lanes, Migrator::default(), &[], mirrors, steering, clock)
    }

    /// The time of the run's clock.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// The migrator, to be stepped while shards are moving. Other threads that want it wait meanwhile, so hold it briefly.
    pub fn migrator(&self) -> MutexGuard<'_, Migrator> {
        // Its own bugs apart, nothing in it panics; and the account shows whatever is wrong then.
        self.migrator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What each shard has cost each lane since the start, in the order of lanes.
    pub fn loads(&self) -> &[ShardLoads] {
        &self.lane_metrics.loads
    }

    /// What of that was sent to the lanes with which flows are. In lanes whose flows cannot leave, no shard is counted.
    pub fn away_loads(&self) -> &[ShardLoads] {
        &self.lane_metrics.away
    }

    /// What flows of other lanes have cost each lane, by their shard. As with [`RunView::away_loads`].
    pub fn guest_loads(&self) -> &[ShardLoads] {
        &self.lane_metrics.guests
    }

    /// What each lane has taken time for, in the order of lanes.
    pub fn lane_times(&self) -> &[Arc<LaneTimes>] {
        &self.lane_metrics.times
    }

    /// Whether flows may leave their lanes.
    pub fn flows_leave(&self) -> bool {
        self.lane_metrics.away.iter().any(|lane| lane.iter().next().is_some())
    }

    /// What each lane has measured of classes; none where they are not measured.
    pub fn class_figures(&self) -> &[Arc<ClassFigures>] {
        &self.lane_metrics.figures
    }

    /// The classes, where they are measured.
    pub fn classes(&self) -> Option<&Arc<Classes>> {
        self.lane_metrics.classes.as_ref()
    }

    /// The figures now.
    pub fn sample(&self) -> Sample {
        Sample {
            seconds: self.clock.now().since(self.started).as_secs_f64(),
            lanes: self.lane_metrics.counters.iter().map(|counters| counters.sample()).collect(),
            devices: self.monitors.iter().map(|monitor| monitor.counters()).collect(),
            polling: self.lane_metrics.board.sample(self.started, self.clock.now()),
            sources: self.sources(),
            sharing: self.sharing(),
            joint_shards: self.lane_metrics.joint_shards,
        }
    }

    /// What the service has counted so far, in lanes, in shards and on shared objects; without rankings. Each lane answers at its next
    /// poll, in some microseconds and one more for each hundred shards or so; waits for them no longer than `patience`, and leaves
    /// out what has not come by then.
    pub fn metrics(&self, patience: Duration) -> LiveMetrics {
        let end = Instant::now() + patience;
        let shards = self.migrator().owners().len();
        let request = Arc::new(MetricsRequest::new(self.lanes(), shards));
        loop {
            self.migrator().request_metrics(&request);
            let left = end.saturating_duration_since(Instant::now());
            if request.wait(left.min(GLANCE)) || left.is_zero() {
                return request.so_far();
            }
        }
    }

    fn sharing(&self) -> Vec<(String, SharingCounters)> {
        let devices = self.names.iter().zip(&self.monitors);
        let queues = devices.flat_map(|(name, monitor)| {
            monitor.sharing().into_iter().map(move |queue| (name.clone(), queue))
        });
        queues.collect()
    }

    fn sources(&self) -> Vec<(String, SourceWork)> {
        let devices = self.names.iter().zip(&self.monitors);
        devices
            .filter_map(|(name, monitor)| Some((name.clone(), monitor.source()?.work()?)))
            .collect()
    }

    /// Where to look at the packets of the run.
    pub fn mirrors(&self) -> &sync::Arc<Mirrors> {
        &self.mirrors
    }

    /// How packets are placed.
    pub fn steering(&self) -> &Arc<Steering> {
        &self.steering
    }

    /// How many lanes the run has.
    pub fn lanes(&self) -> usize {
        self.lane_metrics.counters.len()
    }

    /// The names of the devices, in the order of their numbers.
    pub fn devices(&self) -> &[String] {
        &self.names
    }

    /// Lets a device go by another MTU of its link, in bytes of IP.
    pub fn set_mtu(&self, device: DeviceId, mtu: u32) {
        let monitor = self.monitors.get(device.index());
        if let Some(interface) = monitor.and_then(|monitor| monitor.interface()) {
            interface.set_mtu(mtu);
        }
    }

    /// The longest packet that a device can carry as it was opened, in bytes of IP; `None` where only its link
    /// sets a bound.
    pub fn longest_packet(&self, device: DeviceId) -> Option<u32> {
        self.monitors.get(device.index())?.interface()?.longest_packet()
    }

    /// The entries of a device's indirection table.
    ///
    /// # Errors
    /// [`TableError`] when there is no such device, or it has no table.
    pub fn table(&self, device: &str) -> Result<Vec<QueueId>, TableError> {
        Ok(self.find(device)?.read())
    }

    /// Rewrites a device's indirection table. Shards stay where they are: a packet that now reaches
    /// another lane is handed to the owner of its shard, and packets of a flow may overtake each
    /// other where the old way and the new one meet.
    ///
    /// # Errors
    /// [`TableError`], and nothing is changed.
    pub fn rewrite(&self, device: &str, entries: &[QueueId]) -> Result<Fence, TableError> {
        let fence = self.find(device)?.rewrite(entries)?;
        // Relaxed: read once the run is over, through the join of its threads.
        self.rewrites.fetch_add(1, Ordering::Relaxed);
        Ok(fence)
    }

    /// How many times tables were rewritten while the run went on.
    pub fn rewrites(&self) -> u64 {
        self.rewrites.load(Ordering::Relaxed)
    }

    fn find(&self, device: &str) -> Result<&Arc<dyn IndirectionTable>, TableError> {
        let Some(number) = self.names.iter().position(|name| name == device) else {
            let devices = self.names.join(", ");
            return Err(TableError::Device { device: device.to_owned(), devices });
        };
        self.tables[number].as_ref().ok_or_else(|| TableError::NoTable(device.to_owned()))
    }
}

impl std::fmt::Debug for RunView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunView").field("devices", &self.names).finish_non_exhaustive()
    }
}
