//! The network functions that come with rheostat: one folder each.

#![forbid(unsafe_code, reason = "no `static mut`: what flows share lies in a `Vector` or a `Map`")]

pub mod ageing_map;
pub mod antiddos;
pub mod bridge;
pub mod firewall;
mod fixed_keys;
pub mod lb;
pub mod monitor;
pub mod nat;
pub mod policer;
pub mod portscan;
pub mod router;
// Unit tests have their own chains, and need not compile these once more.
#[cfg(not(test))]
pub mod shipped;

use rheostat_nf::registry::Registration;

pub use antiddos::ANTIDDOS;
use bridge::BRIDGE;
use firewall::FIREWALL;
use lb::LB;
use monitor::MONITOR;
use nat::NAT;
use policer::POLICER;
pub use portscan::PORTSCAN;
use router::ROUTER;

pub use antiddos::AntiDdos;
pub use bridge::Bridge;
pub use firewall::Firewall;
pub use lb::Lb;
pub use monitor::Monitor;
pub use nat::Nat;
pub use policer::Policer;
pub use portscan::{Portscan, PortscanConfig};

/// All functions of this crate. A static: a constant would be compiled once more by each crate that names it.
pub static ALL: &[Registration] =
    &[FIREWALL, NAT, POLICER, LB, MONITOR, ANTIDDOS, BRIDGE, PORTSCAN, ROUTER];
