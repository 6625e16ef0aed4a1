//! AF_XDP sockets (`linux/if_xdp.h`, Documentation/networking/af_xdp.rst).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rheostat_packet::mbuf::PoolArea;
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_xdp_rx_ring_size, set_xdp_tx_ring_size, set_xdp_umem_completion_ring_size,
    set_xdp_umem_fill_ring_size, set_xdp_umem_reg, xdp_mmap_offsets, xdp_statistics,
};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, SocketAddrXdpWithSharedUmem, XDP_PGOFF_RX_RING,
    XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpStatistics,
    XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

use super::ring_mapping::RingMapping;

/// Bytes that the kernel keeps free in front of a packet it receives (`XDP_PACKET_HEADROOM`).
pub(crate) const PACKET_HEADROOM: usize = 256;

/// A packet, or a part of one, in an RX or TX ring (`struct xdp_desc`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// Where it starts, from the start of the UMEM.
    pub(crate) address: u64,
    /// Its length in bytes.
    pub(crate) len: u32,
    /// [`CONTINUED`] or zero.
    pub(crate) options: u32,
}

/// The packet goes on in the next descriptor (`XDP_PKT_CONTD`).
pub(crate) const CONTINUED: u32 = 1;

/// Where a socket is bound, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The interface.
    pub(crate) interface: u32,
    /// Its hardware queue.
    pub(crate) queue: u32,
}

/// How packets get from the driver into the UMEM and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// The driver works in the UMEM.
    Zero,
    /// The kernel copies.
    Copy,
}

/// An AF_XDP socket.
#[derive(Debug)]
pub(crate) struct XdpSocket(OwnedFd);

impl XdpSocket {
    /// Makes a socket.
    pub(crate) fn new() -> Result<XdpSocket, Errno> {
        let (family, flags) = (AddressFamily::XDP, SocketFlags::CLOEXEC);
        Ok(XdpSocket(socket_with(family, SocketType::RAW, flags, None)?))
    }

    /// Registers `area` as the memory that this socket, and those that share with it, works in.
    ///
    /// # Safety
    /// The memory stays mapped while the socket or a mapping of its rings exists, and no code accesses
    /// what is handed to the kernel on its rings.
    pub(crate) unsafe fn register(&self, area: &PoolArea) -> Result<(), Errno> {
        let region = XdpUmemReg {
            addr: area.start.as_ptr() as u64,
            len: area.bytes as u64,
            chunk_size: area.stride as u32,
            headroom: (area.headroom - PACKET_HEADROOM) as u32,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        set_xdp_umem_reg(&self.0, region)
    }

    /// Gives the socket a FILL and a COMPLETION ring, and maps them.
    pub(crate) fn frame_rings(
        &self,
        fill: u32,
        completion: u32,
    ) -> io::Result<(RingMapping<u64>, RingMapping<u64>)> {
        set_xdp_umem_fill_ring_size(&self.0, fill)?;
        set_xdp_umem_completion_ring_size(&self.0, completion)?;
        let offsets = xdp_mmap_offsets(&self.0)?;
        // SAFETY: these two rings, of addresses, were made just now with these sizes.
        unsafe {
            Ok((
                RingMapping::new(self.as_fd(), XDP_UMEM_PGOFF_FILL_RING, offsets.fr, fill)?,
                RingMapping::new(
                    self.as_fd(),
                    XDP_UMEM_PGOFF_COMPLETION_RING,
                    offsets.cr,
                    completion,
                )?,
            ))
        }
    }

    /// Gives the socket an RX ring, and maps it.
    pub(crate) fn receive_ring(&self, size: u32) -> io::Result<RingMapping<Descriptor>> {
        set_xdp_rx_ring_size(&self.0, size)?;
        let offsets = xdp_mmap_offsets(&self.0)?;
        // SAFETY: this ring, of descriptors, was made just now with this size.
        unsafe { RingMapping::new(self.as_fd(), XDP_PGOFF_RX_RING, offsets.rx, size) }
    }

    /// Gives the socket a TX ring, and maps it.
    pub(crate) fn transmit_ring(&self, size: u32) -> io::Result<RingMapping<Descriptor>> {
        set_xdp_tx_ring_size(&self.0, size)?;
        let offsets = xdp_mmap_offsets(&self.0)?;
        // SAFETY: this ring, of descriptors, was made just now with this size.
        unsafe { RingMapping::new(self.as_fd(), XDP_PGOFF_TX_RING, offsets.tx, size) }
    }

    /// Lets one call send as many descriptors where the kernel copies, from 32 up to the size of the TX ring
    /// (`XDP_MAX_TX_SKB_BUDGET`, Linux 6.17).
    pub(crate) fn set_transmit_budget(&self, descriptors: u32) -> io::Result<()> {
        const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;
        self.set(libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, descriptors)
    }

    /// Has [`XdpSocket::wake`] and [`XdpSocket::send`] poll the driver's queue for up to `budget` packets, and prefers that to
    /// interrupts (Linux 5.11). Needs CAP_NET_ADMIN.
    pub(crate) fn poll_driver(&self, budget: u16) -> io::Result<()> {
        const SO_PREFER_BUSY_POLL: libc::c_int = 69;
        const SO_BUSY_POLL_BUDGET: libc::c_int = 70;
        /// Microseconds. These calls poll once and do not wait, so that any number but zero does.
        const TIME: u32 = 20;
        self.set(libc::SOL_SOCKET, SO_PREFER_BUSY_POLL, 1)?;
        self.set(libc::SOL_SOCKET, libc::SO_BUSY_POLL, TIME)?;
        self.set(libc::SOL_SOCKET, SO_BUSY_POLL_BUDGET, budget.into())
    }

    fn set(&self, level: libc::c_int, option: libc::c_int, value: u32) -> io::Result<()> {
        let len = size_of::<u32>() as libc::socklen_t;
        let value = (&raw const value).cast();
        // SAFETY: the kernel reads as many bytes as the value has.
        let outcome = unsafe { libc::setsockopt(self.0.as_raw_fd(), level, option, value, len) };
        if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Binds a socket that has registered memory. `pieces`: packets may lie in several buffers.
    pub(crate) fn bind(&self, place: Place, transfer: Transfer, pieces: bool) -> Result<(), Errno> {
        let mut flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
        flags |= match transfer {
            Transfer::Zero => SocketAddrXdpFlags::XDP_ZEROCOPY,
            Transfer::Copy => SocketAddrXdpFlags::XDP_COPY,
        };
        if pieces {
            flags |= SocketAddrXdpFlags::XDP_USE_SG;
        }
        bind(&self.0, &SocketAddrXdp::new(flags, place.interface, place.queue))
    }

    /// Binds a socket that works in the memory of `owner`, in the way that `owner` was bound. The
    /// kernel takes no other flag here.
    pub(crate) fn bind_shared(&self, place: Place, owner: &XdpSocket) -> Result<(), Errno> {
        let flags = SocketAddrXdpFlags::XDP_SHARED_UMEM;
        let address = SocketAddrXdpWithSharedUmem {
            addr: SocketAddrXdp::new(flags, place.interface, place.queue),
            shared_umem_fd: owner.0.as_fd(),
        };
        bind(&self.0, &address)
    }

    /// Makes the kernel send what waits in the TX ring: where it copies, up to 32 packets unless
    /// [`XdpSocket::set_transmit_budget`] was called.
    pub(crate) fn send(&self) -> Result<(), Errno> {
        send(&self.0, &[], SendFlags::DONTWAIT).map(drop)
    }

    /// Notifies the kernel that there are buffers in the FILL ring; after [`XdpSocket::poll_driver`], polls the driver's queue.
    pub(crate) fn wake(&self) -> Result<(), Errno> {
        recv(&self.0, &mut [0_u8; 0], RecvFlags::DONTWAIT).map(drop)
    }

    /// What the kernel has dropped.
    pub(crate) fn statistics(&self) -> Result<XdpStatistics, Errno> {
        xdp_statistics(&self.0)
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
