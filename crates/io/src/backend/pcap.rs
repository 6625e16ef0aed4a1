//! Captures as devices: files in the pcap and pcapng formats, read as they would have arrived and
//! written as packets are sent.

mod device;
mod encode;
mod framing;
mod legacy;
mod ng;
mod read_error;
mod reader;
mod record;
mod source;
mod standard;
mod writer;

pub use device::{PcapConfig, open_capture};
pub use read_error::{FormatError, ReadError};
pub use reader::{CaptureReader, read_all};
pub use record::{Record, RecordBuf};
pub use source::{CaptureSource, CaptureStatus};
pub use standard::is_standard;
pub use writer::{CaptureWriter, WriteError, WriteSummary};
