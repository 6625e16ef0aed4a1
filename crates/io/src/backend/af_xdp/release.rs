//! Waiting until the kernel has released a hardware queue. It does so some time after the last socket
//! is closed (`xp_release_deferred`), and only then does a driver that works in the process's memory
//! let go of it.
#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use rheostat_packet::{Mempool, MempoolConfig};
use rustix::io::Errno;

use crate::sys::xdp_socket::{Place, Transfer, XdpSocket};

/// How long a queue is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is tried.
const INTERVAL: Duration = Duration::from_millis(5);

/// Waits until nobody has the queue, and says whether that is so. An interface that is gone has no
/// queue that anybody could have.
pub(super) fn wait(place: Place) -> bool {
    let patience = Instant::now() + PATIENCE;
    loop {
        match probe(place) {
            Ok(()) | Err(Errno::NODEV | Errno::NXIO) => return true,
            Err(Errno::BUSY) if Instant::now() < patience => std::thread::sleep(INTERVAL),
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
