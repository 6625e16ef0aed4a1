//! Waiting until the kernel has released a hardware queue. It does so some time after the last socket
//! is closed (`xp_release_deferred`), and only then does a driver that works in the process's memory
//! let go of it.
#![allow(unsafe_code)]

use std::io;
use std::time::{Duration, Instant};

use rheostat_packet::{Mempool, MempoolConfig};
use rustix::io::Errno;

use crate::sys::ring_mapping::RingMapping;
use crate::sys::xdp_socket::{Descriptor, Place, Transfer, XdpSocket};

/// How long a queue is waited for.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);
/// How often it is tried.
pub(super) const INTERVAL: Duration = Duration::from_millis(5);

/// A socket that can be bound to a queue only when the queue is free. It is made with the device: a process that has given up
/// its privileges since may bind a socket, and may not make one.
pub(super) struct ReleaseProbe {
    place: Place,
    // A mapping keeps its socket, and the socket works in the pool: dropped in this order.
    _frames: (RingMapping<u64>, RingMapping<u64>),
    _packets: RingMapping<Descriptor>,
    socket: XdpSocket,
    _pool: Mempool,
}

impl ReleaseProbe {
    /// A probe of the queue at `place`, which may be in use. Takes two buffers of memory and a descriptor.
    ///
    /// # Errors
    /// [`io::Error`] when there can be no socket, or no memory for it.
    pub(super) fn new(place: Place) -> io::Result<ReleaseProbe> {
        let pool = Mempool::new(&MempoolConfig::umem(2)).map_err(io::Error::other)?;
        let socket = XdpSocket::new()?;
        // SAFETY: the pool outlives the socket and its rings, which are dropped before it, and no buffer is
        // posted.
        unsafe { socket.register(&pool.area())? };
        let frames = socket.frame_rings(2, 2)?;
        let packets = socket.receive_ring(2)?;
        Ok(ReleaseProbe { place, _frames: frames, _packets: packets, socket, _pool: pool })
    }

    /// Waits until no socket holds the queue, and returns whether that is so. An interface that is gone has no queue to
    /// hold. Takes 2 s at most.
    pub(super) fn wait(self) -> bool {
        let timeout = Instant::now() + TIMEOUT;
        loop {
            match self.bind() {
                Ok(()) | Err(Errno::NODEV | Errno::NXIO) => return true,
                Err(Errno::BUSY) if Instant::now() < timeout => std::thread::sleep(INTERVAL),
                Err(_) => return false,
            }
        }
    }

    /// Binds the socket, which succeeds once, and only when the queue is free. A socket that was refused can be bound later.
    fn bind(&self) -> Result<(), Errno> {
        self.socket.bind(self.place, Transfer::Copy, false)
    }
}

#[cfg(test)]
mod tests {
    //! Timed: sleep, clock, processes, devices.

    use rheostat_kernel::privileges;
    use rheostat_testkit::namespace::{isolated, shell};

    use super::*;
    use rheostat_kernel::Interface;

    /// A socket on the queue, with the mappings that keep it.
    fn occupant(
        place: Place,
        pool: &Mempool,
    ) -> (XdpSocket, (RingMapping<u64>, RingMapping<u64>), RingMapping<Descriptor>) {
        let socket = XdpSocket::new().unwrap();
        // SAFETY: the pool outlives the socket and its rings, and no buffer is posted.
        unsafe { socket.register(&pool.area()).unwrap() };
        let (frames, packets) = (socket.frame_rings(2, 2).unwrap(), socket.receive_ring(2));
        socket.bind(place, Transfer::Copy, false).unwrap();
        (socket, frames, packets.unwrap())
    }

    #[test]
    fn a_queue_is_released_when_its_last_socket_is_closed() {
        isolated(module_path!(), "a_queue_is_released_when_its_last_socket_is_closed", || {
            shell("ip link add rxdp0 type veth peer name rxdp1; ip link set rxdp0 up");
            let interface = Interface::new("rxdp0").unwrap().index().unwrap();
            let place = Place { interface, queue: 0 };
            let pool = Mempool::new(&MempoolConfig::umem(2)).unwrap();
            let probes: Vec<_> = (0..60).map(|_| ReleaseProbe::new(place).unwrap()).collect();
            let mut probes = probes.into_iter();
            let mut probe = || probes.next().unwrap();
            let (socket, frames, packets) = occupant(place, &pool);
            // As a run does when its devices are open.
            privileges::give_up().unwrap();
            let first = probe();
            assert_eq!(first.bind(), Err(Errno::BUSY));
            assert!(!first.wait(), "the socket is still there");
            drop(socket);
            assert_eq!(probe().bind(), Err(Errno::BUSY), "a mapping keeps the socket");
            drop((frames, packets));
            // The kernel releases it in the background, which may take longer than a device waits.
            assert!((0..50).any(|_| probe().wait()), "a process without privileges sees it");
            assert!((0..8).any(|_| probe().wait()), "a probe leaves the queue free");
        });
    }

    #[test]
    fn an_interface_that_is_gone_has_no_queue_in_use() {
        isolated(module_path!(), "an_interface_that_is_gone_has_no_queue_in_use", || {
            shell("ip link add rxdp0 type veth peer name rxdp1; ip link set rxdp0 up");
            let interface = Interface::new("rxdp0").unwrap().index().unwrap();
            let probe = ReleaseProbe::new(Place { interface, queue: 0 }).unwrap();
            shell("ip link del rxdp0");
            assert!(probe.wait());
        });
    }
}
