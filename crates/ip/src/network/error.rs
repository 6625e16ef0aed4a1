//! Contradictions of interfaces and routes.

use std::net::IpAddr;

use rheostat_base::DeviceId;
use thiserror::Error;

use crate::route::RouteError;

/// Why interfaces and routes do not make a network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetworkError {
    /// Two interfaces are on one device.
    #[error("{device} has two interfaces, `{name}` and another: give it one")]
    SameDevice {
        /// The device.
        device: DeviceId,
        /// The second interface.
        name: String,
    },
    /// An address is that of two interfaces.
    #[error("`{name}` has the address {address}, which another interface has, too")]
    SameAddress {
        /// The second interface.
        name: String,
        /// The address.
        address: IpAddr,
    },
    /// The address is none that a host can have.
    #[error("`{name}` cannot have the address {address}: it is not that of one host")]
    Address {
        /// The interface.
        name: String,
        /// The address.
        address: IpAddr,
    },
    /// The link address is none that a station can have.
    #[error("`{name}` cannot have a link address of a group, or all zeros")]
    Mac {
        /// The interface.
        name: String,
    },
    /// The MTU is too small for the versions of IP in use.
    #[error("the MTU {mtu} of `{name}` is less than {least}, which its addresses need")]
    Mtu {
        /// The interface.
        name: String,
        /// Its MTU.
        mtu: u16,
        /// The least.
        least: u16,
    },
    /// A route is wrong.
    #[error(transparent)]
    Route(#[from] RouteError),
}
