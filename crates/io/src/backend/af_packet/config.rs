//! How an interface is used.

use crate::backend::interface_config::interface_config;

interface_config! {
    /// How an interface is used by packet sockets, one for each lane.
    PacketConfig
    /// A device that takes every packet, leaves none to the kernel, and has rings of 4 MiB.
    new {
        /// Whether packets that rheostat takes are kept from the kernel's own stack. Otherwise both get
        /// them.
        exclusive: bool = true,
        /// Frames that each lane's ring holds, rounded up to a multiple of 64. A frame takes 2 KiB there; of a longer one, the rest
        /// waits in the socket, which holds as many bytes as the ring at least.
        ring: u32 = 2_048,
    }
}
