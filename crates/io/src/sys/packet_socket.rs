//! Packet sockets (packet(7), Documentation/networking/packet_mmap.rst).
#![allow(unsafe_code)]

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::net::{RecvFlags, recv};

/// How a receive ring is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingShape {
    /// Bytes of a slot: a power of two.
    pub(crate) slot: u32,
    /// Slots of a block: a power of two, so that a block has whole pages.
    pub(crate) slots_per_block: u32,
    /// Blocks.
    pub(crate) blocks: u32,
}

/// A socket that gets whole frames, link header included.
#[derive(Debug)]
pub(crate) struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// A socket that gets nothing until it is bound.
    pub(crate) fn new() -> io::Result<PacketSocket> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: the call takes numbers only, and gives a new descriptor that has no other owner.
        match unsafe { libc::socket(libc::AF_PACKET, kind, 0) } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: as above.
            descriptor => Ok(PacketSocket(unsafe { OwnedFd::from_raw_fd(descriptor) })),
        }
    }

    /// Gets frames through a ring of slots (TPACKET_V2), each with a virtio header in front that states
    /// what offloading was left undone. Frames that are longer than a slot are kept for [`PacketSocket::receive`], too.
    pub(crate) fn set_ring(&self, shape: &RingShape) -> io::Result<()> {
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        self.set(libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        self.set(libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1_i32)?;
        self.set(libc::SOL_PACKET, libc::PACKET_COPY_THRESH, &1_i32)?;
        let request = libc::tpacket_req {
            tp_block_size: shape.slot * shape.slots_per_block,
            tp_block_nr: shape.blocks,
            tp_frame_size: shape.slot,
            tp_frame_nr: shape.slots_per_block * shape.blocks,
        };
        self.set(libc::SOL_PACKET, libc::PACKET_RX_RING, &request)
    }

    /// Lets frames that are longer than a slot take so many bytes together, as the kernel counts them. Without CAP_NET_ADMIN, the
    /// system's bound holds.
    pub(crate) fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        // The kernel doubles it.
        let half = i32::try_from(bytes / 2).unwrap_or(i32::MAX / 2);
        self.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &half)
            .or_else(|_| self.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &half))
    }

    /// Receives the next frame that is longer than its slot, with its virtio header, and returns how long it is; 0 if there is none.
    /// What does not fit `buffer` is cut off.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> usize {
        let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
        // An error that waits in the socket comes before frames, once.
        let received = recv(&self.0, &mut *buffer, flags).or_else(|_| recv(&self.0, buffer, flags));
        received.map_or(0, |(_, len)| len)
    }

    /// Does not get what this machine sends.
    pub(crate) fn ignore_outgoing(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)
    }

    /// Hands what is sent straight to the driver, past queueing disciplines.
    pub(crate) fn bypass_queueing(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1_i32)
    }

    /// Has the interface accept frames for all hardware addresses as long as this socket is open.
    pub(crate) fn accept_all_addresses(&self, interface: u32) -> io::Result<()> {
        let request = libc::packet_mreq {
            mr_ifindex: interface as libc::c_int,
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// Binds to an interface: to get its frames of every kind, or only to send there.
    pub(crate) fn bind(&self, interface: u32, receives: bool) -> io::Result<()> {
        let protocol = if receives { libc::ETH_P_ALL as u16 } else { 0 };
        // SAFETY: zeroes are valid for every field.
        let mut address: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = interface as libc::c_int;
        let len = mem::size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address is whole and as long as said.
        let outcome = unsafe { libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), len) };
        if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Joins the group of sockets of number `group` among which a program distributes packets, or makes
    /// a new one; returns its number. The program's results count sockets in the order in which they join.
    pub(crate) fn join_group(&self, group: Option<u16>) -> io::Result<u16> {
        let kind = libc::PACKET_FANOUT_EBPF
            | if group.is_none() { libc::PACKET_FANOUT_FLAG_UNIQUEID } else { 0 };
        let request = u32::from(group.unwrap_or(0)) | kind << 16;
        self.set(libc::SOL_PACKET, libc::PACKET_FANOUT, &request)?;
        let mut joined = 0_u32;
        self.get(libc::SOL_PACKET, libc::PACKET_FANOUT, &mut joined)?;
        Ok(joined as u16)
    }

    /// Gives the group its program.
    pub(crate) fn set_group_program(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, &program.as_raw_fd())
    }

    /// Packets for which there was no room in the ring, since the last call.
    pub(crate) fn drops(&self) -> io::Result<u32> {
        // `struct tpacket_stats`: packets, drops.
        let mut counts = [0_u32; 2];
        self.get(libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut counts)?;
        Ok(counts[1])
    }

    /// The error that waits to be told, if there is one; it waits no more.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        let mut error = 0_i32;
        match self.get(libc::SOL_SOCKET, libc::SO_ERROR, &mut error) {
            Ok(()) if error == 0 => None,
            Ok(()) => Some(io::Error::from_raw_os_error(error)),
            Err(error) => Some(error),
        }
    }

    /// Sets an option. `T` is what the option takes: plain numbers without padding.
    fn set<T>(&self, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
        let len = mem::size_of::<T>() as libc::socklen_t;
        let value = (&raw const *value).cast();
        // SAFETY: the kernel reads as many bytes as the value has.
        match unsafe { libc::setsockopt(self.0.as_raw_fd(), level, name, value, len) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Requests an option. `T` is what it gives: numbers, of which every value is valid.
    fn get<T>(&self, level: libc::c_int, name: libc::c_int, value: &mut T) -> io::Result<()> {
        let mut len = mem::size_of::<T>() as libc::socklen_t;
        let value = (&raw mut *value).cast();
        // SAFETY: the kernel writes no more bytes than the value has.
        match unsafe { libc::getsockopt(self.0.as_raw_fd(), level, name, value, &mut len) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
