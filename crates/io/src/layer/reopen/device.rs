//! The device, and who opens it anew.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rheostat_base::{DeviceId, QueueId};
use rheostat_steer::IndirectionTable;

use super::exchange::{Exchange, lock};
use super::monitor::{Behind, ReopenableMonitor};
use super::table::ReopenableTable;
use crate::device::{Device, DeviceMonitor, QueuePair};
use crate::error::OpenError;

/// How long lanes may take to receive what is left and take new queues. One that takes longer takes them later,
/// and its old ones are closed by the next [`Reopener::reopen`], or with the device.
const EXCHANGE: Duration = Duration::from_secs(5);
/// How often it is looked whether they have.
const GLANCE: Duration = Duration::from_millis(1);

/// Opens the device with its buckets placed so.
type Open = dyn Fn(Option<Vec<QueueId>>) -> Result<Box<dyn Device>, OpenError> + Send + Sync;

/// A device that can be opened anew while its lanes run.
pub struct ReopenableDevice {
    name: String,
    id: DeviceId,
    queues: Vec<QueuePair>,
    shared: Arc<Shared>,
}

/// Lets go of a device's interface, and opens it anew. Holds nothing of the device when that is dropped.
#[derive(Clone)]
pub struct Reopener(Arc<Shared>);

pub(super) struct Shared {
    open: Box<Open>,
    lanes: Vec<Arc<Exchange>>,
    /// What the queues lead to.
    pub(super) behind: Mutex<Behind>,
    was_reopened: AtomicBool,
}

impl ReopenableDevice {
    /// Opens a device by `open`, which is called with the placement of the buckets whenever it is opened anew.
    ///
    /// # Errors
    /// Those of `open`, and [`OpenError::Io`] when descriptors are lacking.
    pub fn open(
        open: impl Fn(Option<Vec<QueueId>>) -> Result<Box<dyn Device>, OpenError>
        + Send
        + Sync
        + 'static,
    ) -> Result<ReopenableDevice, OpenError> {
        let mut device = open(None)?;
        let (name, id) = (device.name().to_owned(), device.id());
        let exchanges = device.queues().into_iter().map(Exchange::new);
        let exchanges = exchanges.collect::<io::Result<Vec<_>>>();
        let fails = |source| OpenError::Io { device: name.clone(), source };
        let (lanes, queues) = exchanges.map_err(fails)?.into_iter().unzip();
        let shared = Arc::new(Shared {
            open: Box::new(open),
            lanes,
            behind: Mutex::new(Behind::new(device)),
            was_reopened: AtomicBool::new(false),
        });
        Ok(ReopenableDevice { name, id, queues, shared })
    }

    /// What opens it anew.
    pub fn reopener(&self) -> Reopener {
        Reopener(self.shared.clone())
    }
}

impl Reopener {
    /// The interface is gone: nothing arrives any more, and what is sent is left to the lanes.
    pub fn let_go(&self) {
        let monitor = lock(&self.0.behind).monitor.clone();
        self.0.lanes.iter().for_each(|lane| lane.let_go());
        monitor.let_go();
    }

    /// Opens the device anew, and gives lanes the new queues; `false` when the run is about to end. Takes as
    /// long as opening does, and then until lanes have received what is left in the old queues.
    ///
    /// # Errors
    /// [`OpenError`] when it cannot be opened; then everything is as it was.
    pub fn reopen(&self) -> Result<bool, OpenError> {
        let placement = lock(&self.0.behind).table.as_ref().map(|table| table.read());
        let mut device = (self.0.open)(placement)?;
        let queues = device.queues();
        let Some(old) = lock(&self.0.behind).replace(device) else { return Ok(false) };
        // Relaxed: read when the run is over.
        self.0.was_reopened.store(true, Ordering::Relaxed);
        let lanes = &self.0.lanes;
        let untaken: Vec<_> =
            lanes.iter().zip(queues).filter_map(|(lane, pair)| lane.offer(pair)).collect();
        drop(untaken);
        let start = Instant::now();
        let mut is_taken = false;
        while !is_taken && start.elapsed() < EXCHANGE {
            std::thread::sleep(GLANCE);
            is_taken = lanes.iter().all(|lane| lane.is_taken());
        }
        lanes.iter().for_each(|lane| drop(lane.take_old()));
        drop(old);
        if is_taken {
            lock(&self.0.behind).settle();
        }
        Ok(true)
    }
}

impl Device for ReopenableDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn id(&self) -> DeviceId {
        self.id
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        std::mem::take(&mut self.queues)
    }

    fn table(&self) -> Option<Arc<dyn IndirectionTable>> {
        let table = lock(&self.shared.behind).table.clone()?;
        Some(Arc::new(ReopenableTable { shared: self.shared.clone(), entries: table.len() }))
    }

    /// A table that is rewritten while the device is opened anew leads to the old lanes for a moment.
    fn may_place_late(&self) -> bool {
        let behind = lock(&self.shared.behind);
        let device = behind.device.as_ref();
        self.shared.was_reopened.load(Ordering::Relaxed)
            || device.is_some_and(|device| device.may_place_late())
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        Arc::new(ReopenableMonitor(self.shared.clone()))
    }
}

impl Drop for ReopenableDevice {
    fn drop(&mut self) {
        self.queues.clear();
        self.shared.lanes.iter().for_each(|lane| lane.close());
        let device = lock(&self.shared.behind).close();
        drop(device);
    }
}
