//! The testbed of all experiments.
//!
//! Of the machine: namespaces and the virtual cables between them, programs in them and beside lanes, cores that lanes and
//! peers are bound to, processor time. Each is undone by drop: a namespace is deleted with its interfaces, a process is
//! killed by its id, a thread ends. In the process: the device under test, packet buffers, the end of a run with its
//! invariants, and the network that a service has.

mod cores;
pub(crate) mod cpu_time;
pub(crate) mod dut;
mod error;
pub(crate) mod lanes;
mod loops;
mod mix_load;
mod namespace;
mod process;
mod rheo;
pub(crate) mod server;

pub(crate) use cores::{Cores, on_core, threads};
pub use error::TestbedError;
pub(crate) use loops::Loops;
pub(crate) use mix_load::{MOST_PACKETS, MixLoad, SHARDS};
pub(crate) use namespace::{Namespace, NamespaceEnd, lay};
pub(crate) use process::Process;
pub(crate) use rheo::RheoProcess;
