//! Telling the kernel to send, until it has sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rheostat_base::Time;
use rustix::io::Errno;

use super::ring::Gauge;
use crate::sys::ring_mapping::RingMapping;
use crate::sys::xdp_socket::{Descriptor, Transfer, XdpSocket};

/// How long an interface that is down is left alone.
const PATIENCE: Duration = Duration::from_millis(1);

/// What the two ends of a lane know of its TX ring. Sending happens in a system call (where the kernel
/// copies: of 32 packets at most), and may end early; what then waits is kicked again by whatever the
/// lane does next, be it sending or receiving.
#[derive(Debug)]
pub(super) struct TransmitState {
    ring: Gauge<Arc<RingMapping<Descriptor>>>,
    transfer: Transfer,
    /// Whether packets may wait in the ring. Relaxed, as the next: both ends belong to one lane, and
    /// whoever moves the lane to another thread orders them.
    waiting: AtomicBool,
    /// Nanoseconds before which the kernel is not asked again.
    not_before: AtomicU64,
}

/// What became of a kick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kicked {
    /// The kernel was told, or need not be.
    Done,
    /// The interface is gone for good.
    Gone,
}

/// What is left in the ring when the device is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    /// Nothing.
    Empty,
    /// Something, which may still get out.
    Waiting,
    /// Something, and the interface takes no more.
    Hopeless,
}

impl TransmitState {
    pub(super) fn new(
        ring: Gauge<Arc<RingMapping<Descriptor>>>,
        transfer: Transfer,
    ) -> TransmitState {
        TransmitState {
            ring,
            transfer,
            waiting: AtomicBool::new(false),
            not_before: AtomicU64::new(0),
        }
    }

    /// Whether packets may wait in the ring for the kernel to be told once more.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Sends what was just put into the ring, and what may wait there.
    pub(super) fn kick(&self, socket: &XdpSocket, now: Time) -> Kicked {
        self.waiting.store(true, Ordering::Relaxed);
        self.kick_again(socket, now)
    }

    /// Sends what may wait in the ring; costs a load when nothing does.
    #[inline]
    pub(super) fn kick_again(&self, socket: &XdpSocket, now: Time) -> Kicked {
        if !self.waiting.load(Ordering::Relaxed)
            || now.as_nanos() < self.not_before.load(Ordering::Relaxed)
        {
            return Kicked::Done;
        }
        self.ask(socket, now)
    }

    /// Tells the kernel to send what waits in the ring, whatever it said before.
    pub(super) fn flush(&self, socket: &XdpSocket) -> Flushed {
        if self.ring.waiting() == 0 {
            return Flushed::Empty;
        }
        match socket.send() {
            Err(Errno::NETDOWN | Errno::NXIO | Errno::NODEV) => Flushed::Hopeless,
            _ if self.ring.waiting() == 0 => Flushed::Empty,
            _ => Flushed::Waiting,
        }
    }

    fn ask(&self, socket: &XdpSocket, now: Time) -> Kicked {
        // A driver that works in our memory says when it wants to be told. Where the kernel copies it
        // always does, but says so only on the sockets that were there first.
        let asked = self.transfer == Transfer::Copy || self.ring.needs_wakeup();
        let outcome = if asked && self.ring.waiting() > 0 { socket.send() } else { Ok(()) };
        match outcome {
            Err(Errno::NXIO | Errno::NODEV) => return Kicked::Gone,
            Err(Errno::NETDOWN) => {
                // Also said when the interface vanishes; then the socket is unbound a moment later.
                let later = now.as_nanos() + PATIENCE.as_nanos() as u64;
                self.not_before.store(later, Ordering::Relaxed);
            }
            // EAGAIN: more than 32 waited, or the COMPLETION ring or the socket's buffer is full.
            // EBUSY, ENOBUFS: the driver's queue is full. Whatever it is, the ring tells what waits.
            _ => {}
        }
        self.waiting.store(self.ring.waiting() > 0, Ordering::Relaxed);
        Kicked::Done
    }
}
