//! Lanes, the workers that run them, the rings on which packets change lanes, pools that work for lanes,
//! and the accounts that prove no packet was lost on the way.

pub mod account;
mod cell;
pub mod classes;
mod crew;
pub mod handoff;
mod home_deadlines;
pub mod invariant;
mod joint_shards;
pub mod lane;
pub mod listing;
mod live_metrics;
pub mod load;
pub mod metrics;
pub mod migrate;
mod notifier;
pub mod offload;
mod panic_message;
pub mod poll;
pub mod polling;
pub mod pool;
pub mod queue_map;
pub mod runtime;
pub mod service;
pub mod shard_set;
mod sleep;
mod stages;
pub mod view;
mod worker;

pub use account::{LaneCounters, LaneSample};
pub use classes::{ClassFigures, ClassLooks, Classes, FlowName, HeavyFlows, HeavyShare, SAMPLE};
pub use crew::LaneNotifier;
pub use handoff::handoff_bytes;
pub use home_deadlines::HomeDeadlines;
pub use invariant::Violation;
pub use lane::{
    Batch, HandoffPacket, Lane, LaneConfig, LaneTimes, Output, PacketInfo, PacketKind, Placement,
    Routes, Sender, TimeSource, Unusual, UnusualError,
};
pub use live_metrics::LiveMetrics;
pub use load::{LoadReporting, ShardLoads};
pub use metrics::{Metrics, Ranking};
pub use migrate::{Migrator, Move, MoveError};
pub use offload::{FlowNumber, OffloadedFlows};
pub use poll::{Next, PollOutcome, PollPolicy, Polling, PollingRegistration};
pub use polling::{LanePolling, PollingSample, Vacations, WorkerPolling};
pub use pool::{
    AnyPoolClient, Lost, MemberFailure, PacketClient, PacketPoolClient, PacketTicket, Pool,
    PoolClient, PoolConfig, PoolError, PoolQueueing, PoolReport, PoolSharing, Reply, Stepped,
    WithClients,
};
pub use queue_map::{QueueMap, QueueMapError};
pub use rheostat_capture::trace::Step;
pub use rheostat_io::layer::shared_receive::Sharing;
pub use runtime::{FLOWS_AWAY, MigrationTimes, RunReport, Runtime, RuntimeConfig, StartError};
pub use service::{DeferredWork, MetricsPart, OffloadingService, Service, ServiceSpec};
pub use shard_set::{Entry, ShardSet};
pub use stages::{BurstStage, StageSwitch, StageTimes};
pub use view::{RunView, Sample, TableError};
