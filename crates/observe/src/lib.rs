//! What people are shown of a run: a line of metrics while it goes on, a summary at the end, and, through its control socket, the
//! answers to requests in between.

pub mod capture;
mod class_metrics;
pub mod control;
pub mod doctor;
pub mod explain;
mod flow_name;
pub mod health_lines;
pub mod link_board;
pub mod live;
pub mod live_page;
pub mod log_writer;
pub mod openmetrics;
pub mod output_files;
pub mod polling_metrics;
pub mod port_board;
pub mod profile;
pub mod rule_board;
pub mod shared_queue_metrics;
pub mod shared_shard_metrics;
pub mod source_metrics;
pub mod summary;
pub mod trace;

pub use class_metrics::ClassMetrics;
pub use health_lines::HealthLines;
pub use link_board::{LinkBoard, LinkLine, LinkWord};
pub use live::LiveLine;
pub use log_writer::{Lines, LogError, LogMonitor, LogWriter};
pub use output_files::{IncompleteFile, OutputFiles};
pub use polling_metrics::PollingMetrics;
pub use port_board::{PortBoard, PortLine};
pub use rule_board::{FunctionRules, RuleBoard};
pub use summary::{SCHEMA, Summary};
