//! A device that receives what a capture holds and writes what is sent into another.

use std::path::PathBuf;
use std::sync::Arc;

use crate::{Silence, Source};
use rheostat_packet::Mempool;

use super::standard::{StandardInput, is_standard};
use super::{CaptureSource, CaptureStatus, CaptureWriter};
use crate::OpenError;
use crate::backend::sim::{SimConfig, SimNic};
use crate::device::{Device, DeviceCounters};
use crate::layer::layered::{LayerBooks, LayeredDevice};
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

/// Opens the capture to read, if there is one, and makes the device. Packets lie in buffers of
/// `pool`.
///
/// # Errors
/// [`OpenError`], naming the file, when it cannot be opened or read, or when the configuration of
/// the NIC is impossible.
pub fn open_capture(config: PcapConfig, pool: &Mempool) -> Result<LayeredDevice, OpenError> {
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
    let mut nic = SimNic::open(nic, source, sink, pool)?;
    let queues = nic.queues();
    Ok(LayeredDevice::with_books(Box::new(nic), queues, CaptureBooks(status)))
}

/// What was read of the capture, if one is.
struct CaptureBooks(Option<Arc<CaptureStatus>>);

impl LayerBooks for CaptureBooks {
    fn counters(&self, inner: DeviceCounters) -> DeviceCounters {
        let malformed = self.0.as_ref().map_or(0, |status| status.malformed());
        DeviceCounters { arrived: inner.arrived + malformed, malformed, ..inner }
    }

    fn warnings(&self, _inner: Vec<String>) -> Vec<String> {
        self.0.as_ref().map_or_else(Vec::new, |status| status.warnings())
    }
}
