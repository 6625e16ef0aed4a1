//! What only the operating system can do.

#[cfg(not(any(loom, shuttle)))]
pub(crate) mod ethtool;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod interface;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod interface_lock;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod membarrier;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod netdev;
#[cfg(not(any(loom, shuttle)))]
pub mod netlink;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod packet_socket;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod pause;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod ring_mapping;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod scheduling;
#[cfg(all(any(test, feature = "test-filters"), not(any(loom, shuttle))))]
pub(crate) mod seccomp;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod tap;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod thread_clock;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod xdp_attachment;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod xdp_socket;
