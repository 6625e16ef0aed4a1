//! The simulated NIC as a device.

use std::sync::{Arc, OnceLock};

use crate::Source;
use rheostat_base::{DeviceId, QueueId};
use rheostat_packet::Mempool;
use rheostat_steer::{GenerationTable, IndirectionTable};

use super::config::{Driver, SimConfig};
use super::counters::{Arrivals, Sent};
use super::descriptor_ring::descriptor_ring;
use super::driver::{Drive, DriverThread, Stepper};
use super::monitor::SimMonitor;
use super::nic::{Nic, Settled};
use super::pacing::Pacing;
use super::receive::SimRx;
use super::transmit::{SimTx, TransmitRing};
use crate::OpenError;
use crate::device::{Device, DeviceMonitor, QueuePair};
use crate::settlement::Settlement;
use crate::sink::Sink;

/// A network interface in the process.
///
/// Dropping it stops the source and, where it has one, joins its thread; what has arrived can still be
/// received.
pub struct SimNic {
    name: String,
    id: DeviceId,
    table: Arc<GenerationTable>,
    queues: Vec<QueuePair>,
    monitor: Arc<SimMonitor>,
    stepper: Option<Stepper>,
    /// Whether packets wait until there is room for them.
    lossless: bool,
    settlement: Arc<OnceLock<Settled>>,
    /// Only to be dropped with the device.
    _thread: Option<DriverThread>,
}

impl SimNic {
    /// Makes the device: packets come from `source`, and those sent through a queue go to the sink
    /// that `sink` gives for it. A thread of the device takes its buffers from `pool`.
    ///
    /// # Errors
    /// [`OpenError`] when the configuration is impossible or no thread can be started.
    pub fn open(
        config: SimConfig,
        source: Box<dyn Source>,
        mut sink: impl FnMut(QueueId) -> Box<dyn Sink>,
        pool: &Mempool,
    ) -> Result<SimNic, OpenError> {
        config.check()?;
        let table = Arc::new(GenerationTable::new(config.steering.buckets(), config.queues.into()));
        let (nic_sides, lane_sides): (Vec<_>, Vec<_>) =
            (0..config.queues).map(|_| descriptor_ring(config.descriptors)).unzip();
        let arrivals = Arc::new(Arrivals::new(config.queues));
        let sent: Vec<Arc<Sent>> = (0..config.queues).map(|_| Arc::default()).collect();
        let waiting = nic_sides.iter().map(|side| side.gauge()).collect();
        let settlement = Arc::new(OnceLock::new());
        let nic = Nic::new(
            &config,
            source,
            nic_sides,
            table.clone(),
            arrivals.clone(),
            settlement.clone(),
        );
        let drive = Arc::new(Drive::new(nic));
        let pump = matches!(config.driver, Driver::Pumped).then(|| drive.clone());
        let queues = lane_sides
            .into_iter()
            .zip(&sent)
            .zip(0..)
            .map(|((ring, sent), number)| {
                let transmit_ring = config
                    .transmit_descriptors
                    .map(|descriptors| TransmitRing::new(descriptors, config.link_rate));
                QueuePair {
                    rx: Box::new(SimRx::new(ring, pump.clone(), config.pacing)),
                    tx: Box::new(SimTx::new(sink(QueueId(number)), sent.clone(), transmit_ring)),
                }
            })
            .collect();
        let (stepper, thread) = match config.driver {
            Driver::Pumped => (None, None),
            Driver::Stepped => (Some(Stepper::new(drive.clone())), None),
            Driver::Threaded(clock) => {
                let thread = DriverThread::start(&config.name, drive.clone(), clock, pool.clone())
                    .map_err(|source| OpenError::Thread { device: config.name.clone(), source })?;
                (None, Some(thread))
            }
        };
        Ok(SimNic {
            id: config.device,
            name: config.name,
            table,
            queues,
            monitor: Arc::new(SimMonitor { drive, arrivals, sent, waiting }),
            stepper,
            lossless: config.pacing == Pacing::Lossless,
            settlement,
            _thread: thread,
        })
    }

    /// Takes the handle that makes packets arrive at a stepped NIC; `None` for the other drivers, and
    /// the second time.
    pub fn stepper(&mut self) -> Option<Stepper> {
        self.stepper.take()
    }
}

impl Device for SimNic {
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
        Some(self.table.clone())
    }

    fn settle_by(&mut self, settlement: Arc<Settlement>) {
        let reader = self.lossless.then(|| settlement.join(self.monitor.drive.first_stamp()));
        // Set once: lanes are built once for a device.
        let _ = self.settlement.set(Settled { settlement, reader });
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.monitor.clone()
    }
}

impl Drop for SimNic {
    fn drop(&mut self) {
        self.monitor.drive.stop();
    }
}
