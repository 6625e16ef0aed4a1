//! Facts and permissions of Linux: interfaces and their changes over netlink and ethtool, routes and neighbours, control groups,
//! capabilities, cores and their topology, sleeps and priorities of threads. The crates above ask the kernel through this one.

pub mod capability;
pub mod cgroup;
mod controlling_terminal;
pub mod core_set;
pub mod identity;
pub mod interface_link;
pub mod link;
pub mod netdev;
pub mod netlink;
pub mod placement;
pub mod priority;
pub mod privileges;
pub mod proc_fields;
pub mod routing;
pub mod sleep;
mod sys;
pub mod topology;
pub mod xdp_attachment;

pub use cgroup::Cgroups;
pub use controlling_terminal::has_controlling_terminal;
pub use core_set::CoreSet;
pub use interface_link::InterfaceLink;
pub use link::{LinkEvent, LinkState, LinkWatch};
pub use netdev::{Napi, NapiSettings, XdpFeatures, napis, xdp_features};
pub use placement::Placement;
pub use proc_fields::ProcFields;
pub use sys::ethtool::{Channels, Rings, Spreading};
pub use sys::interface::Interface;
#[cfg(any(test, feature = "test-filters"))]
pub use sys::seccomp::refuse_timer_slack;
pub use sys::thread_clock::thread_cpu_time;
pub use topology::Topology;
