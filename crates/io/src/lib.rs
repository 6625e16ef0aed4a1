//! Devices and their queues: the simulated NIC and captures, and programs in the kernel for live ones.

pub mod backend;
pub mod device;
pub mod error;
#[cfg(not(any(loom, shuttle)))]
pub mod kind;
pub mod layer;
mod lock;
pub mod replay_barrier;
mod responder;
pub mod segmentation;
pub mod sharing;
pub mod sink;
mod source;
mod sys;

#[cfg(not(any(loom, shuttle)))]
pub use backend::af_packet::{PacketConfig, PacketDevice};
#[cfg(not(any(loom, shuttle)))]
pub use backend::af_xdp::{CopyMode, XdpConfig, XdpDevice};
#[cfg(not(any(loom, shuttle)))]
pub use backend::cable::{CableDevice, CableEnd, HeldEnd, cable};
#[cfg(not(any(loom, shuttle)))]
pub use backend::interface_error::InterfaceError;
pub use backend::pcap::{
    CaptureReader, CaptureSource, CaptureStatus, CaptureWriter, FormatError, PcapConfig, ReadError,
    WriteError, WriteSummary, is_standard, open_capture,
};
pub use backend::sim::{Drawing, DrawnArrivals, Driver, Pacing, SimConfig, SimNic, Stepper};
#[cfg(not(any(loom, shuttle)))]
pub use backend::tap::{TapConfig, TapDevice};
pub use device::{
    ArrivalOrder, ClaimBound, Device, DeviceCounters, DeviceMonitor, InterfaceMonitor, QueuePair,
    Replay, Rest, RingProgress, RxLayer, RxQueue, SharedQueue, SourceMonitor, SourceWork, Stamping,
    TxQueue, Unsent,
};
pub use error::OpenError;
#[cfg(not(any(loom, shuttle)))]
pub use kind::{DeviceFacts, DeviceRegistration, DeviceSetup, Opening, Refusal};
pub use layer::fault::{FaultConfig, FaultCounters, FaultyRx, with_faults};
pub use layer::impair::{ImpairConfig, ImpairCounts, ImpairError, ImpairMonitor, impair};
pub use layer::layered::LayeredDevice;
pub use replay_barrier::ReplayBarrier;
pub use responder::{Peer, Responder};
pub use sharing::{ClaimantCounters, DepartureCounters, SharingCounters};
pub use sink::{Collected, Collector, NullSink, Sink};
pub use source::{Arrival, Silence, Source};
