//! What only the operating system can do.

#[cfg(not(loom))]
pub(crate) mod interface;
pub(crate) mod membarrier;
#[cfg(not(loom))]
pub(crate) mod ring_mapping;
#[cfg(not(loom))]
pub(crate) mod xdp_socket;
