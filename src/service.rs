//! What the author of a service imports, which gets the packets of a lane directly: see `docs/services.md`.

pub use rheostat_base::{Clock, LaneId};
pub use rheostat_io::{
    Device, DeviceFacts, DeviceRegistration, DeviceSetup, InterfaceError, Opening, Pacing,
    PacketConfig, PacketDevice, SimConfig, SimNic, Sink,
};
pub use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
pub use rheostat_packet::checksum::{Validity, evaluate_packet};
pub use rheostat_packet::{Burst, LinkType, Mbuf, Mempool, MempoolConfig, Tuple};
pub use rheostat_run::poll::{Busy, Interrupt, Next, PollOutcome, PollPolicy, StepSleep};
pub use rheostat_run::{
    AnyPoolClient, Batch, DeferredWork, HandoffPacket, Lost, MemberFailure, MetricsPart,
    OffloadingService, Output, PacketClient, PacketInfo, PacketKind, PacketPoolClient, Pool,
    PoolClient, PoolConfig, PoolError, PoolQueueing, PoolReport, PoolSharing, Reply, Service,
    ServiceSpec, ShardSet, Stepped,
};
pub use rheostat_run::{
    LaneSample, LoadReporting, Move, Polling, QueueMap, RunReport, Runtime, RuntimeConfig,
    StartError, TimeSource,
};
pub use rheostat_state::{
    FlowHasher, FlowTable, FragmentConfig, FragmentTracker, Shard, TableConfig,
};
pub use rheostat_steer::{HashKey, Orientation, Steering};
