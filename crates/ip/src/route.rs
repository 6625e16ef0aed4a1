//! Routes: which way packets go, by the longest prefix of their destination (RFC 1812, section 5.2.4.3).

mod direct;
mod lpm;
mod table;

pub use direct::DirectTable;
pub use lpm::{Address, Lpm};
pub use table::{Hop, HopId, RouteError, Routes};

use std::fmt;
use std::net::IpAddr;

use rheostat_base::DeviceId;
use rheostat_steer::Prefix;

/// A way to a range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The addresses it leads to.
    pub prefix: Prefix,
    /// The router to pass packets to; without one, the addresses are on the device's link.
    pub gateway: Option<IpAddr>,
    /// The device to leave on; without one, that on whose link the gateway is.
    pub device: Option<DeviceId>,
}

impl Route {
    /// A way through a router.
    pub fn via(prefix: Prefix, gateway: IpAddr) -> Route {
        Route { prefix, gateway: Some(gateway), device: None }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.prefix)?;
        if let Some(gateway) = self.gateway {
            write!(f, " via {gateway}")?;
        }
        match self.device {
            Some(device) => write!(f, " on {device}"),
            None => Ok(()),
        }
    }
}
