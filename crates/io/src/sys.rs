//! What only the operating system can do.

#[cfg(not(any(loom, shuttle)))]
pub(crate) mod interface_lock;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod membarrier;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod packet_socket;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod ring_mapping;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod tap;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod xdp_socket;
