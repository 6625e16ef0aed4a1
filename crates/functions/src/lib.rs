//! The network functions that come with rheostat: one folder each.

#![forbid(unsafe_code, reason = "no `static mut`: what flows share lies in a `Vector` or a `Map`")]

pub mod ageing_map;
pub mod antiddos;
pub mod bridge;
pub mod firewall;
pub mod lb;
pub mod monitor;
pub mod nat;
pub mod policer;
pub mod portscan;
// Unit tests have their own chains, and need not compile these once more.
#[cfg(not(test))]
pub mod shipped;

use rheostat_nf::registry::Registration;

pub use antiddos::AntiDdos;
pub use bridge::Bridge;
pub use firewall::Firewall;
pub use lb::Lb;
pub use monitor::Monitor;
pub use nat::Nat;
pub use policer::Policer;
pub use portscan::Portscan;

/// All functions of this crate.
pub const ALL: &[Registration] = &[
    Registration { name: "firewall", summary: "lets flows through that its rules allow" },
    Registration { name: "nat", summary: "translates addresses and ports" },
    Registration { name: "policer", summary: "limits the rate of each subscriber" },
    Registration { name: "lb", summary: "spreads flows over the backends of services" },
    Registration { name: "monitor", summary: "reports flows, and the hosts with the most traffic" },
    Registration { name: "antiddos", summary: "detects attacks with many flows" },
    Registration { name: "bridge", summary: "forwards frames between ports, by learned addresses" },
    Registration { name: "portscan", summary: "detects hosts that scan ports" },
    Registration { name: "router", summary: "does nothing beside routing" },
];
