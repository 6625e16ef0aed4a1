//! The least that forwarding by AF_XDP can be: what comes in on one socket goes out on another, untouched.
//!
//! It knows no packets, no lanes, no accounts and no filter, and is there to be measured against.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rheostat_kernel::Interface;
use rheostat_packet::{BURST, Mempool};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::open::{FrameRing, PacketRing};
use super::ring::{Consumer, Producer};
use crate::sys::xdp_socket::{Descriptor, Place, Transfer, XdpSocket};

/// A loop from the first queue of one interface to that of another. Packets have to be led to its
/// socket by a program of the caller's.
pub struct Bounce {
    // Mappings before their sockets, sockets before their memory.
    receive: Consumer<PacketRing>,
    fill: Producer<FrameRing>,
    transmit: Producer<PacketRing>,
    completion: Consumer<FrameRing>,
    _unused: [FrameRing; 2],
    from: XdpSocket,
    to: XdpSocket,
    /// Buffers between the COMPLETION ring of one socket and the FILL ring of the other.
    free: Vec<u64>,
    stride: u64,
    _pool: Mempool,
}

impl Bounce {
    /// Opens both interfaces, in copy mode, with rings of `descriptors` (a power of two).
    ///
    /// The pool is for nothing else. It must have the layout that a kernel can share,
    /// [`MempoolConfig::umem`](rheostat_packet::MempoolConfig::umem), and twice as many buffers as
    /// `descriptors`.
    ///
    /// # Errors
    /// What the kernel states, for want of an interface, a queue, memory or a privilege.
    pub fn open(pool: Mempool, from: &str, to: &str, descriptors: u32) -> io::Result<Bounce> {
        let area = pool.area();
        let socket = |interface: &str| -> io::Result<(XdpSocket, Place)> {
            let interface = Interface::new(interface)?.index()?;
            let socket = XdpSocket::new()?;
            // SAFETY: the pool is kept until the sockets and the mappings are gone, and buffers are
            // never taken from it.
            unsafe { socket.register(&area) }?;
            Ok((socket, Place { interface, queue: 0 }))
        };
        let (from, from_place) = socket(from)?;
        let (fill, unused_completion) = from.frame_rings(descriptors, descriptors)?;
        let receive = from.receive_ring(descriptors)?;
        from.bind(from_place, Transfer::Copy, false)?;
        let (to, to_place) = socket(to)?;
        let (unused_fill, completion) = to.frame_rings(descriptors, descriptors)?;
        let transmit = to.transmit_ring(descriptors)?;
        to.bind(to_place, Transfer::Copy, false)?;
        let stride = area.stride as u64;
        let mut bounce = Bounce {
            receive: Consumer::new(Arc::new(receive)),
            fill: Producer::new(Arc::new(fill)),
            transmit: Producer::new(Arc::new(transmit)),
            completion: Consumer::new(Arc::new(completion)),
            _unused: [unused_completion, unused_fill].map(Arc::new),
            from,
            to,
            free: (0..u64::from(2 * descriptors)).map(|buffer| buffer * stride).collect(),
            stride,
            _pool: pool,
        };
        bounce.refill();
        Ok(bounce)
    }

    /// Where packets must be led to.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.from.as_fd()
    }

    /// Sends on what has come, at most a burst; how much it was.
    pub fn turn(&mut self) -> usize {
        let mut count = 0;
        while count < BURST && self.transmit.room(1) > 0 {
            let Some(Descriptor { address, len, .. }) = self.receive.take() else { break };
            self.transmit.put(Descriptor { address, len, options: 0 });
            count += 1;
        }
        if count > 0 {
            self.receive.release();
            self.transmit.publish();
        }
        // A burst is as much as one call sends. What it refuses for now is sent by the next.
        let _ = self.to.send();
        self.refill();
        count
    }

    /// Waits until something has come, at most this long.
    ///
    /// # Errors
    /// What the kernel states.
    pub fn wait(&self, longest: Duration) -> io::Result<()> {
        let mut waiting = [PollFd::new(&self.from, PollFlags::IN)];
        let longest =
            Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: longest.subsec_nanos().into() };
        match poll(&mut waiting, Some(&longest)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Brings buffers whose packets are sent back to where packets come in.
    fn refill(&mut self) {
        while let Some(address) = self.completion.take() {
            self.free.push(address / self.stride * self.stride);
        }
        self.completion.release();
        let room = self.fill.room(self.free.len() as u32) as usize;
        let kept = self.free.len().saturating_sub(room);
        for address in self.free.drain(kept..) {
            self.fill.put(address);
        }
        self.fill.publish();
    }
}
