//! An open-loop client of TCP services. Requests are due at moments that no reply changes, and latency counts from the moment a
//! request was due, so that a slow server cannot slow down what it is measured by.
//!
//! [`schedule`], [`ledger`], [`arrivals`], [`classes`], [`spread`] and the protocols see neither sockets nor a clock. [`Session`]
//! has the connections, of which one thread sends and another receives.
#![forbid(unsafe_code)]

pub mod arrivals;
pub mod classes;
mod error;
pub mod interval;
pub mod interval_log;
mod latencies;
pub mod ledger;
mod link;
pub mod protocol;
mod receiver;
pub mod report;
mod run_result;
pub mod schedule;
mod self_check;
mod sender;
mod session;
mod sink;
mod socket;
pub mod spread;
mod text;

pub use arrivals::{ArrivalProcess, Arrivals};
pub use classes::{Class, ClassMix};
pub use error::LoadError;
pub use protocol::Protocol;
pub use receiver::Ends;
pub use report::{LoadReport, Verdict as LoadVerdict};
pub use run_result::RunResult;
pub use self_check::{Floor, self_check};
pub use session::{LoadPlan, RunPlan, Session};
pub use spread::{QueueHash, Spread};
