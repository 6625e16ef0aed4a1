//! A device that receives what a capture holds and writes what is sent into another.

use std::path::PathBuf;
use std::sync::Arc;

use crate::{Silence, Source};
use rheostat_base::DeviceId;
use rheostat_packet::Mempool;
use rheostat_steer::IndirectionTable;

use super::standard::{StandardInput, is_standard};
use super::{CaptureSource, CaptureStatus, CaptureWriter};
use crate::OpenError;
use crate::backend::sim::{SimConfig, SimNic, Stepper};
use crate::device::{Device, DeviceCounters, DeviceMonitor, QueuePair, Replay, SourceMonitor};
use crate::sharing::SharingCounters;
use crate::sink::{NullSink, Sink};

/// What a capture device is made from.
#[derive(Clone)]
pub struct PcapConfig {
    /// The capture to read, `-` for standard input; without one, nothing arrives.
    pub input: Option<PathBuf>,
    /// Where to write what is sent; without it, what is sent is counted and gone. Several devices may
    /// write into one file. The creator of the writer closes it.
    pub output: Option<CaptureWriter>,
    /// The simulated NIC between the captures and the lanes. [`crate::Pacing::Lossless`] reads as
    /// fast as the lanes take packets, [`crate::Pacing::Replay`] as recorded.
    pub nic: SimConfig,
}

/// A simulated NIC between two captures.
pub struct PcapDevice {
    nic: SimNic,
    monitor: Arc<PcapMonitor>,
}

struct PcapMonitor {
    nic: Arc<dyn DeviceMonitor>,
    status: Option<Arc<CaptureStatus>>,
}

impl PcapDevice {
    /// Opens the capture to read, if there is one, and makes the device. Packets lie in buffers of
    /// `pool`.
    ///
    /// # Errors
    /// [`OpenError`], naming the file, when it cannot be opened or read, or when the configuration of
    /// the NIC is impossible.
    pub fn open(config: PcapConfig, pool: &Mempool) -> Result<PcapDevice, OpenError> {
        let PcapConfig { input, output, nic } = config;
        let (source, status): (Box<dyn Source>, _) = match input {
            Some(path) if is_standard(&path) => {
                let source = StandardInput::open()?;
                let status = source.status();
                (Box::new(source), Some(status))
            }
            Some(path) => {
                let source = CaptureSource::open(&path)?;
                let status = source.status();
                (Box::new(source), Some(status))
            }
            None => (Box::new(Silence), None),
        };
        let sink = |_queue| -> Box<dyn Sink> {
            match &output {
                Some(writer) => writer.sink(),
                None => Box::new(NullSink),
            }
        };
        let nic = SimNic::open(nic, source, sink, pool)?;
        let monitor = Arc::new(PcapMonitor { nic: nic.monitor(), status });
        Ok(PcapDevice { nic, monitor })
    }

    /// As [`SimNic::stepper`].
    pub fn stepper(&mut self) -> Option<Stepper> {
        self.nic.stepper()
    }
}

impl Device for PcapDevice {
    fn name(&self) -> &str {
        self.nic.name()
    }

    fn id(&self) -> DeviceId {
        self.nic.id()
    }

    fn queues(&mut self) -> Vec<QueuePair> {
        self.nic.queues()
    }

    fn table(&self) -> Option<Arc<dyn IndirectionTable>> {
        self.nic.table()
    }

    fn as_replay(&mut self) -> Option<&mut dyn Replay> {
        self.nic.as_replay()
    }

    fn monitor(&self) -> Arc<dyn DeviceMonitor> {
        self.monitor.clone()
    }
}

impl DeviceMonitor for PcapMonitor {
    /// Records that could not be read count as arrived and dropped.
    fn counters(&self) -> DeviceCounters {
        let malformed = self.status.as_ref().map_or(0, |status| status.malformed());
        let counters = self.nic.counters();
        DeviceCounters { arrived: counters.arrived + malformed, malformed, ..counters }
    }

    fn is_exhausted(&self) -> bool {
        self.nic.is_exhausted()
    }

    fn stop(&self) {
        self.nic.stop();
    }

    fn sharing(&self) -> Vec<SharingCounters> {
        self.nic.sharing()
    }

    fn warnings(&self) -> Vec<String> {
        self.status.as_ref().map_or_else(Vec::new, |status| status.warnings())
    }

    fn source(&self) -> Option<&dyn SourceMonitor> {
        Some(self)
    }
}

impl SourceMonitor for PcapMonitor {
    fn progress(&self) -> Option<f64> {
        self.nic.source()?.progress()
    }
}
