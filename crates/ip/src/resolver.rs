//! Who finds the link addresses of neighbours, if the stack does not.

use std::net::IpAddr;

use rheostat_base::DeviceId;

/// Finds link addresses in the stack's place: the kernel, where the answers to the stack's own questions would reach only the
/// kernel. What it finds is entered with [`Network::set_neighbour`](crate::Network::set_neighbour).
pub trait Resolver: Send + Sync {
    /// Begins to look for the link address of a neighbour on the link of a device. Called by a lane, so it must not wait; again
    /// after a second while nothing was entered, and not any more after three times.
    fn look_for(&self, device: DeviceId, neighbour: IpAddr);
}
