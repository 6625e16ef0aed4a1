//! A socket on which the kernel reports its routes and neighbours (netlink(7), rtnetlink(7)).

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recvfrom, sendto,
    socket_with,
};

/// Bytes that the kernel sends at once, at most: 32 KiB since Linux 4.4.
pub const LONGEST: usize = 32 * 1_024;

/// The socket. It needs no privileges, and requests only what every user may read.
#[derive(Debug)]
pub struct NetlinkSocket(OwnedFd);

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// So many bytes of messages.
    Messages(usize),
    /// Nothing in time, or nothing from the kernel.
    Nothing,
    /// Messages were lost, because they were not taken in time.
    Overrun,
}

impl NetlinkSocket {
    /// A socket that listens to `groups` (`RTMGRP_*` of `<linux/rtnetlink.h>`).
    ///
    /// # Errors
    /// Those of socket(2) and bind(2).
    pub fn open(groups: u32) -> io::Result<NetlinkSocket> {
        let flags = SocketFlags::CLOEXEC;
        // No protocol: that of routes.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, groups))?;
        Ok(NetlinkSocket(socket))
    }

    /// Sends a request to the kernel.
    ///
    /// # Errors
    /// Those of sendto(2).
    pub fn send(&self, request: &[u8]) -> io::Result<()> {
        sendto(&self.0, request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        Ok(())
    }

    /// Takes what the kernel has sent, and waits for it as long as `timeout`. What other processes send
    /// is thrown away.
    ///
    /// # Errors
    /// Those of poll(2) and recvfrom(2), but for lost messages.
    pub fn receive(&self, buffer: &mut [u8; LONGEST], timeout: Duration) -> io::Result<Received> {
        let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
        let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut ready, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(Received::Nothing),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
        match recvfrom(&self.0, &mut buffer[..], flags) {
            Ok((_, length, _)) if length > LONGEST => Ok(Received::Overrun),
            Ok((_, length, from)) => {
                let from = from.and_then(|from| SocketAddrNetlink::try_from(from).ok());
                let is_kernel = from.is_some_and(|from| from.pid() == 0);
                Ok(if is_kernel { Received::Messages(length) } else { Received::Nothing })
            }
            Err(Errno::NOBUFS) => Ok(Received::Overrun),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Received::Nothing),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_reports_its_interfaces() {
        let socket = NetlinkSocket::open(0).expect("a socket, which needs no privileges");
        // RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, and an empty `struct ifinfomsg`.
        let mut request = vec![0; 32];
        request[..4].copy_from_slice(&32_u32.to_ne_bytes());
        request[4..6].copy_from_slice(&18_u16.to_ne_bytes());
        request[6..8].copy_from_slice(&0x301_u16.to_ne_bytes());
        socket.send(&request).unwrap();
        let mut buffer = [0; LONGEST];
        let received = socket.receive(&mut buffer, Duration::from_secs(5)).unwrap();
        let Received::Messages(length) = received else { panic!("{received:?}") };
        // RTM_NEWLINK, of the loopback interface first.
        assert_eq!(buffer[4..6], 16_u16.to_ne_bytes());
        assert!(buffer[..length].windows(3).any(|name| name == b"lo\0"));
        // And then nothing but the end of it.
        while let Received::Messages(_) = socket.receive(&mut buffer, Duration::ZERO).unwrap() {}
        assert_eq!(socket.receive(&mut buffer, Duration::ZERO).unwrap(), Received::Nothing);
    }
}
