//! What only the operating system can do.

#[cfg(not(loom))]
pub(crate) mod ethtool;
#[cfg(not(loom))]
pub(crate) mod interface;
#[cfg(not(loom))]
pub(crate) mod membarrier;
#[cfg(not(loom))]
pub(crate) mod netdev;
#[cfg(not(loom))]
pub mod netlink;
#[cfg(not(loom))]
pub(crate) mod packet_socket;
#[cfg(not(loom))]
pub(crate) mod ring_mapping;
#[cfg(not(loom))]
pub(crate) mod tap;
#[cfg(not(loom))]
pub(crate) mod xdp_attachment;
#[cfg(not(loom))]
pub(crate) mod xdp_socket;
