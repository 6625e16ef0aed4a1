//! Waiting until the kernel has released a hardware queue. It does so some time after the last socket
//! is closed (`xp_release_deferred`), and only then does a driver that works in the process's memory
//! let go of it.
#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use rheostat_packet::{Mempool, MempoolConfig};
use rustix::io::Errno;

use crate::sys::xdp_socket::{Place, Transfer, XdpSocket};

/// How long a queue is waited for.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);
/// How often it is tried.
pub(super) const INTERVAL: Duration = Duration::from_millis(5);

/// Waits until no socket holds the queue, and returns whether that is so. An interface that is gone has no queue to hold.
pub(super) fn wait(place: Place) -> bool {
    let timeout = Instant::now() + TIMEOUT;
    loop {
        match probe(place) {
            Ok(()) | Err(Errno::NODEV | Errno::NXIO) => return true,
            Err(Errno::BUSY) if Instant::now() < timeout => std::thread::sleep(INTERVAL),
            Err(_) => return false,
        }
    }
}

/// Binds a socket to the queue, which succeeds only when the queue is free, and closes it at once.
fn probe(place: Place) -> Result<(), Errno> {
    let pool = Mempool::new(&MempoolConfig::umem(2)).map_err(|_| Errno::NOMEM)?;
    let socket = XdpSocket::new()?;
    let other = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    // SAFETY: the pool outlives the socket and its rings, which are dropped before it, and no buffer is
    // posted.
    unsafe { socket.register(&pool.area())? };
    let _frames = socket.frame_rings(2, 2).map_err(other)?;
    let _packets = socket.receive_ring(2).map_err(other)?;
    socket.bind(place, Transfer::Copy, false)
}

#[cfg(test)]
mod tests {
    //! Timed: sleep, clock, processes, devices.

    use rheostat_testkit::namespace::{isolated, shell};

    use super::*;
    use crate::sys::interface::Interface;

    #[test]
    fn a_queue_is_released_when_its_last_socket_is_closed() {
        isolated(module_path!(), "a_queue_is_released_when_its_last_socket_is_closed", || {
            shell("ip link add rxdp0 type veth peer name rxdp1; ip link set rxdp0 up");
            let interface = Interface::new("rxdp0").unwrap().index().unwrap();
            let place = Place { interface, queue: 0 };
            let pool = Mempool::new(&MempoolConfig::umem(2)).unwrap();
            let socket = XdpSocket::new().unwrap();
            // SAFETY: the pool outlives the socket and its rings, and no buffer is posted.
            unsafe { socket.register(&pool.area()).unwrap() };
            let frames = socket.frame_rings(2, 2).unwrap();
            let packets = socket.receive_ring(2).unwrap();
            socket.bind(place, Transfer::Copy, false).unwrap();
            assert_eq!(probe(place), Err(Errno::BUSY));
            assert!(!wait(place), "the socket is still there");
            drop(socket);
            assert_eq!(probe(place), Err(Errno::BUSY), "a mapping keeps the socket");
            drop((frames, packets));
            // The kernel releases it in the background, which may take longer than a device waits.
            assert!((0..60).any(|_| wait(place)));
            shell("ip link del rxdp0");
            assert!(wait(place), "no socket holds the queue of an interface that is gone");
        });
    }
}
