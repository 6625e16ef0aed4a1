//! Netlink (netlink(7), `linux/netlink.h`): the attributes of messages, and the socket.

mod attribute;
mod socket;

pub use attribute::{attribute, attributes};
pub use socket::{LONGEST, NetlinkSocket, Received};
